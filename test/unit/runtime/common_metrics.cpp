// SPDX-License-Identifier: Apache-2.0
// Metrics against plain sums; what is chosen for which program; which evaluation is the best.
#include "runtime/Errors.h"
#include "runtime/program/Metrics.h"
#include "runtime/program/Selection.h"
#include "test/unit/runtime/Folder.h"

#include <cmath>
#include <gmock/gmock.h>
#include <random>

using namespace sluice;

namespace {

/// A program of one input and its target, of which only scores and targets are looked at.
struct Scored {
  Scored(Shape output, Shape target, DataType type, const char *loss, int64_t ignoreIndex = Loss::none,
         Layout layout = Layout::RowMajor)
      : scores(device(0, output, layout)), labels(device(1 << 16, target, Layout::RowMajor, type)) {
    input.name = "target";
    input.slots[0] = input.slots[1] = input.staging = labels;
    input.ignoreIndex = ignoreIndex;
    program.batch = output[0];
    this->output = {"y", scores, 0, loss};
    program.outputs = &this->output;
    program.outputCount = 1;
    program.inputs = &input;
    program.inputCount = 1;
    if (type == DataType::I64)
      program.correct = device(1 << 17, {}, Layout::RowMajor, DataType::I64);
  }

  Tensor scores, labels;
  Input input{};
  Output output{};
  Program program{};
};

const size_t arena = (1 << 17) + 256;

std::vector<float> randomScores(size_t count) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float &value : values)
    value = uniform(generator);
  return values;
}

} // namespace

TEST(Metrics, TopFiveCountsWholeSamplesOnly) {
  Scored scored({4, 8}, {4}, DataType::I64, "softmax-cross-entropy");
  Session session(arena, 256, 0);
  std::vector<float> values(32);
  for (size_t i = 0; i < 32; ++i)
    values[i] = static_cast<float>(i % 8); // class 7 first, then 6 ...
  const std::vector<int64_t> right = {7, 3, 2, 0};
  session.write(scored.scores, values.data());
  session.write(scored.labels, right.data());
  const MetricChoice choice(scored.program, std::nullopt);
  EXPECT_EQ(choice.all(), (std::vector<Measure>{Metric::Loss, Metric::Accuracy, Metric::Top5}));
  Tally tally(scored.program, choice);
  tally.add(session, scored.program, 4); // 7 and 3 are among the first five
  tally.add(session, scored.program, 3); // the last one is filling
  EXPECT_EQ(tally.results().at(Metric::Top5), 4.0 / 7);
}

TEST(Metrics, EqualScoresGoToTheFirstClass) {
  Scored scored({1, 6}, {1}, DataType::I64, "softmax-cross-entropy");
  Session session(arena, 256, 0);
  const std::vector<float> values(6, 1.0f);
  for (int64_t right = 0; right < 6; ++right) {
    session.write(scored.scores, values.data());
    session.write(scored.labels, &right);
    const MetricChoice choice(scored.program, "top5,confusion");
    Tally tally(scored.program, choice);
    tally.add(session, scored.program, 1);
    EXPECT_EQ(tally.results().at(Metric::Top5), right < 5 ? 1 : 0);
    EXPECT_EQ(tally.confusion()[static_cast<size_t>(right)][0], 1);
  }
}

/// Pixels, in both layouts, some of them ignored.
TEST(Metrics, MeanIouIsThatOfPlainSets) {
  const int64_t classes = 3, pixels = 4 * 5;
  const std::vector<float> scores = randomScores(static_cast<size_t>(2 * classes * pixels));
  std::vector<int64_t> right;
  for (int64_t i = 0; i < 2 * pixels; ++i)
    right.push_back(i % 7 == 0 ? 255 : i % 2); // class 2 is never right
  std::vector<int64_t> common(3), either(3);
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t p = 0; p < pixels; ++p) {
      int64_t answer = 0;
      for (int64_t k = 1; k < classes; ++k)
        if (scores[static_cast<size_t>((n * classes + k) * pixels + p)] >
            scores[static_cast<size_t>((n * classes + answer) * pixels + p)])
          answer = k;
      const int64_t wanted = right[static_cast<size_t>(n * pixels + p)];
      for (int64_t k = 0; k < classes && wanted != 255; ++k) {
        common[static_cast<size_t>(k)] += wanted == k && answer == k;
        either[static_cast<size_t>(k)] += wanted == k || answer == k;
      }
    }
  double expected = 0;
  for (size_t k = 0; k < 3; ++k)
    expected += static_cast<double>(common[k]) / static_cast<double>(either[k]) / 3;

  for (Layout layout : {Layout::RowMajor, Layout::NHWC}) {
    Scored scored({2, 3, 4, 5}, {2, 4, 5}, DataType::I64, "softmax-cross-entropy", 255, layout);
    Session session(arena, 256, 0);
    std::vector<float> physical(scores);
    if (layout == Layout::NHWC)
      for (int64_t n = 0; n < 2; ++n)
        for (int64_t k = 0; k < classes; ++k)
          for (int64_t p = 0; p < pixels; ++p)
            physical[static_cast<size_t>((n * pixels + p) * classes + k)] =
                scores[static_cast<size_t>((n * classes + k) * pixels + p)];
    session.write(scored.scores, physical.data());
    session.write(scored.labels, right.data());
    const MetricChoice choice(scored.program, std::nullopt);
    EXPECT_TRUE(choice.has(Metric::MeanIou));
    Tally tally(scored.program, choice);
    tally.add(session, scored.program, 2);
    EXPECT_NEAR(tally.results().at(Metric::MeanIou), expected, 1e-12);
  }
}

