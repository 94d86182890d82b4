// SPDX-License-Identifier: Apache-2.0
// planner-growth: how processor time and memory of planning with auto grow with the number of ops, as a table on
// stdout, which planning_growth.py draws. Every problem is planned in a process of its own, at half of its live bytes
// above the base, so that times are processor seconds and memory is that problem's alone.
#include "passes/planner/Program.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Registry.h"
#include "test/unit/planner/RandomChains.h"
#include "test/unit/planner/RandomProblems.h"
#include "tools/bench/reproduce/Networks.h"

#include <cstdio>
#include <functional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sluice;
using namespace sluice::planner;

namespace {

struct Cost {
  double seconds = -1, mebibytes = 0; ///< seconds -1: no plan
};

Cost costOf(const std::function<bool()> &plan) {
  const pid_t child = fork();
  if (child == 0)
    _exit(plan() ? 0 : 1);
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0)
    return {};
  const auto seconds = [](const timeval &t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {seconds(used.ru_utime) + seconds(used.ru_stime), static_cast<double>(used.ru_maxrss) / 1024};
}

bool planHalf(const Problem &problem) {
  Options options;
  options.executable = {"keep", "offload", "recompute", "mask", "argmax"};
  const Bytes keep = peakBytes(problem, expand(problem, keepPlan(problem)));
  const Answer answer = runStrategy(problem, problem.base + (keep - problem.base) / 2, "auto", options);
  return !std::holds_alternative<Refused>(answer);
}

void print(const std::string &name, size_t ops, Cost cost) {
  std::printf("| %s | %zu | %.2f | %.0f |\n", name.c_str(), ops, cost.seconds, cost.mebibytes);
  std::fflush(stdout);
}

} // namespace

int main() {
  const Profile profile = *loadProfile("v100-pcie");
  std::printf("| problem | ops | processor seconds | MiB |\n|---|---|---|---|\n");
  for (const char *name : {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"}) {
    const Problem p = bench::network(name, profile, 32, 224);
    print(name, p.ops.size(), costOf([&] { return planHalf(p); }));
  }
  for (int ops : {300, 1000, 3000, 10000}) {
    test::RandomShape shape;
    shape.forwardOps = ops / 2 - 1;
    const Problem p = test::randomProblem(1, shape);
    print("random graph", p.ops.size(), costOf([&] { return planHalf(p); }));
  }
  for (int layers : {10, 30, 100, 300, 1000}) {
    const Chain chain = test::randomChain(1, layers - 1);
    const Cost cost = costOf([&] {
      const ChainAnswer answer = runStrategy(chain, chainPeak(chain) * 0.5, Release::Whole, "auto");
      return !std::holds_alternative<Refused>(answer);
    });
    print("chain of " + std::to_string(layers), 2 * layers, cost);
  }
}
