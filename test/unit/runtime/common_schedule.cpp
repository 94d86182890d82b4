// SPDX-License-Identifier: Apache-2.0
// Rates by step against their formulas, and groups of parameters by name.
#include "runtime/program/ParameterGroups.h"
#include "runtime/program/Schedule.h"

#include "runtime/Errors.h"
#include "test/unit/runtime/Folder.h"

#include <cmath>

using namespace sluice;

static Schedule scheduleOf(const std::string &words, std::optional<std::string> warmup = {},
                           std::optional<double> minimum = {}) {
  Arguments arguments;
  arguments.schedule = words;
  arguments.warmup = warmup;
  arguments.minimumRate = minimum;
  return Schedule(arguments);
}

static void expectScheduleRefused(const std::string &words, const std::string &part,
                                  std::optional<std::string> warmup = {}, std::optional<double> minimum = {}) {
  expectError<UsageError>([&] { scheduleOf(words, warmup, minimum); }, part);
}

TEST(Schedule, WarmsUpThenFollowsItsFormula) {
  constexpr int64_t steps = 40, warmup = 10;
  const Schedule constant = scheduleOf("constant", "10"), linear = scheduleOf("linear", "25%", 0.01),
                 cosine = scheduleOf("cosine", "0.25", 0.01),
                 step = scheduleOf("step,step_size=12,gamma=0.2", "10", 0.01);
  for (int64_t s = 0; s < steps; ++s) {
    const double part = static_cast<double>(s - warmup) / (steps - warmup);
    const bool warm = s < warmup;
    const double rising = 0.5 * static_cast<double>(s + 1) / warmup;
    EXPECT_DOUBLE_EQ(constant.rate(0.5, s, steps), warm ? rising : 0.5);
    EXPECT_DOUBLE_EQ(linear.rate(0.5, s, steps), warm ? rising : 0.5 - 0.49 * part);
    EXPECT_DOUBLE_EQ(cosine.rate(0.5, s, steps), warm ? rising : 0.01 + 0.245 * (1 + std::cos(M_PI * part)));
    EXPECT_DOUBLE_EQ(step.rate(0.5, s, steps), warm ? rising : s < 22 ? 0.5 : s < 34 ? 0.1 : 0.02);
  }
  EXPECT_EQ(scheduleOf("step,gamma=0.01", {}, 0.2).rate(0.5, 39, steps), 0.2); // the least one
  EXPECT_DOUBLE_EQ(scheduleOf("step").rate(0.5, 14, steps), 0.05);             // a third of the steps, rounded up
}

/// Numbers of torch.optim.lr_scheduler.OneCycleLR(max_lr=1, total_steps=10), and with three phases.
TEST(Schedule, OneCycleIsPyTorchs) {
  const Schedule two = scheduleOf("one-cycle"),
                 three =
                     scheduleOf("one-cycle,three_phase=true,anneal_strategy=linear,div_factor=10,final_div_factor=100");
  const double wantedTwo[] = {0.04,        0.52,        1.0,         0.950484632, 0.811745654,
                              0.611262022, 0.388741978, 0.188258346, 0.049519368, 4e-6};
  const double wantedThree[] = {0.1, 0.55, 1.0, 0.55, 0.1, 0.0802, 0.0604, 0.0406, 0.0208, 0.001};
  const double wantedMomentum[] = {0.95,        0.9,         0.85,       0.854951557, 0.86882551,
                                   0.888873953, 0.911126047, 0.93117449, 0.945048443, 0.95};
  for (int64_t s = 0; s < 10; ++s) {
    EXPECT_NEAR(two.rate(1, s, 10), wantedTwo[s], 1e-8);
    EXPECT_NEAR(three.rate(1, s, 10), wantedThree[s], 1e-8);
    EXPECT_NEAR(two.cycledMomentum(s, 10), wantedMomentum[s], 1e-8);
  }
}

TEST(Schedule, OneCycleMovesTheMomentumThatThereIs) {
  StepState base, state;
  base.learningRate = 1, base.momentum = 0.5f, base.beta1 = 0.5f;
  const auto at = [&](const std::string &words, Program::Optimizer optimizer) {
    state = base;
    scheduleOf(words).apply(state, base, optimizer, 0, 10);
    return std::pair(state.momentum, state.beta1);
  };
  EXPECT_EQ(at("one-cycle", Program::Optimizer::Sgd), std::pair(0.95f, 0.5f));
  EXPECT_EQ(at("one-cycle", Program::Optimizer::Lion), std::pair(0.5f, 0.95f));
  EXPECT_EQ(at("one-cycle", Program::Optimizer::Adagrad), std::pair(0.5f, 0.5f));
  EXPECT_EQ(at("one-cycle,cycle_momentum=false", Program::Optimizer::Sgd), std::pair(0.5f, 0.5f));
}

TEST(Schedule, ShortRunsHaveRates) {
  for (const char *words : {"step", "linear", "cosine", "one-cycle", "one-cycle,three_phase=1,pct_start=0.5",
                            "one-cycle,pct_start=0", "one-cycle,pct_start=1"})
    for (int64_t steps : {1, 2, 3})
      for (int64_t s = 0; s < steps; ++s) {
        const double rate = scheduleOf(words).rate(1, s, steps);
        EXPECT_TRUE(rate >= 0 && rate <= 1) << words << " step " << s << " of " << steps << ": " << rate;
      }
  EXPECT_EQ(scheduleOf("cosine", "100").rate(1, 1, 2), 0.02); // it ends before it is warm
}