TEST(Metrics, TokensHaveTheirClassesLast) {
  Scored scored({1, 2, 6}, {1, 2}, DataType::I64, "token-cross-entropy");
  Session session(arena, 256, 0);
  const std::vector<float> values = {0, 0, 0, 0, 0, 9, 9, 0, 0, 0, 0, 0};
  const std::vector<int64_t> right = {5, 1};
  session.write(scored.scores, values.data());
  session.write(scored.labels, right.data());
  const MetricChoice choice(scored.program, "perplexity,confusion");
  EXPECT_EQ(MetricChoice(scored.program, std::nullopt).all(),
            (std::vector<Measure>{Metric::Loss, Metric::Accuracy, Metric::Perplexity}));
  Tally tally(scored.program, choice);
  tally.add(session, scored.program, 1);
  EXPECT_EQ(tally.confusion()[5][5], 1);
  EXPECT_EQ(tally.confusion()[1][0], 1);
}

TEST(Metrics, MeanAbsoluteError) {
  Scored scored({2, 2}, {2, 2}, DataType::F32, "mse");
  Session session(arena, 256, 0);
  const std::vector<float> values = {1, 2, 3, 4}, right = {1.5f, 2, 1, 100};
  session.write(scored.scores, values.data());
  session.write(scored.labels, right.data());
  const MetricChoice choice(scored.program, std::nullopt);
  EXPECT_EQ(choice.all(), (std::vector<Measure>{Metric::Loss, Metric::Mae}));
  Tally tally(scored.program, choice);
  tally.add(session, scored.program, 2);
  tally.add(session, scored.program, 1);
  EXPECT_EQ(tally.results().at(Metric::Mae), (0.5 + 0 + 2 + 96 + 0.5 + 0) / 6);
}

/// Numbers of scikit-learn 1.x: macro averages, roc_auc_score of softmax probabilities by multi_class="ovr".
TEST(Metrics, OfClassesAreThoseOfScikitLearn) {
  Scored scored({8, 3}, {8}, DataType::I64, "softmax-cross-entropy");
  Session session(arena, 256, 0);
  const std::vector<float> values = {0.2f, 0.9f, -0.4f, 1.5f, 0.1f, 0.3f, 0.4f, 0.4f, 0.2f, -1, 0.5f, 2,
                                     0.3f, 0.8f, 0.6f,  0.1f, 0.2f, 0.9f, 1,    0,    0.5f, 0,  0.7f, 0.1f};
  const std::vector<int64_t> right = {1, 0, 1, 2, 0, 2, 2, 1};
  session.write(scored.scores, values.data());
  session.write(scored.labels, right.data());
  const MetricChoice choice(scored.program, "precision,recall,f1,auc");
  Tally tally(scored.program, choice);
  tally.add(session, scored.program, 8);
  const auto found = tally.results();
  EXPECT_NEAR(found.at(Metric::Precision), 0.6666666666666666, 1e-12);
  EXPECT_NEAR(found.at(Metric::Recall), 0.611111111111111, 1e-12);
  EXPECT_NEAR(found.at(Metric::F1), 0.6222222222222222, 1e-12);
  EXPECT_NEAR(found.at(Metric::Auc), 0.8722222222222222, 1e-6);
  EXPECT_EQ(tally.classHits()[2].there, 3);
  EXPECT_EQ(tally.classHits()[2].precision(), 1);
  EXPECT_THAT(hitsText(tally.classHits(), {"cat", "dog", "owl"}), testing::HasSubstr("owl     1.0000  0.6667  0.8000"));
  expectError<UsageError>([&] { choice.checkRoom(scored.program, int64_t{1} << 24); }, "'auc' keeps 3 scores of each");
  choice.checkRoom(scored.program, 1000);
}

