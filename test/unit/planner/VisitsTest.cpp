// SPDX-License-Identifier: Apache-2.0
// Buffers that come from another arena for their op and go back there: lives, copies, and what the checkers refuse.
#include "passes/planner/Visits.h"
#include "passes/planner/Check.h"
#include "passes/planner/Simulate.h"
#include "passes/strategies/Strategies.h"
#include "test/unit/MessageOf.h"
#include "test/unit/planner/RandomProblems.h"
#include "test/unit/planner/SmallStep.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace sluice::planner {

namespace {

/// Two updates, ops 5 and 9, each with a state of its own of 100 bytes, which takes a second each way.
struct Updates : test::SmallStep {
  const int first = buffer(false), second = buffer(false);

  explicit Updates(double bytesPerSecond = 100) : SmallStep(bytesPerSecond) {
    const int x = buffer(false);
    problem.visitorsLink = problem.link;
    for (int state : {first, second})
      problem.buffers[state].visits = true;
    for (int k = 0; k < 12; ++k)
      if (k == 5 || k == 9)
        op(Phase::Update, {}, {k == 5 ? first : second});
      else
        op(Phase::Backward, k ? std::vector<int>{x} : std::vector<int>{}, {x});
  }

  Plan within(Bytes memory) const {
    const Answer answer = runStrategy(problem, memory, "keep", {});
    return std::holds_alternative<Plan>(answer) ? std::get<Plan>(answer) : Plan();
  }
};

} // namespace

TEST(Visits, ComputeWaitsForThemWhereThereIsNoRoom) {
  const Updates net;
  const Plan plan = keepPlan(net.problem);
  EXPECT_EQ(peakBytes(net.problem, expand(net.problem, plan)), 200) << "x and one state";
  const Timeline timeline = simulate(net.problem, plan);
  EXPECT_DOUBLE_EQ(timeline.makespan, 12 + 4);
  EXPECT_EQ(messageOf(checkPlan(net.problem, plan, 200)), "");
  EXPECT_EQ(messageOf(checkTimeline(net.problem, plan, timeline)), "");
}

TEST(Visits, TheirCopiesRunBesideOtherOpsWhereThereIsRoom) {
  const Updates net;
  const Plan plan = net.within(300);
  ASSERT_EQ(plan.decisions.size(), 3u);
  for (int state : {net.first, net.second}) {
    ASSERT_EQ(plan.decisions[state].absences.size(), 1u);
    EXPECT_TRUE(plan.decisions[state].absences[0].kind() == AbsenceKind::AroundEnd);
  }
  EXPECT_LT(plan.decisions[net.first].absences[0].returnAfter, 4);
  EXPECT_GT(plan.decisions[net.first].absences[0].freeBefore, 6);
  EXPECT_LE(plan.arenaBytes, 300);
  const Timeline timeline = simulate(net.problem, plan);
  EXPECT_DOUBLE_EQ(timeline.makespan, 12);
  EXPECT_EQ(timeline.hostBytes, 0) << "they have slots of their own";
  EXPECT_EQ(messageOf(checkTimeline(net.problem, plan, timeline)), "");
}

TEST(Visits, WithoutABudgetTheArenaDoesNotGrow) {
  const Updates net;
  EXPECT_EQ(net.within(noBudget).arenaBytes, 200);
}

TEST(Visits, TheCheckerRefusesThemWhereTheyAreNotThere) {
  const Updates net;
  const auto refused = [&](Absence away, Bytes memory = 300) {
    Plan plan = withVisits(net.problem, 300, keepPlan(net.problem));
    plan.decisions[net.first].absences = {away};
    return messageOf(checkPlan(net.problem, plan, memory));
  };
  EXPECT_EQ(refused({5, 6, 4, 5}), "");
  EXPECT_EQ(refused({5, 12, -1, 5}), "");
  EXPECT_NE(refused({5, 12, -1, 5}, 299), "") << "both are there at once";
  EXPECT_NE(refused({5, 6, 5, 5}), "") << "comes after its op";
  EXPECT_NE(refused({4, 6, 3, 4}), "") << "leaves before its op has run";
  EXPECT_NE(refused({6, 7, 5, 6}), "") << "is awaited after its op";
  EXPECT_NE(refused({5, 5, 4, 5}), "") << "its bytes are free while it is there";
  EXPECT_NE(refused({5, 13, 4, 5}), "") << "beyond the step";
}