/// Rates of torch.optim.lr_scheduler.ReduceLROnPlateau(factor=0.5, patience=1, threshold=0.1, cooldown=2, min_lr=0.2).
TEST(Schedule, PlateauIsPyTorchs) {
  const Schedule schedule = scheduleOf("plateau,factor=0.5,patience=1,threshold=0.1,cooldown=2", {}, 0.2);
  const double losses[] = {1,    0.95, 0.93, 0.8,  0.79, 0.78, 0.77, 0.76, 0.75,
                           0.74, 0.73, 0.7,  0.69, 0.3,  0.31, 0.32, 0.33};
  const double rates[] = {1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2};
  PlateauState state, rising;
  for (int i = 0; i < 17; ++i) {
    takePlateau(state, *schedule.plateau(), losses[i], false);
    EXPECT_DOUBLE_EQ(schedule.rate(1, i, 17, state.reductions), rates[i]) << i;
  }
  // Of an accuracy more is better; what is no number is not.
  const PlateauRule rule{"accuracy", 0.1, 0};
  EXPECT_FALSE(takePlateau(rising, rule, 0.5, true));
  EXPECT_FALSE(takePlateau(rising, rule, 0.6, true));
  EXPECT_TRUE(takePlateau(rising, rule, std::nan(""), true));
  EXPECT_EQ(scheduleOf("cosine").plateau(), nullptr);
}

TEST(Schedule, RefusesWhatMakesNoSense) {
  expectScheduleRefused("exponential", "knows no 'exponential'");
  expectScheduleRefused("cosine,step_size=3", "constant, linear and cosine take nothing");
  expectScheduleRefused("step,pct_start=0.1", "step takes step_size and gamma");
  expectScheduleRefused("step,step_size=0", "step_size is a number of 1 or more, got '0'");
  expectScheduleRefused("one-cycle,pct_start=2", "pct_start is a number");
  expectScheduleRefused("one-cycle,anneal_strategy=log", "'anneal_strategy=log' makes no sense");
  expectScheduleRefused("one-cycle,three_phase=maybe", "three_phase is true or false");
  expectScheduleRefused("one-cycle", "--warmup does not go with", "5");
  expectScheduleRefused("constant", "--min-lr means nothing", {}, 0.1);
  for (const char *warmup : {"2.5", "101%", "-1", "%", "many"})
    expectScheduleRefused("linear", "--warmup expects a whole number of steps or a share of them", warmup);
  expectScheduleRefused("plateau,factor=1", "factor is a number of 0 or more and below 1");
  expectScheduleRefused("plateau,mode=max", "plateau takes metric, factor, patience");
}

static const Variable groupVariables[] = {{"conv.weight", device(0, {2}), Role::Parameter, Init::Zero},
                                          {"conv.bias", device(256, {2}), Role::Parameter, Init::Zero},
                                          {"conv.bias/momentum", device(512, {2}), Role::Optimizer, Init::Zero},
                                          {"head.bias", device(768, {2}), Role::Parameter, Init::Zero}};

static const TiedName groupTied[] = {{"head.bias", "decoder.out.bias"}};

static std::map<int, ParameterGroup> groupsOf(const std::vector<std::string> &words) {
  Program program{};
  program.variables = groupVariables;
  program.variableCount = 4;
  program.tied = groupTied, program.tiedCount = 1;
  return parameterGroups(words, program);
}

TEST(ParameterGroups, AllThatMatchCountAndLaterOnesWin) {
  const auto groups = groupsOf({".*bias:decay=0", "head.*:lr=10,decay=0.5", "(?:conv).*:lr=0.1"});
  ASSERT_EQ(groups.size(), 3u); // no state of the optimizer
  EXPECT_EQ(groups.at(0).rate, 0.1f);
  EXPECT_LT(groups.at(0).weightDecay, 0);
  EXPECT_EQ(groups.at(1).rate, 0.1f);
  EXPECT_EQ(groups.at(1).weightDecay, 0);
  EXPECT_EQ(groups.at(3).rate, 10);
  EXPECT_EQ(groups.at(3).weightDecay, 0.5f);
}

TEST(ParameterGroups, KnowAParameterByAnyOfItsNames) {
  const auto groups = groupsOf({"(decoder|conv)[.].*:decay=0"});
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups.at(3).weightDecay, 0);
}

TEST(ParameterGroups, RefusesWhatMakesNoSense) {
  const auto refused = [](const std::string &word, const std::string &part) {
    expectError<UsageError>([&] { groupsOf({word}); }, part);
  };
  refused("bias:decay=0", "'bias:decay=0' matches the whole name of no trained parameter");
  refused("conv.bias/momentum:lr=1", "matches the whole name of no trained parameter");
  refused("head.*", "--group takes REGEX:lr=X,decay=Y");
  refused(":lr=1", "--group takes REGEX:lr=X,decay=Y");
  refused("head.*:", "--group takes REGEX:lr=X,decay=Y");
  refused("head.*:rate=1", "'rate=1' is neither lr=X nor decay=Y");
  refused("head.*:lr=1,lr=2", "says lr twice");
  refused("head.*:lr=-1", "'-1' is no finite number of 0 or more");
  refused("head.*:lr=1e39", "is no finite number");
  refused("(head:lr=1", "is no regular expression");
  refused("(h)\\1:lr=1", "is no regular expression without back-references");
  refused("a{1000}:lr=1", "no counts in braces");
  refused(std::string(1001, 'a') + ":lr=1", "at most 1000 characters");
  refused("(a*)*(a*)*(a*)*(b|c)+b:lr=1", "matches the whole name of no trained parameter"); // and ends
}
