// SPDX-License-Identifier: Apache-2.0
// Command lines: every flag is validated or refused by name.
#include "runtime/program/Arguments.h"

#include "runtime/Errors.h"
#include "runtime/program/Flags.h"
#include "runtime/program/HelpText.h"
#include "test/unit/runtime/Folder.h"

#include <sstream>

using namespace sluice;

static Program programWith(Program::Optimizer optimizer) {
  Program program{};
  program.model = "m.onnx";
  program.optimizer = optimizer;
  program.exportTemplate = "m.template";
  return program;
}

static Arguments parse(std::vector<const char *> words, Program::Optimizer optimizer = Program::Optimizer::Sgd) {
  words.insert(words.begin(), "prog");
  return parseArguments(static_cast<int>(words.size()), words.data(), programWith(optimizer));
}

static void expectRefused(const std::vector<const char *> &words, const std::string &part,
                          Program::Optimizer optimizer = Program::Optimizer::Sgd) {
  expectError<UsageError>([&] { parse(words, optimizer); }, part);
}

TEST(Arguments, ReadsValuesInBothForms) {
  Arguments arguments = parse({"--data", "d", "--lr=0.5", "--momentum", "0", "--steps=12", "--shuffle", "--seed",
                               "18446744073709551615", "--log", "-"});
  EXPECT_EQ(arguments.data, "d");
  EXPECT_EQ(arguments.learningRate, 0.5);
  EXPECT_EQ(arguments.steps, 12);
  EXPECT_EQ(arguments.seed, UINT64_MAX);
  EXPECT_TRUE(arguments.shuffle);
  StepState state = arguments.stepState(Program::Optimizer::Sgd);
  EXPECT_EQ(state.learningRate, 0.5f);
  EXPECT_EQ(state.momentum, 0);
}

TEST(Arguments, FillsDefaultsByOptimizer) {
  Arguments none = parse({"--data", "d"});
  EXPECT_EQ(none.stepState(Program::Optimizer::Sgd).momentum, 0.9f);
  EXPECT_EQ(none.stepState(Program::Optimizer::Adam).learningRate, 0.001f);
  EXPECT_EQ(none.stepState(Program::Optimizer::AdamW).weightDecay, 0.01f);
  EXPECT_EQ(none.stepState(Program::Optimizer::Adagrad).epsilon, 1e-10f);
  EXPECT_EQ(none.stepState(Program::Optimizer::RmsProp).momentum, 0);
  EXPECT_EQ(none.stepState(Program::Optimizer::RmsProp).alpha, 0.99f);
  EXPECT_EQ(none.stepState(Program::Optimizer::Lamb).epsilon, 1e-6f);
  EXPECT_EQ(none.stepState(Program::Optimizer::Lion).beta2, 0.99f);
  EXPECT_EQ(none.stepState(Program::Optimizer::Sgd).clipNorm, HUGE_VALF);
  EXPECT_EQ(none.stepState(Program::Optimizer::Sgd).batches, 1);
}

TEST(Arguments, RefusesUnknownAndMissing) {
  expectRefused({"--dta", "d"}, "unknown flag '--dta' (see --help); did you mean --data?");
  for (const auto &[word, meant] : {std::pair{"--epoch=3", "--epochs"},
                                    {"--ephocs", "--epochs"},
                                    {"--learning", ""},
                                    {"--learning-rate", "--lr"},
                                    {"--learning_rate", "--lr"},
                                    {"--learningRate", "--lr"},
                                    {"--validation_split=20%", "--validation-split"},
                                    {"--x", ""}}) {
    const std::string message = text("unknown flag '", std::string(word).substr(0, std::string(word).find('=')),
                                     "' (see --help)", *meant ? text("; did you mean ", meant, "?") : "");
    expectRefused({"--data", "d", word}, message);
    try {
      parse({"--data", "d", word});
    } catch (const UsageError &error) {
      EXPECT_EQ(error.what(), message);
    }
  }
  for (const char *word : {"--batch=4", "--batch-size=4"})
    expectRefused({"--data", "d", word},
                  "(see --help); --batch is a flag of sluicec, which decides it when it makes the program");
  expectRefused({"data"}, "unknown argument 'data'");
  expectRefused({"-h"}, "unknown flag '-h'");
  expectRefused({"--data"}, "--data needs a value");
  expectRefused({"--data", "--steps", "3"}, "--data needs a value");
  expectRefused({"--data="}, "--data expects DIR|KIND:PATH, got ''");
  expectRefused({"--data", "a", "--data", "b"}, "--data is given twice");
  expectRefused({"--shuffle=yes"}, "--shuffle takes no value, got 'yes'; --shuffle=false switches it off");
  expectRefused({}, "nothing to do");
}

TEST(Arguments, RefusesValuesOutOfRange) {
  for (const char *bad : {"-1", "nan", "inf", "1e39", "0x10", "1,5", "1e", "", " 1", "1 "}) {
    SCOPED_TRACE(bad);
    expectRefused({"--data", "d", "--lr", bad}, "--lr expects a finite number of 0 or more, got '");
  }
  expectRefused({"--data", "d", "--momentum", "1"},
                "--momentum expects a finite number of 0 or more and below 1, got '1'");
  for (const char *bad : {"-1", "1.5", "9223372036854775808", "ten", ""}) {
    SCOPED_TRACE(bad);
    expectRefused({"--data", "d", "--steps", bad}, "--steps expects a whole number of 0 or more, got '");
  }
  expectRefused({"--data", "d", "--threads", "0"}, "--threads expects a whole number of 1 or more");
  expectRefused({"--data", "d", "--seed", "-1"}, "--seed expects a whole number from 0 to 2^64 - 1");
}

