// SPDX-License-Identifier: Apache-2.0
// The Gaussian process by a Cholesky factor. Values are standardized, so its mean is 0 and its variance 1; the length
// of its kernel is the likeliest of a few.
#include "passes/strategies/BayesianSearch.h"

#include <algorithm>
#include <cmath>

namespace sluice::planner {

namespace {

using Point = std::vector<double>;

constexpr int candidates = 256;
constexpr double noise = 1e-6; ///< of the variance: values are exact, factors are not
constexpr double lengths[] = {0.1, 0.2, 0.4, 0.8};

/// Matern's kernel of smoothness 5/2.
double likeness(const Point &a, const Point &b, double length) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i)
    squares += (a[i] - b[i]) * (a[i] - b[i]);
  const double r = std::sqrt(5 * squares) / length;
  return (1 + r + r * r / 3) * std::exp(-r);
}

/// A Gaussian process through all points that are known. `factor` is Cholesky's of their covariance, with a little
/// noise on its diagonal, so that two points that are nearly the same leave it a factor.
class Process {
public:
  Process(const std::vector<Point> &points, const std::vector<double> &values, double length)
      : points(points), length(length), n(points.size()), factor(n * n, 0) {
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j <= i; ++j) {
        double sum = likeness(points[i], points[j], length) + (i == j ? noise : 0);
        for (size_t k = 0; k < j; ++k)
          sum -= factor[i * n + k] * factor[j * n + k];
        factor[i * n + j] = i == j ? std::sqrt(std::max(sum, noise)) : sum / factor[j * n + j];
      }
    solved = forward(values);
    for (size_t i = 0; i < n; ++i)
      likelihood -= 0.5 * solved[i] * solved[i] + std::log(factor[i * n + i]);
  }

  /// How much below `best` the value at a point is expected to be.
  double improvement(const Point &at, double best) const {
    std::vector<double> like(n);
    for (size_t i = 0; i < n; ++i)
      like[i] = likeness(points[i], at, length);
    like = forward(std::move(like));
    double mean = 0, variance = 1;
    for (size_t i = 0; i < n; ++i) {
      mean += like[i] * solved[i];
      variance -= like[i] * like[i];
    }
    const double deviation = std::sqrt(std::max(variance, noise)), z = (best - mean) / deviation;
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI), below = std::erfc(-z / std::sqrt(2.0)) / 2;
    return deviation * (z * below + density);
  }

  double likelihood = 0; ///< its logarithm, but for a constant

private:
  /// Solves L x = v by the lower factor L.
  std::vector<double> forward(std::vector<double> v) const {
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < i; ++k)
        v[i] -= factor[i * n + k] * v[k];
      v[i] /= factor[i * n + i];
    }
    return v;
  }

  const std::vector<Point> &points;
  const double length;
  const size_t n;
  std::vector<double> factor, solved; ///< lower triangle by rows; the factor's inverse times the values
};

std::vector<double> standardized(std::vector<double> values) {
  double mean = 0, squares = 0;
  for (double v : values)
    mean += v / values.size();
  for (double &v : values) {
    v -= mean;
    squares += v * v / values.size();
  }
  for (double &v : values)
    v /= squares > 0 ? std::sqrt(squares) : 1;
  return values;
}

} // namespace

BayesianSearch::BayesianSearch(int shares, std::vector<Point> first, uint64_t seed)
    : shares(shares), first(std::move(first)), state(seed) {}

/// Uniform over all shares: exponential numbers over their sum. splitmix64 is the same on every machine.
Point BayesianSearch::draw() {
  Point point(shares);
  double sum = 0;
  for (double &share : point) {
    uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    share = -std::log1p(-static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53);
    sum += share;
  }
  for (double &share : point)
    share = sum > 0 ? share / sum : 1.0 / shares;
  return point;
}

// The first points as given; then the one of many random candidates that promises most below the best that is known.
Point BayesianSearch::next() {
  if (points.size() < first.size())
    return first[points.size()];
  if (points.empty())
    return draw();
  const std::vector<double> known = standardized(values);
  double length = 0, likeliest = 0;
  for (double l : lengths)
    if (const double likelihood = Process(points, known, l).likelihood; length == 0 || likelihood > likeliest) {
      length = l;
      likeliest = likelihood;
    }
  const Process process(points, known, length);
  const double best = *std::min_element(known.begin(), known.end());
  Point chosen;
  double most = -1;
  for (int i = 0; i < candidates; ++i) {
    Point point = draw();
    if (const double expected = process.improvement(point, best); expected > most) {
      most = expected;
      chosen = std::move(point);
    }
  }
  return chosen;
}

void BayesianSearch::tell(Point point, double value) {
  points.push_back(std::move(point));
  values.push_back(value);
}

} // namespace sluice::planner