TEST(Visits, NothingElseIsAwayAroundTheEndOfTheStep) {
  Updates net;
  const int x = 2;
  net.problem.buffers[x].offloadable = true;
  Plan plan = keepPlan(net.problem);
  plan.decisions[x] = {Action::Offload, {}, {{11, 12, -1, 0}}, ""};
  EXPECT_EQ(messageOf(checkPlan(net.problem, plan, 300)),
            "buffer 'b2' leaves after op 11 and is needed by 0: only what visits the device is away around the end of "
            "the step");
}

TEST(Visits, AProblemSaysWhoseTheyAreAndHowTheyCome) {
  const auto refused = [](const std::function<void(Problem &, int)> &change) {
    Updates net;
    change(net.problem, net.first);
    return messageOf(checkProblem(net.problem));
  };
  EXPECT_EQ(refused([](Problem &, int) {}), "");
  EXPECT_EQ(refused([](Problem &p, int) { p.visitorsLink = {}; }),
            "buffer 0 'b0' is at home in the arena 'host', to which the profile knows no link");
  EXPECT_EQ(refused([](Problem &p, int b) { p.ops[7].reads.push_back(b); }),
            "buffer 0 'b0' visits the device for one op that writes it; 1 do, and 1 read it");
  EXPECT_NE(refused([](Problem &p, int b) { p.ops[7].writes.push_back(b); }), "");
  EXPECT_NE(refused([](Problem &p, int b) { p.buffers[b].offloadable = true; }), "");
}

// A parameter that a forward op and a backward op read, each of which fetches it and drops it, and that the update
// changes. The forward op may run again.
struct Fetches : test::SmallStep {
  const int x = buffer(false), y = buffer(true), forward = buffer(false), backward = buffer(false),
            changed = buffer(false);

  Fetches() : SmallStep(100) {
    problem.visitorsLink = problem.link;
    for (int b : {forward, backward, changed})
      problem.buffers[b].visits = true;
    for (int b : {forward, backward})
      problem.buffers[b].dropped = true;
    op(Phase::Forward, {}, {x});
    problem.ops.back().recomputable = false;
    op(Phase::Forward, {x}, {y, forward});
    problem.ops.back().rerun = Rerun{2, 100, {x}, {y}};
    problem.buffers[y].producers = {1};
    op(Phase::Backward, {x, y}, {x, backward});
    op(Phase::Update, {x}, {changed});
  }
};

TEST(Visits, WhatIsReadIsDropped) {
  const Fetches net;
  ASSERT_EQ(messageOf(checkProblem(net.problem)), "");
  const Plan keep = keepPlan(net.problem);
  EXPECT_EQ(peakBytes(net.problem, expand(net.problem, keep)), 300) << "x, y and the parameter";
  const Timeline waiting = simulate(net.problem, keep);
  EXPECT_DOUBLE_EQ(waiting.makespan, 4 + 4) << "it comes three times and goes back once";
  EXPECT_EQ(messageOf(checkTimeline(net.problem, keep, waiting)), "");
  const Plan ahead = withVisits(net.problem, 400, keep);
  EXPECT_EQ(messageOf(checkPlan(net.problem, ahead, 400)), "");
  const Timeline timeline = simulate(net.problem, ahead);
  EXPECT_EQ(messageOf(checkTimeline(net.problem, ahead, timeline)), "");
  EXPECT_LT(timeline.makespan, 8);
  std::map<int, int> left, came;
  for (const Event &event : timeline.events)
    if (event.stream != Stream::Compute)
      ++(event.what == Event::What::CopyOut ? left : came)[event.buffer];
  EXPECT_EQ(left, (std::map<int, int>{{net.changed, 1}}));
  EXPECT_EQ(came, (std::map<int, int>{{net.forward, 1}, {net.backward, 1}, {net.changed, 1}}));
  Timeline both = timeline; // as if it were written home, too
  for (const Event &event : timeline.events)
    if (event.buffer == net.forward && event.what == Event::What::CopyIn) {
      both.events.push_back(event);
      both.events.back().what = Event::What::CopyOut;
    }
  EXPECT_NE(messageOf(checkTimeline(net.problem, ahead, both)), "");
}

