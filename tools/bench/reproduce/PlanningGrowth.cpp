// SPDX-License-Identifier: Apache-2.0
// How processor time and memory of planning with auto grow with the number of ops. Every problem is planned in a
// process of its own, so that times are processor seconds and memory is that problem's beside the little that this
// process has before it writes other pages.
#include "tools/bench/reproduce/Networks.h"
#include "tools/bench/reproduce/Pages.h"

#include "passes/planner/Program.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Registry.h"
#include "test/unit/planner/RandomChains.h"
#include "test/unit/planner/RandomProblems.h"

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice::bench {

using namespace planner;

namespace {

/// Plans, and says whether there is a plan, in a process of its own; a row of the table.
std::string row(const std::string &name, size_t ops, const std::function<bool()> &plan) {
  const pid_t child = fork();
  if (child == 0)
    _exit(plan() ? 0 : 1);
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child || !WIFEXITED(status))
    throw std::runtime_error("planning '" + name + "' did not end by itself");
  const auto seconds = [](const timeval &t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  char text[160];
  std::snprintf(text, sizeof text, "| %s | %zu | %.2f | %.0f | %s |\n", name.c_str(), ops,
                seconds(used.ru_utime) + seconds(used.ru_stime), static_cast<double>(used.ru_maxrss) / 1024,
                WEXITSTATUS(status) == 0 ? "yes" : "no");
  return text;
}

bool planHalf(const Problem &problem) {
  Options options;
  options.executable = {Action::Keep, Action::Offload, Action::Recompute, Codec::Mask, Codec::Argmax};
  const Bytes keep = peakBytes(problem, expand(problem, keepPlan(problem)));
  return std::holds_alternative<Plan>(runStrategy(problem, problem.base + (keep - problem.base) / 2, "auto", options));
}

const char *const head = "\n| problem | ops | processor seconds | MiB | fits |\n|---|---|---|---|---|\n";

} // namespace

void planningGrowth(std::ostream &page) {
  page << "# Planning time and memory\n\n"
          "Processor seconds and memory of planning with `auto` at half of the live bytes above the base (chains: half "
          "of the peak). Networks: batch 32,\nV100-PCIe profile. Random graphs and chains: those of the planner's "
          "fuzzer. Where no plan fits that budget, the time is that of finding it out.\n\n"
          "![processor seconds and MiB over ops](planning-growth.svg)\n\n## networks\n"
       << head;
  const Profile profile = *loadProfile("v100-pcie");
  for (const char *name : {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"}) {
    const Problem p = network(name, profile, 32, 224);
    page << row(name, p.ops.size(), [&] { return planHalf(p); });
  }
  page << "\n## random graphs\n" << head;
  for (int ops : {300, 1000, 3000, 10000}) {
    test::RandomShape shape;
    shape.forwardOps = ops / 2 - 1;
    const Problem p = test::randomProblem(1, shape);
    page << row("random graph", p.ops.size(), [&] { return planHalf(p); });
  }
  page << "\n## chains\n" << head;
  for (int layers : {10, 30, 100, 300, 1000}) {
    const Chain chain = test::randomChain(1, layers - 1);
    page << row("chain of " + std::to_string(layers), 2 * static_cast<size_t>(layers), [&] {
      return std::holds_alternative<ChainPlan>(runStrategy(chain, chainPeak(chain) * 0.5, Release::Whole, "auto"));
    });
  }
}

} // namespace sluice::bench