TEST(Metrics, OfTwoClassesAndOfLabels) {
  Scored two({4, 2}, {4}, DataType::I64, "softmax-cross-entropy");
  Session session(arena, 256, 0);
  const std::vector<float> values = {0, 1, 0, 2, 0, 1, 0, 3}; // 1, 2, 1, 3 for the second class
  const std::vector<int64_t> right = {0, 0, 1, 1};
  session.write(two.scores, values.data());
  session.write(two.labels, right.data());
  const MetricChoice area(two.program, "auc");
  Tally tally(two.program, area);
  tally.add(session, two.program, 4);
  EXPECT_DOUBLE_EQ(tally.results().at(Metric::Auc), 0.625); // of four pairs two are right and one is a tie

  // A label is answered where its logit is above 0, its probability above 1/2.
  Scored labels({4, 1}, {4, 1}, DataType::F32, "bce-with-logits");
  const std::vector<float> logits = {0.4f, -1, 2, 0.6f}, there = {1, 1, 0, 1};
  session.write(labels.scores, logits.data());
  session.write(labels.labels, there.data());
  for (const bool probabilities : {false, true}) {
    labels.output.probabilities = probabilities;
    const MetricChoice choice(labels.program, "precision,recall,f1,auc");
    Tally counted(labels.program, choice);
    counted.add(session, labels.program, 4);
    EXPECT_DOUBLE_EQ(counted.results().at(Metric::Precision), probabilities ? 1.0 / 2 : 2.0 / 3);
    EXPECT_DOUBLE_EQ(counted.results().at(Metric::Recall), probabilities ? 1.0 / 3 : 2.0 / 3);
    EXPECT_DOUBLE_EQ(counted.results().at(Metric::Auc), 0);
  }
}

/// A run that has diverged is measured as well: NaN is a score below all others, and breaks no sort.
TEST(Metrics, AreasTakeNanForTheLowestScore) {
  RocArea withNan(RocArea::Kind::Labels, 1, true), withLowest(RocArea::Kind::Labels, 1, true);
  for (int i = 0; i < 500; ++i) {
    const float score = i % 3 == 0 ? std::nanf("") : static_cast<float>(i * 37 % 101), label = i % 5 < 2 ? 1.0f : 0.0f,
                lowest = i % 3 == 0 ? -1.0f : score;
    withNan.addLabels(&score, &label);
    withLowest.addLabels(&lowest, &label);
  }
  ASSERT_TRUE(withNan.value());
  EXPECT_EQ(withNan.value(), withLowest.value());
}

TEST(Metrics, RSquaredIsTheMeanOverNumbers) {
  Scored scored({4, 2}, {4, 2}, DataType::F32, "mse");
  Session session(arena, 256, 0);
  const std::vector<float> outputs = {1, 2, 2, 3.5f, 2.5f, 1, 4, 2}, targets = {1.5f, 2, 2, 3, 3, 1.5f, 5, 2.5f};
  session.write(scored.scores, outputs.data());
  session.write(scored.labels, targets.data());
  const MetricChoice choice(scored.program, "r2");
  Tally tally(scored.program, choice);
  tally.add(session, scored.program, 4);
  EXPECT_NEAR(tally.results().at(Metric::R2), 0.5956521739130435, 1e-12); // r2_score of scikit-learn
  const std::vector<float> diverged(8, NAN);
  session.write(scored.scores, diverged.data());
  tally.add(session, scored.program, 4);
  EXPECT_TRUE(std::isnan(tally.results().at(Metric::R2)));
}