TEST(Arguments, RefusesWhatDoesNotGoTogether) {
  expectRefused({"--data", "d", "--steps", "1", "--epochs", "1"}, "exclude each other");
  expectRefused({"--evaluate", "d", "--steps", "1"}, "--steps needs --data");
  expectRefused({"--evaluate", "d", "--trace", "t"}, "--trace needs --data");
  expectRefused({"--data", "d", "--checkpoint-every", "5"}, "--checkpoint-every needs --checkpoint");
  expectRefused({"--data", "d", "--keep-checkpoints", "5"}, "--keep-checkpoints needs --checkpoint");
  expectRefused({"--data", "d", "--beta1", "0.5"}, "--beta1 means nothing to sgd");
  expectRefused({"--data", "d", "--momentum", "0.5"}, "--momentum means nothing to adam", Program::Optimizer::Adam);
  expectRefused({"--data", "d", "--no-graph"}, "compiled with --target=cuda");
}

TEST(Arguments, RefusesWhatTheOptimizerOrThePlanHasNot) {
  expectRefused({"--data", "d", "--nesterov"}, "--nesterov means nothing to adam", Program::Optimizer::Adam);
  expectRefused({"--data", "d", "--nesterov", "--momentum", "0"}, "--nesterov looks ahead by the momentum");
  expectRefused({"--data", "d", "--alpha", "0.5"}, "--alpha means nothing to lion", Program::Optimizer::Lion);
  expectRefused({"--data", "d", "--lr-decay", "0.5"}, "--lr-decay means nothing to sgd");
  expectRefused({"--data", "d", "--epsilon", "0.5"}, "--epsilon means nothing to lion", Program::Optimizer::Lion);
  for (const char *flag : {"--clip-norm", "--accumulate"})
    expectRefused({"--data", "d", flag, "1"}, std::string("compile it again with sluicec ") + flag);
  expectRefused({"--data", "d", "--ema", "0.9"}, "compile it again with sluicec --ema");
  expectRefused({"--data", "d", "--profile-out", "p", "--profile-errors", "1000000"},
                "--profile-errors expects a whole number of 1 or more and below 1000000, got '1000000'");
  expectRefused({"--data", "d", "--ema", "1"}, "--ema expects a finite number of 0 or more and below 1");
  expectRefused({"--data", "d", "--accumulate", "0"}, "--accumulate expects a whole number of 1 or more");
  expectRefused({"--data", "d", "--label-smoothing", "0.1"}, "--label-smoothing is for cross-entropies of classes");
  expectRefused({"--data", "d", "--schedule", "linear", "--min-lr", "1"}, "--min-lr 1 is above the rate of 0.01");
}

TEST(Arguments, HelpNamesEveryContractFlag) {
  std::string help = helpText("prog", programWith(Program::Optimizer::Sgd));
  for (const char *flag :
       {"--data",    "--steps",          "--epochs",      "--lr",      "--momentum",   "--weight-decay",
        "--seed",    "--threads",        "--log",         "--trace",   "--checkpoint", "--resume",
        "--export",  "--dump-gradients", "--profile-out", "--plan",    "--evaluate",   "--checkpoint-every",
        "--shuffle", "--beta1",          "--beta2",       "--epsilon", "--offload-to", "--no-graph"})
    EXPECT_THAT(help, testing::HasSubstr(std::string("  ") + flag + " "));
  EXPECT_TRUE(parse({"--help"}).help);
}

TEST(Arguments, ExamplesOfHelpAreCommandLinesThatMakeSense) {
  const std::string help = helpText("prog", programWith(Program::Optimizer::Sgd));
  for (const FlagGroup &group : flagGroups()) {
    EXPECT_THAT(help, testing::HasSubstr(std::string("\n  Example: prog ") + group.example + "\n"));
    std::vector<std::string> words;
    std::istringstream line(group.example);
    bool ofTheGroup = false;
    for (std::string word; line >> word; words.push_back(word))
      for (const Flag &flag : group.flags)
        ofTheGroup |= word == flag.name;
    EXPECT_TRUE(ofTheGroup) << group.heading;
    std::vector<const char *> pointers;
    for (const std::string &word : words)
      pointers.push_back(word.c_str());
    EXPECT_NO_THROW(parse(pointers)) << group.example;
  }
}

TEST(Arguments, LinesOfHelpAreNotWiderThanAHundredColumns) {
  std::istringstream help(helpText("prog", programWith(Program::Optimizer::Sgd)));
  for (std::string line; std::getline(help, line);)
    EXPECT_LE(line.size(), 100u) << line;
  EXPECT_EQ(wrapped("one two", 97, 4), "one\n    two\n");
  EXPECT_EQ(wrapped("one two", 93, 4), "one two\n");
  const std::string word(120, 'x'); // a file name, say: it is not broken
  EXPECT_EQ(wrapped("a " + word + " b", 0, 2), "a\n  " + word + "\n  b\n");
  EXPECT_EQ(wrapped("", 0, 2), "\n");
}
