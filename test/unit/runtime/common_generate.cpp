// SPDX-License-Identifier: Apache-2.0
// Which token scores choose, where a program has tokens, and prompts that grow.
#include "runtime/Random.h"
#include "runtime/program/Generate.h"
#include "test/unit/runtime/DataPrograms.h"
#include "test/unit/runtime/Harness.h"
#include "test/unit/runtime/TinyProgram.h"

#include <gmock/gmock.h>

namespace sluice {

namespace {

using testing::ElementsAre;

int64_t choose(const std::vector<float> &scores, const Sampling &how, double draw) {
  return chooseToken(scores.data(), static_cast<int64_t>(scores.size()), how, draw);
}

/// How many different tokens are drawn.
int64_t drawn(const std::vector<float> &scores, const Sampling &how) {
  std::set<int64_t> tokens;
  for (int i = 0; i < 1000; ++i)
    tokens.insert(choose(scores, how, i / 1000.0));
  return static_cast<int64_t>(tokens.size());
}

} // namespace

TEST(Sampling, GreedyTakesTheFirstOfTheHighest) {
  EXPECT_EQ(choose({1, 3, 3, 2}, {}, 0.999), 1);
  EXPECT_EQ(choose({-HUGE_VALF, -5}, {}, 0), 1);
  EXPECT_EQ(choose({7}, {}, 0), 0);
}

TEST(Sampling, RefusesScoresThatAreNone) {
  const float nan = std::nanf("");
  expectError<LossNotFinite>([&] { choose({1, nan}, {}, 0); }, "the score of token 1 is nan");
  expectError<LossNotFinite>([&] { choose({HUGE_VALF, 1}, {0.5}, 0); }, "the score of token 0 is inf");
  expectError<LossNotFinite>([&] { choose({-HUGE_VALF, -HUGE_VALF}, {}, 0); }, "no token has a score above -inf");
}

TEST(Sampling, NucleusHasAsFewTokensAsReachTheProbability) {
  const std::vector<float> even = {2, 2, 2, 2}; // each has a quarter, exactly
  EXPECT_EQ(drawn(even, {1, 0, 1}), 4);
  EXPECT_EQ(drawn(even, {1, 0, 0.75}), 3);
  EXPECT_EQ(drawn(even, {1, 0, 0.7500001}), 4);
  EXPECT_EQ(drawn(even, {1, 0, 0.5}), 2);
  EXPECT_EQ(drawn(even, {1, 0, 0.25}), 1);
  EXPECT_EQ(drawn(even, {1, 0, 1e-9}), 1);
  EXPECT_EQ(choose(even, {1, 0, 0.5}, 0.999), 1); // of equal ones the first stand before the others
  EXPECT_EQ(choose({0, 9, 0, 0}, {1, 0, 0.9}, 0.999), 1);
}

TEST(Sampling, TopKTakesTheFirstOfEqualOnes) {
  const std::vector<float> scores = {1, 5, 3, 3, 3};
  EXPECT_EQ(drawn(scores, {100, 3, 1}), 3);
  EXPECT_EQ(choose(scores, {100, 3, 1}, 0.9999), 3);
  EXPECT_EQ(drawn(scores, {100, 99, 1}), 5);
  EXPECT_EQ(drawn(scores, {100, 1, 1}), 1);
  EXPECT_EQ(drawn({1, 1, 1, 1, 1}, {1, 4, 0.5}), 2); // the nucleus of what K leaves
}

TEST(Sampling, DrawsByProbability) {
  const std::vector<float> scores = {0, 1, 2, -HUGE_VALF};
  for (const double temperature : {0.5, 1.0, 3.0}) {
    std::vector<double> wanted, found(4);
    double sum = 0;
    for (const float score : scores)
      sum += wanted.emplace_back(std::exp(static_cast<double>(score) / temperature));
    constexpr int draws = 20000;
    for (int i = 0; i < draws; ++i)
      found[static_cast<size_t>(choose(scores, {temperature}, (i + 0.5) / draws))] += 1.0 / draws;
    for (size_t i = 0; i < scores.size(); ++i)
      EXPECT_NEAR(found[i], wanted[i] / sum, 1e-4) << temperature;
  }
  EXPECT_EQ(choose(scores, {1e-3}, 0.9999), 2);
  EXPECT_EQ(choose({3e38f, -3e38f}, {1}, 0.9999), 0); // whose difference is no float
}

TEST(Generation, ChecksItsNumbers) {
  const auto made = [](const auto &change) {
    Arguments arguments;
    change(arguments);
    return Generation(arguments);
  };
  EXPECT_EQ(made([](Arguments &) {}).sampling.temperature, 0);
  EXPECT_EQ(made([](Arguments &a) { a.topP = 0.9; }).sampling.temperature, 1);
  EXPECT_EQ(made([](Arguments &a) { a.topK = 5; }).sampling.temperature, 1);
  EXPECT_EQ(made([](Arguments &a) { a.stops = {"3", "0"}; }).stops, (std::vector<int64_t>{3, 0}));
  for (const double p : {0.0, 1.5})
    expectError<UsageError>([&] { made([p](Arguments &a) { a.topP = p; }); }, "--top-p expects a number above 0");
  expectError<UsageError>([&] { made([](Arguments &a) { a.temperature = 0, a.topK = 3; }); },
                          "--temperature 0 takes the likeliest token");
  for (const char *word : {"-1", "x", "1.5"})
    expectError<UsageError>([&] { made([word](Arguments &a) { a.stops = {word}; }); },
                            "--stop expects the id of a token, got");
}

namespace {

constexpr Tensor whole(int64_t extent) { return host(0, {2, extent}, Layout::RowMajor, DataType::I64); }

/// Ids of a table of 10, their places among 8, a mask.
const Input decoder[] = {{"ids", {}, whole(5), 10},
                         {"places", {}, whole(5), 8},
                         {"mask", {}, host(0, {2, 5})},
                         {"target", {}, whole(5), 10, -100, false, true}};
const Output scored[] = {{"y", device(0, {2, 5, 10}), 3, "token-cross-entropy"}};

struct Decoder {
  Program program = programWith(decoder);
  Entry entry;
  Decoder() {
    program.outputs = scored;
    entry.evaluate = [](Session &) {};
  }
  Prompts prompts(const Folder &folder, const std::string &lines) {
    folder.write("p.jsonl", lines);
    return {folder / "p.jsonl", {}, program, tokenPlaces(program, entry)};
  }
};

} // namespace

TEST(Prompts, KnowWhereTokensAre) {
  Decoder made;
  const TokenPlaces places = tokenPlaces(made.program, made.entry);
  EXPECT_EQ(places.ids, 0);
  EXPECT_EQ(places.longest, 5);
  EXPECT_EQ(places.words, 10);
  EXPECT_THAT(places.beside, ElementsAre(1, 2));
  const Output wider[] = {{"y", device(0, {2, 5, 12}), 3, "token-cross-entropy"}};
  made.program.outputs = wider; // two tables, none of as many rows as there are scores
  expectError<UsageError>([&] { tokenPlaces(made.program, made.entry); }, "of which that cannot be told");
  made.program.inputs += 1; // places alone are ids
  made.program.inputCount = 3;
  EXPECT_EQ(tokenPlaces(made.program, made.entry).words, 8);
  made.entry.evaluate = nullptr;
  expectError<UsageError>([&] { tokenPlaces(made.program, made.entry); }, "keeps no scores");
}

TEST(Prompts, GrowAndAreFilledUp) {
  Folder folder;
  Decoder made;
  Prompts prompts = made.prompts(folder, "{\"ids\": [3, 4], \"places\": [0, 1], \"mask\": [1, 1, 0.5]}\n"
                                         "{\"ids\": [5], \"places\": [2, 4], \"mask\": [1, 1]}\n");
  prompts.append(0, 9);
  prompts.append(0, 8);
  prompts.append(1, 7);
  EXPECT_EQ(prompts.length(0), 4);
  EXPECT_EQ(prompts.given(0), 2);
  EXPECT_THAT(prompts.ids(0, 2, 4), ElementsAre(9, 8));
  const std::unique_ptr<Dataset> data = prompts.dataset({1, 0}), other = prompts.dataset({1, 0}, 6);
  std::vector<int64_t> ids(10), places(10), targets(10);
  std::vector<float> mask(10);
  data->gather({0, 0}, {ids.data(), places.data(), mask.data(), targets.data()});
  EXPECT_THAT(ids, ElementsAre(5, 7, 0, 0, 0, 3, 4, 9, 8, 0));
  EXPECT_THAT(places, ElementsAre(2, 4, 0, 0, 0, 0, 1, 2, 3, 0));
  EXPECT_THAT(mask, ElementsAre(1, 1, 0, 0, 0, 1, 1, 0.5f, 0, 0));
  other->gather({0, 0}, {ids.data(), places.data(), mask.data(), targets.data()});
  EXPECT_THAT(ids, ElementsAre(5, 7, 6, 6, 6, 3, 4, 9, 8, 6));
}

TEST(Prompts, RefuseWhatIsNone) {
  Folder folder;
  Decoder made;
  const std::string good = "{\"ids\": [3, 4], \"places\": [0, 1], \"mask\": [1, 1]}\n";
  const std::pair<const char *, const char *> wrong[] = {
      {"{\"ids\": [], \"places\": [0, 1], \"mask\": [1, 1]}", "line 2: 'ids' is an empty list"},
      {"{\"ids\": 3, \"places\": [0, 1], \"mask\": [1, 1]}", "line 2: 'ids' is one number"},
      {"{\"ids\": \"a\", \"places\": [0, 1], \"mask\": [1, 1]}", "line 2 has for 'ids' something else than whole"},
      {"{\"ids\": [3, 10], \"places\": [0, 1], \"mask\": [1, 1]}",
       "line 2: 'ids' has the id 10, there are those from 0 to 9"},
      {"{\"ids\": [-1], \"places\": [0, 1], \"mask\": [1, 1]}", "line 2: 'ids' has the id -1"},
      {"{\"ids\": [1, 1, 1, 1, 1, 1], \"places\": [0, 1], \"mask\": [1, 1]}",
       "line 2: 'ids' has 6 tokens, the program takes 5"},
      {"{\"ids\": [1, 1, 1], \"places\": [0, 1], \"mask\": [1, 1, 1]}",
       "line 2: 'places' has 2 values, the prompt 3 tokens"},
      {"{\"ids\": [1], \"places\": [0], \"mask\": [1, 1]}", "line 2: 'places' has 1 values"},
      {"{\"ids\": [1], \"mask\": [1, 1]}", "line 2 has nothing for 'places'"},
      {"[", "line 2 is no JSON object"}};
  for (const auto &[line, message] : wrong)
    expectError<DataError>([&, text = line] { made.prompts(folder, good + text + "\n"); }, message);
  expectError<DataError>([&] { made.prompts(folder, "\n"); }, "p.jsonl has no prompt");
  // What a list goes on to is looked at when it is read.
  Prompts prompts = made.prompts(folder, "{\"ids\": [1], \"places\": [0, 7], \"mask\": [1, 1]}\n");
  prompts.append(0, 1);
  prompts.append(0, 1);
  std::vector<int64_t> ids(10), places(10), targets(10);
  std::vector<float> mask(10);
  expectError<DataError>(
      [&] { prompts.dataset({0})->gather({0, 0}, {ids.data(), places.data(), mask.data(), targets.data()}); },
      "line 1 holds 14, 'places' must lie between 0 and 7");
}

} // namespace sluice