/// Yes or no of each pixel, some of them ignored: in one channel that of the foreground, of several of each.
TEST(Metrics, LabelsOfPixelsAreThoseOfPlainSets) {
  for (const Shape &shape : {Shape{2, 1, 4, 5}, Shape{2, 4, 5}, Shape{2, 3, 4, 5}}) {
    const int64_t labels = shape.rank == 4 ? shape[1] : 1, pixels = 20;
    Scored scored(shape, shape, DataType::F32, "bce-with-logits", 255);
    const std::vector<float> scores = randomScores(static_cast<size_t>(shape.elements()));
    std::vector<float> right;
    std::vector<Hits> hits(static_cast<size_t>(labels));
    int64_t counted = 0, rightly = 0;
    double absolute = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      right.push_back(i % 7 == 0 ? 255.0f : static_cast<float>(i % 3 == 0));
      if (right[i] == 255)
        continue;
      Hits &own = hits[i / pixels % static_cast<size_t>(labels)];
      const bool there = right[i] == 1, answered = scores[i] > 0;
      own.there += there, own.answered += answered, own.right += there && answered;
      ++counted, rightly += there == answered;
      absolute += std::abs(static_cast<double>(scores[i]) - static_cast<double>(right[i]));
    }
    Session session(arena, 256, 0);
    session.write(scored.scores, scores.data());
    session.write(scored.labels, right.data());
    const MetricChoice usual(scored.program, std::nullopt);
    EXPECT_EQ(usual.all(), (std::vector<Measure>{Metric::Loss, Metric::Accuracy, Metric::MeanIou}));
    expectError<UsageError>([&] { MetricChoice(scored.program, "r2"); }, "'r2' needs targets that all count");
    const MetricChoice choice(scored.program, "accuracy,mean_iou,precision,recall,f1,auc,mae");
    Tally tally(scored.program, choice);
    tally.add(session, scored.program, 2);
    const auto results = tally.results();
    EXPECT_EQ(results.at(Metric::Accuracy), static_cast<double>(rightly) / static_cast<double>(counted));
    EXPECT_NEAR(results.at(Metric::Mae), absolute / static_cast<double>(counted), 1e-12);
    ASSERT_EQ(tally.classHits().size(), hits.size());
    double iou = 0;
    for (size_t k = 0; k < hits.size(); ++k) {
      EXPECT_EQ(tally.classHits()[k].there, hits[k].there);
      EXPECT_EQ(tally.classHits()[k].answered, hits[k].answered);
      EXPECT_EQ(tally.classHits()[k].right, hits[k].right);
      iou += hits[k].iou() / static_cast<double>(labels);
    }
    EXPECT_NEAR(results.at(Metric::MeanIou), iou, 1e-15);
    if (labels == 1) { // pairs of a pixel of the foreground and one of the background
      double higher = 0, pairs = 0;
      for (size_t i = 0; i < scores.size(); ++i)
        for (size_t k = 0; k < scores.size(); ++k)
          if (right[i] == 1 && right[k] == 0)
            ++pairs, higher += scores[i] > scores[k];
      EXPECT_NEAR(results.at(Metric::Auc), higher / pairs, 1e-12);
    }
  }
}

TEST(Metrics, WhatMeansNothingIsRefused) {
  Scored numbers({2, 2}, {2, 2}, DataType::F32, "mse"), few({4, 3}, {4}, DataType::I64, "softmax-cross-entropy");
  auto choose = [](const Scored &scored, const char *words) {
    return [&scored, words] { MetricChoice(scored.program, words); };
  };
  expectError<UsageError>(choose(numbers, "accuracy"), "'accuracy' needs scores of classes");
  expectError<UsageError>(choose(numbers, "confusion"), "'confusion' needs scores of classes");
  expectError<UsageError>(choose(few, "top5"), "more than five classes");
  expectError<UsageError>(choose(few, "mae"), "'mae' needs a target of numbers");
  expectError<UsageError>(choose(few, "accuracy,f2"), "there is no 'f2'");
  const MetricChoice choice(few.program, "confusion");
  expectError<UsageError>([&] { choice.find("--best", "accuracy"); }, "--best accuracy: is none of the metrics");
  expectError<UsageError>([&] { choice.find("--best", "confusion"); }, "(loss)");
}

TEST(Selection, KeepsTheFirstOfTheBestAndEndsInTime) {
  Selection accuracy(Metric::Accuracy, 2), loss(Metric::Loss, std::nullopt);
  EXPECT_TRUE(accuracy.take({{Metric::Accuracy, 0.5}}, 1));
  EXPECT_FALSE(accuracy.take({{Metric::Accuracy, 0.5}}, 2));
  EXPECT_FALSE(accuracy.isOver());
  EXPECT_TRUE(accuracy.take({{Metric::Accuracy, 0.6}}, 3));
  EXPECT_FALSE(accuracy.take({{Metric::Accuracy, std::nan("")}}, 4));
  EXPECT_FALSE(accuracy.take({}, 5));
  EXPECT_TRUE(accuracy.isOver());
  EXPECT_EQ(accuracy.standing.bestStep, 3);
  EXPECT_EQ(accuracy.whyOver(), "accuracy did not get better than 0.6, of step 3, in 2 evaluations");
  EXPECT_TRUE(loss.take({{Metric::Loss, 2}}, 1));
  EXPECT_TRUE(loss.take({{Metric::Loss, 1}}, 2));
  EXPECT_FALSE(loss.isOver());
}