TEST(Visits, WhatRunsAgainFetchesAgainInItsWorkspace) {
  const Fetches net;
  Plan plan = keepPlan(net.problem);
  plan.decisions[net.y].action = Action::Recompute;
  plan.recomputes = {{2, {1}}};
  EXPECT_EQ(peakBytes(net.problem, expand(net.problem, plan)), 300);
  EXPECT_DOUBLE_EQ(simulate(net.problem, plan).makespan, 4 + 4 + 2);
  EXPECT_EQ(messageOf(checkPlan(net.problem, plan, 300)), "");
  // What the backward op reads comes between the ops where there is no room beside the one that runs again.
  const Plan tight = withVisits(net.problem, 300, plan);
  EXPECT_TRUE(tight.decisions[net.backward].absences.empty());
  EXPECT_EQ(messageOf(checkPlan(net.problem, tight, 300)), "");
  EXPECT_EQ(messageOf(checkTimeline(net.problem, tight, simulate(net.problem, tight))), "");
  const Plan roomy = withVisits(net.problem, 500, plan);
  EXPECT_FALSE(roomy.decisions[net.backward].absences.empty());
  EXPECT_EQ(messageOf(checkPlan(net.problem, roomy, 500)), "");
  EXPECT_EQ(messageOf(checkTimeline(net.problem, roomy, simulate(net.problem, roomy))), "");
}

/// A parameter of which each rank has a share: it is gathered for a forward and a backward op, on the stream on which a
/// gradient is summed in between. Every op and every gathering takes a second, the sum three.
struct Gathers : test::SmallStep {
  const int x = buffer(false), y = buffer(false), gradient = buffer(false), forward = buffer(false),
            backward = buffer(false);

  Gathers() : SmallStep(100) {
    problem.visitorsHome = Space::Device;
    problem.visitorsLink = {100, 100, 100, 0};
    for (int b : {forward, backward})
      problem.buffers[b].visits = problem.buffers[b].dropped = true;
    op(Phase::Forward, {}, {x});
    op(Phase::Forward, {x}, {y, forward});
    problem.ops.back().recomputable = false;
    op(Phase::Backward, {y}, {gradient});
    op(Phase::Backward, {gradient}, {gradient});
    problem.ops.back().seconds = 0, problem.ops.back().exchange = 3;
    op(Phase::Backward, {y}, {x, backward});
    op(Phase::Update, {gradient}, {gradient});
  }
};