/// tiny_program.cpp knows images, and no tokens.
class GenerateFlags : public TinyProgram {};

TEST_F(GenerateFlags, AreRefusedWhereTheyMeanNothing) {
  folder.write("p.jsonl", "{\"input\": [1]}\n");
  expectFailure(2, "--generate p.jsonl --output a.jsonl", "--generate needs a model that scores the next token");
  expectFailure(2, "--generate p.jsonl", "--generate needs --output FILE.jsonl");
  expectFailure(2, "--generate p.jsonl --output a.npy", "--output a.npy: it writes .jsonl");
  expectFailure(2, "--generate p.jsonl --output a.jsonl --predict data", "--predict and --generate exclude each other");
  expectFailure(2, "--output a.jsonl --evaluate data", "--output needs --predict DIR or --generate FILE.jsonl");
  for (const char *flag : {"--tokens 3", "--stop 3", "--temperature 1", "--top-k 3", "--top-p 0.5"})
    expectFailure(2, std::string("--evaluate data ") + flag, "needs --generate FILE.jsonl");
  expectFailure(2, "--generate p.jsonl --output a.jsonl --tokens 0", "--tokens expects a whole number of 1 or more");
  expectFailure(2, "--generate p.jsonl --output a.jsonl --top-p 1.1", "--top-p expects a number above 0");
}
