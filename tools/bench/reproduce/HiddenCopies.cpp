// SPDX-License-Identifier: Apache-2.0
// How much of the copies' time compute hides, by strategy: as planned, where a copy out begins when the content is
// complete, and the same plans with copies out that begin after the last op that reads the content before it leaves.
#include "tools/bench/reproduce/Outcome.h"
#include "tools/bench/reproduce/Pages.h"

#include "passes/planner/Bounds.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"
#include "passes/strategies/ChainProblem.h"

#include <algorithm>

namespace sluice::bench {

using namespace planner;

namespace {

bool touches(const Op &op, int buffer) {
  const auto has = [&](const std::vector<int> &all) { return std::count(all.begin(), all.end(), buffer) > 0; };
  return has(op.reads) || has(op.writes);
}

/// The plan, whose copies out are issued after the last access before the bytes go.
Plan leavingLate(const Problem &problem, Plan plan) {
  for (size_t b = 0; b < plan.decisions.size(); ++b) {
    if (plan.decisions[b].action != Action::Offload)
      continue;
    std::vector<Absence> &all = plan.decisions[b].absences;
    for (size_t i = 0; i < all.size();) {
      const int early = all[i].leaveAfter;
      int late = all[i].freeBefore - 1;
      while (late > early && !touches(problem.ops[late], static_cast<int>(b)))
        --late;
      for (; i < all.size() && all[i].leaveAfter == early; ++i) // of one copy
        all[i].leaveAfter = late;
    }
  }
  return plan;
}

struct Hidden {
  Seconds copies = 0; ///< of both directions
  double share = 0;   ///< of those, how much runs beside compute
  Seconds makespan = 0;
};

Hidden hiddenIn(const Timeline &timeline) {
  Hidden found;
  found.makespan = timeline.makespan;
  Seconds beside = 0;
  for (const Event &copy : timeline.events) {
    if (copy.what != Event::What::CopyOut && copy.what != Event::What::CopyIn)
      continue;
    found.copies += copy.end - copy.start;
    for (const Event &run : timeline.events)
      if (run.stream == Stream::Compute)
        beside += std::max(0.0, std::min(copy.end, run.end) - std::max(copy.start, run.start));
  }
  found.share = found.copies > 0 ? beside / found.copies : 1;
  return found;
}

struct Case {
  const char *label, *strategy;
  std::map<std::string, std::string> knobs = {};
};

void table(std::ostream &page, const Problem &p, Bytes budget, const std::vector<Case> &cases) {
  const Seconds kept = outcome(p, "keep").seconds;
  page << "| strategy | copies, ms | hidden, copies after the last forward use | step over keep | hidden, copies from "
          "birth | step over keep |\n|---|---|---|---|---|---|\n";
  for (const auto &[label, strategy, knobs] : cases) {
    Options options;
    options.executable = exactActions();
    options.knobs = knobs;
    const Answer answer = runStrategy(p, budget, strategy, options);
    const auto *plan = std::get_if<Plan>(&answer);
    page << "| " << label;
    if (!plan) {
      page << " | no plan | | | | |\n";
      continue;
    }
    const Hidden now = hiddenIn(simulate(p, *plan)), before = hiddenIn(simulate(p, leavingLate(p, *plan)));
    page << " | " << digits(1000 * now.copies, 1);
    for (const Hidden &hidden : {before, now})
      page << " | " << percent(hidden.share) << " | " << percent(hidden.makespan / kept - 1);
    page << " |\n";
  }
}

} // namespace

void hiddenCopies(std::ostream &page) {
  page << "# How much of their copies plans hide\n\n"
          "Simulated. `hidden`: the share of the copies' seconds, of both directions, during which compute runs. Every "
          "plan twice: with copies out that\nbegin when the content is complete, as plans have them, and the same plan "
          "with copies out that wait for the last op that reads the content before\nit leaves, as all plans had them "
          "before commit fcd4dae6. A plan that was made for such copies might move other tensors.\n\n"
          "## VGG-116, batch 32, GTX 1080 Ti, without a budget\n\n";
  table(page, network("vgg116", profileOf("gtx-1080ti"), 32, 224), Bytes(1) << 55,
        {{"vdnn-all", "vdnn-all"},
         {"vdnn-conv", "vdnn-conv"},
         {"vdnn-aconv", "vdnn-aconv"},
         {"vdnnpp all, synchronous (vDNN's protocol)", "vdnnpp", {{"mode", "1"}, {"synchronous", "1"}}},
         {"vdnnpp all", "vdnnpp", {{"mode", "1"}}}});
  page << "\n## ResNet-50, batch 32, V100-PCIe, floor and ten points of the activations\n\n";
  const Problem p = network("resnet50", profileOf("v100-pcie"), 32, 224);
  const Bytes keep = outcome(p, "keep").arena;
  std::vector<Case> cases;
  for (const char *strategy :
       {"greedy", "dynprog", "vdnn", "vdnn-all", "vdnnpp", "autoswap", "superneurons", "capuchin", "pofo", "mixed"})
    cases.push_back({strategy, strategy});
  table(page, p, memoryFloor(p) + (keep - p.base) / 10, cases);
}

} // namespace sluice::bench