TEST(Visits, WhatIsGatheredSharesAStreamWithSums) {
  const Gathers net;
  ASSERT_EQ(messageOf(checkProblem(net.problem)), "");
  const Plan keep = keepPlan(net.problem);
  EXPECT_DOUBLE_EQ(simulate(net.problem, keep).makespan, 1 + 2 + 1 + 3 + 1) << "the last gathering beside the sum";
  EXPECT_EQ(messageOf(checkTimeline(net.problem, keep, simulate(net.problem, keep))), "");
  // Ahead of its op, in front of the sum or behind it.
  Plan plan = keep;
  plan.decisions[net.forward] = {Action::Offload, {}, {{1, 2, -1, 1}}, ""};
  for (const auto &[after, makespan] : {std::pair(1, 1 + 1 + 1 + 3 + 1.0), {3, 1 + 1 + 1 + 3 + 1 + 1 + 1.0}}) {
    plan.decisions[net.backward] = {Action::Offload, {}, {{4, 5, after, 4}}, ""};
    EXPECT_EQ(messageOf(checkPlan(net.problem, plan, 600)), "");
    const Timeline timeline = simulate(net.problem, plan);
    EXPECT_DOUBLE_EQ(timeline.makespan, makespan) << "after op " << after;
    EXPECT_EQ(messageOf(checkTimeline(net.problem, plan, timeline)), "");
    for (const Event &event : timeline.events)
      EXPECT_EQ(event.stream, event.what == Event::What::Run ? Stream::Compute : Stream::Communication);
  }
  // Both at once is more than the stream does; and nothing goes back there.
  Timeline wrong = simulate(net.problem, plan);
  for (Event &event : wrong.events)
    if (event.what == Event::What::CopyIn && event.buffer == net.backward)
      event.start -= 1, event.end -= 1;
  EXPECT_NE(messageOf(checkTimeline(net.problem, plan, wrong)), "");
  Gathers stays;
  stays.problem.buffers[net.forward].dropped = false;
  EXPECT_EQ(messageOf(checkProblem(stays.problem)),
            "buffer 3 'b3' is at home in the arena 'device', to which the profile knows no link");
}

TEST(Visits, AProblemSaysWhatIsDropped) {
  Fetches net;
  net.problem.ops[1].rerun.reset();
  EXPECT_EQ(messageOf(checkProblem(net.problem)),
            "buffer 2 'b2' visits the device for the first run of op 'op1', which lists it for others, too");
  Updates other;
  other.problem.buffers[2].dropped = true;
  EXPECT_EQ(messageOf(checkProblem(other.problem)),
            "buffer 2 'b2' is to be dropped, which is for what visits the device");
}

// Every strategy, whatever it does with the rest, within the memory that it was given.
TEST(Visits, EveryStrategyPlansAroundThem) {
  int ahead = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    test::RandomShape shape;
    shape.visitors = true;
    shape.gathers = seed % 5 > 2;
    shape.forwardOps = 4 + static_cast<int>(seed % 9);
    shape.codecs = seed % 3 == 0;
    const Problem problem = test::randomProblem(seed, shape);
    const Bytes keep = peakBytes(problem, expand(problem, keepPlan(problem)));
    for (const char *name : {"keep", "greedy", "vdnn-all", "chen", "mixed"}) {
      if (seed % 4 > 0 && name == std::string("mixed"))
        continue; // it has many trials
      const Bytes memory = seed % 2 ? keep * 2 : problem.base + (keep - problem.base) * 4 / 5;
      Answer answer = runStrategy(problem, memory, name, {});
      const Plan *plan = std::get_if<Plan>(&answer);
      if (!plan)
        continue;
      EXPECT_LE(plan->arenaBytes, memory);
      EXPECT_EQ(messageOf(checkPlan(problem, *plan, memory)), "") << name;
      EXPECT_EQ(messageOf(checkTimeline(problem, *plan, simulate(problem, *plan))), "") << name;
      for (const Decision &d : plan->decisions)
        ahead += !d.absences.empty() && d.absences[0].kind() == AbsenceKind::AroundEnd;
    }
  }
  EXPECT_GT(ahead, 100);
}

/// A gradient of 100 bytes that op 3 makes and op 5 reads last: it goes home in a second and is used there for two.
struct Sent : test::SmallStep {
  const int x = buffer(false), gradient = buffer(false);

  explicit Sent(int ops = 9) : SmallStep(100) {
    problem.visitorsLink = problem.link;
    Buffer &sent = problem.buffers[gradient];
    sent.visits = sent.born = true;
    sent.usedAtHome = 2;
    for (int k = 0; k < ops; ++k)
      op(Phase::Backward,
         k == 0   ? std::vector<int>{}
         : k == 5 ? std::vector<int>{x, gradient}
                  : std::vector<int>{x},
         k == 3 ? std::vector<int>{x, gradient} : std::vector<int>{x});
    problem.ops[5].sends = {gradient};
  }
};

