// SPDX-License-Identifier: Apache-2.0
// Precision, recall, F1 and IoU of classes, the area under the ROC curve, and R2, as scikit-learn has them: sums over
// an evaluation, and what follows from them.
#pragma once

#include "runtime/Tensor.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice {

/// How often a class, or a label, was there, was answered, and was rightly so.
struct Hits {
  int64_t there = 0, answered = 0, right = 0;

  bool occurs() const { return there > 0 || answered > 0; }
  double precision() const { return ratio(right, answered); }
  double recall() const { return ratio(right, there); }
  /// The harmonic mean of both.
  double f1() const { return ratio(2 * right, there + answered); }
  /// Where it was there and answered over where it was either: intersection over union, Jaccard's index.
  double iou() const { return ratio(right, there + answered - right); }

private:
  static double ratio(int64_t part, int64_t of) {
    return of > 0 ? static_cast<double>(part) / static_cast<double>(of) : 0;
  }
};

/// Of the classes that occur, the mean of what `value` is of each; nothing where none does.
std::optional<double> meanOf(const std::vector<Hits> &hits, double (Hits::*value)() const);

/// The area under the ROC curve: how often a sample of a class has a higher score for it than one of others, ties by
/// half. Of two classes that of the second, of more the mean over classes, each against the rest, by probabilities; of
/// labels the mean over labels.
class RocArea {
public:
  /// Scores that are kept, of all answers together.
  static constexpr int64_t mostScores = int64_t{1} << 24;

  enum class Kind { Classes, Labels };
  /// `columns`: classes or labels. `probabilities`: scores of more than two classes are theirs, else a softmax makes
  /// them.
  RocArea(Kind kind, int64_t columns, bool probabilities);

  /// Scores of one answer, `stride` elements apart, and its class.
  void addClass(const float *scores, int64_t stride, int64_t right);
  /// Scores and labels of one sample or pixel, `stride` elements apart, which are there where they are above 1/2; none
  /// that is `ignored`, which a NaN never is.
  void addLabels(const float *scores, const float *labels, int64_t stride = 1, float ignored = NAN);

  /// Nothing where no class or label has both answers of it and of others.
  std::optional<double> value() const;

private:
  const Kind kind;
  const int64_t columns;
  const bool probabilities;
  std::vector<std::vector<float>> scores; ///< of each column that has a curve
  std::vector<std::vector<bool>> there;
};

/// 1 - sum of squared differences / sum of squared deviations from the mean, of each number of a sample; the mean over
/// them. A number that never changes has 1 where it is met, else 0.
class RSquared {
public:
  explicit RSquared(int64_t columns) : sums(static_cast<size_t>(columns)) {}
  void add(const float *outputs, const float *targets);
  std::optional<double> value() const;

private:
  struct Column {
    double shift = 0, sum = 0, squares = 0, differences = 0; ///< targets less the first one
  };
  std::vector<Column> sums;
  int64_t samples = 0;
};

} // namespace sluice
