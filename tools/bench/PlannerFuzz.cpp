// SPDX-License-Identifier: Apache-2.0
// planner-fuzz N [SEED]: N random instances, chains and branching programs in turn, through every strategy, against the
// checkers. Exit status 1 and the seed on the first violation. Instances are small, so that a hundred thousand take
// minutes.
#include "passes/planner/Bounds.h"
#include "passes/planner/Check.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"
#include "passes/strategies/ChainProblem.h"
#include "passes/strategies/Registry.h"
#include "test/unit/planner/RandomChains.h"
#include "test/unit/planner/RandomChoices.h"
#include "test/unit/planner/RandomProblems.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <map>

using namespace sluice::planner;
using sluice::Error, sluice::Status, sluice::Success;

namespace {

struct Tally {
  long plans = 0, infeasible = 0, refused = 0;
  double seconds = 0;
};

/// Refuses a wrong answer of the strategy.
Status tryProblem(const Problem &p, Bytes budget, const std::string &name, Tally &tally) {
  Options options = everythingAllowed({});
  options.packNodes = 200;
  if (name == "mixed" || name == "auto")
    options.knobs["trials"] = "6";
  if (name == "mixed") // auto is mixed with all that it takes over
    options.knobs["takeover"] = "0";
  if (name == "checkmate" && p.ops.size() > 16)
    return ++tally.refused, Success{}; // integer programs of small graphs only
  Answer answer = runStrategy(p, budget, name, options);
  if (auto *refused = std::get_if<Refused>(&answer))
    return ++tally.refused, Error{refused->reason};
  if (auto *none = std::get_if<Infeasible>(&answer)) {
    ++tally.infeasible;
    if (none->smallestMemory <= budget)
      return Error{"claims to need " + std::to_string(none->smallestMemory) + " of " + std::to_string(budget)};
    budget = none->smallestMemory;
    answer = runStrategy(p, budget, name, options);
  }
  auto *plan = std::get_if<Plan>(&answer);
  if (!plan)
    return Error{"fails at its own smallest budget " + std::to_string(budget)};
  ++tally.plans;
  if (plan->arenaBytes > budget)
    return Error{"arena of " + std::to_string(plan->arenaBytes) + " above " + std::to_string(budget)};
  if (Status status = checkPlan(p, *plan, budget); !status)
    return status;
  const Timeline timeline = simulate(p, *plan);
  if (timeline.makespan < actionBound(p, budget, allowedActions(options)) * (1 - 1e-9))
    return Error{"beats the lower bound"};
  return checkTimeline(p, *plan, timeline);
}

/// A random mixture of actions: simulator, checkers and bound must agree on it.
Status tryActions(const Problem &p, unsigned seed, Tally &tally) {
  const Options options = everythingAllowed({});
  const Bytes keep = peakBytes(p, expand(p, keepPlan(p)));
  const Bytes memory = seed % 3 == 0 ? keep : p.base + (keep - p.base) * (3 + seed % 7) / 10;
  const Attempt attempt = Combiner(p, memory, options).attempt(test::randomChoice(p, seed));
  if (!attempt.feasible)
    return ++tally.infeasible, Success{};
  ++tally.plans;
  if (Status status = checkPlan(p, attempt.plan, memory); !status)
    return status;
  const Timeline timeline = simulate(p, attempt.plan);
  if (timeline.makespan < actionBound(p, memory, allActions()) * (1 - 1e-9))
    return Error{"beats the lower bound"};
  return checkTimeline(p, attempt.plan, timeline);
}

Status tryChain(const Chain &c, double memory, Release release, const std::string &name, Tally &tally) {
  Options options;
  if (name == "mixed" || name == "auto")
    options.knobs["trials"] = "6";
  if (name == "mixed") // auto is mixed with all that it takes over
    options.knobs["takeover"] = "0";
  if (name == "checkmate" && c.uF.size() > 5)
    return ++tally.refused, Success{};
  ChainAnswer answer = runStrategy(c, memory, release, name, options);
  if (auto *refused = std::get_if<Refused>(&answer))
    return ++tally.refused,
           refused->reason.find("needs") != std::string::npos ? Status(Success{}) : Error{refused->reason};
  if (auto *none = std::get_if<ChainInfeasible>(&answer)) {
    ++tally.infeasible;
    if (none->smallestMemory <= memory)
      return Error{"claims to need no more than there is"};
    memory = none->smallestMemory;
    answer = runStrategy(c, memory, release, name, options);
  }
  auto *plan = std::get_if<ChainPlan>(&answer);
  if (!plan)
    return Error{"fails at its own smallest memory"};
  ++tally.plans;
  if (plan->timeline.peakBytes > memory + byteSlack(c))
    return Error{"peak above memory"};
  return plan->timeline.makespan < strategyBound(c, memory, name) * (1 - 1e-9) ? Status(Error{"beats the lower bound"})
                                                                               : Success{};
}

} // namespace

int main(int argc, char **argv) {
  const long count = argc > 1 ? std::atol(argv[1]) : 1000;
  const unsigned first = argc > 2 ? std::atoi(argv[2]) : 0;
  std::map<std::string, Tally> tallies;
  for (long i = 0; i < count; ++i) {
    const unsigned seed = first + i;
    std::vector<std::string> names = strategyNames();
    if (i % 2 == 1)
      names.push_back("random actions");
    for (const std::string &name : names) {
      if ((name == "checkmate" || name == "auto") && i % 16 > 1)
        continue; // integer programs take a hundred times as long, and auto takes over from them
      Status status = Success{};
      const std::clock_t start = std::clock();
      try {
        if (i % 2 == 0) {
          const Chain c = test::randomChain(seed, seed / 2 % 9);
          const Release release = i % 4 == 0 ? Release::Whole : Release::Partial;
          status = tryChain(c, chainPeak(c) * (0.3 + 0.1 * (seed / 4 % 8)), release, name, tallies[name]);
        } else {
          test::RandomShape shape;
          shape.forwardOps = 2 + seed / 2 % 12;
          shape.slowLink = seed % 3 == 0;
          shape.codecs = seed % 4 == 1;
          shape.visitors = seed % 5 == 2;
          const Problem p = test::randomProblem(seed, shape);
          status = name == "random actions"
                       ? tryActions(p, seed, tallies[name])
                       : tryProblem(p, p.base + memoryFloor(p) / 2 * (2 + seed / 2 % 5) / 2, name, tallies[name]);
        }
      } catch (const std::exception &e) {
        status = Error{e.what()};
      }
      tallies[name].seconds += double(std::clock() - start) / CLOCKS_PER_SEC;
      if (!status) {
        std::fprintf(stderr, "seed %u strategy %s: %s\n", seed, name.c_str(), status.error().c_str());
        return 1;
      }
    }
  }
  std::printf("%ld instances clean\n", count);
  for (const auto &[name, t] : tallies)
    std::printf("  %-14s %8ld plans, %8ld infeasible first, %8ld refused, %8.1f s\n", name.c_str(), t.plans,
                t.infeasible, t.refused, t.seconds);
  return 0;
}