TEST(Visits, WhatIsMadeGoesHomeForGood) {
  const Sent net;
  ASSERT_EQ(messageOf(checkProblem(net.problem)), "");
  const Plan keep = keepPlan(net.problem);
  EXPECT_EQ(peakBytes(net.problem, expand(net.problem, keep)), 200);
  const Timeline waiting = simulate(net.problem, keep);
  EXPECT_DOUBLE_EQ(waiting.makespan, 9 + 1) << "compute waits for the copy, not for what is done at home";
  EXPECT_EQ(messageOf(checkTimeline(net.problem, keep, waiting)), "");
  const Plan beside = withVisits(net.problem, 200, keep);
  const Absence away = beside.decisions[net.gradient].absences.front();
  EXPECT_EQ(away.leaveAfter, 5);
  EXPECT_GT(away.freeBefore, 6);
  EXPECT_EQ(messageOf(checkPlan(net.problem, beside, 200)), "");
  const Timeline timeline = simulate(net.problem, beside);
  EXPECT_DOUBLE_EQ(timeline.makespan, 9);
  EXPECT_EQ(timeline.hostBytes, 100) << "a variable's slot is not the gradient's";
  EXPECT_EQ(messageOf(checkTimeline(net.problem, beside, timeline)), "");
}

TEST(Visits, AStepEndsWithWhatIsUsedAtHome) {
  const Sent net(7);
  const Timeline timeline = simulate(net.problem, withVisits(net.problem, 200, keepPlan(net.problem)));
  EXPECT_DOUBLE_EQ(timeline.makespan, 6 + 1 + 2);
  Sent waiting(9);
  waiting.problem.buffers[waiting.gradient].usedBefore = 7;
  const Plan plan = withVisits(waiting.problem, 200, keepPlan(waiting.problem));
  const Timeline waited = simulate(waiting.problem, plan);
  EXPECT_DOUBLE_EQ(waited.makespan, 6 + 1 + 2 + 2) << "op 7 waits for the use";
  EXPECT_EQ(messageOf(checkTimeline(waiting.problem, plan, waited)), "");
}

TEST(Visits, TheCheckersRefuseUsesAtHomeThatCannotBe) {
  const Sent net;
  const Plan plan = withVisits(net.problem, 200, keepPlan(net.problem));
  const auto refused = [&](const std::function<void(Event &)> &change) {
    Timeline timeline = simulate(net.problem, plan);
    for (Event &e : timeline.events)
      if (e.what == Event::What::Use)
        change(e);
    return messageOf(checkTimeline(net.problem, plan, timeline));
  };
  EXPECT_EQ(refused([](Event &) {}), "");
  EXPECT_NE(refused([](Event &e) { e.start -= 0.5; }), "") << "before the copy has ended";
  EXPECT_NE(refused([](Event &e) { e.end -= 0.5; }), "") << "shorter than it takes";
  EXPECT_NE(refused([](Event &e) { e.stream = Stream::Codec; }), "");
  EXPECT_NE(refused([](Event &e) { e.buffer = 0; }), "");
  const auto wrong = [](const std::function<void(Problem &, int)> &change) {
    Sent other;
    change(other.problem, other.gradient);
    return messageOf(checkProblem(other.problem));
  };
  EXPECT_EQ(wrong([](Problem &p, int b) { p.ops[7].reads.push_back(b); }),
            "buffer 1 'b1' goes home for good after one op; 1 write it, 1 send it, 1 touch it later");
  EXPECT_NE(wrong([](Problem &p, int) { p.ops[5].sends.clear(); }), "");
  EXPECT_NE(wrong([](Problem &p, int b) { p.buffers[b].usedAtHome = -1; }), "");
  EXPECT_NE(wrong([](Problem &p, int b) { p.buffers[b].visits = false; }), "");
}

} // namespace sluice::planner
