// SPDX-License-Identifier: Apache-2.0
// Folding of ops that walk along dimensions of host tensors: reductions, running sums, positions of the largest.
#include "frontend/Attributes.h"
#include "frontend/ConstantMovement.h"
#include <algorithm>
#include <limits>

namespace sluice {
namespace {

// They wrap like the 64-bit integers of ONNX.
int64_t product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t sum(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }

/// How a reduction takes in one element more.
struct Rule {
  int64_t (*onInts)(int64_t, int64_t);
  double (*onFloats)(double, double);
  double ofNothing; ///< reduced over no element
  bool mean = false;
};

/// Elements that differ in reduced dimensions alone become one, in order.
Result<HostTensor> reduce(const Fold &fold, const Rule &rule) {
  const HostTensor &x = fold.in(0);
  const int64_t rank = static_cast<int64_t>(x.shape.size());
  Result<Shape> list = axes(fold, 1, rank);
  if (!list)
    return list.takeError();
  if (list->empty() && Attributes(fold.node).integer("noop_with_empty_axes", 0))
    return x;
  Shape kept = x.shape, dropped;
  for (int64_t i = 0; i < rank; ++i) {
    const bool reduced = list->empty() || std::count(list->begin(), list->end(), i);
    if (reduced)
      kept[i] = 1;
    else
      dropped.push_back(kept[i]);
  }
  auto result = HostTensor::zeros(kept, x.integral);
  if (!result)
    return tooLarge(kept);
  std::vector<bool> started(result->size(), false);
  if (x.size() == 0 && rule.mean)
    return Error{"the mean of nothing cannot be folded"};
  for (int64_t i = 0; i < result->size(); ++i)
    x.integral ? void(result->ints[i] = toInteger(rule.ofNothing)) : void(result->floats[i] = rule.ofNothing);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t to = broadcastIndex(i, x.shape, kept);
    if (!started[to])
      result->set(to, x, i);
    else if (x.integral)
      result->ints[to] = rule.onInts(result->ints[to], x.ints[i]);
    else
      result->floats[to] = rule.onFloats(result->floats[to], x.floats[i]);
    started[to] = true;
  }
  // Sums are in double; each result is rounded to float32 once, as a kernel gives it.
  const int64_t count = result->size() ? x.size() / result->size() : 1;
  for (double &number : result->floats)
    number = static_cast<float>(rule.mean ? number / static_cast<double>(count) : number);
  for (int64_t &number : result->ints)
    number = rule.mean ? number / count : number;
  if (!Attributes(fold.node).integer("keepdims", 1))
    result->shape = dropped;
  return *result;
}

/// Along one dimension, by input 1; the sum so far, or of what is in front of an element alone.
Result<HostTensor> cumulate(const Fold &fold) {
  const HostTensor &x = fold.in(0);
  if (fold.in(1).size() != 1 || !fold.in(1).integral)
    return Error{"the axis must be a single integer"};
  Result<int64_t> axis = axisWithin(fold.in(1).ints[0], x.shape.size());
  if (!axis)
    return axis.takeError();
  const bool exclusive = Attributes(fold.node).integer("exclusive", 0),
             reverse = Attributes(fold.node).integer("reverse", 0);
  const int64_t extent = x.shape[*axis], inner = extentAfter(x.shape, *axis);
  HostTensor result = x;
  for (int64_t line = 0; line < (extent ? x.size() / extent : 0); ++line) {
    int64_t whole = 0;
    double real = 0;
    for (int64_t step = 0; step < extent; ++step) {
      const int64_t along = reverse ? extent - 1 - step : step;
      const int64_t at = (line / inner * extent + along) * inner + line % inner;
      const int64_t before = whole;
      const double realBefore = real;
      if (x.integral)
        result.ints[at] = exclusive ? before : sum(before, x.ints[at]), whole = sum(before, x.ints[at]);
      else
        real = static_cast<float>(real + x.floats[at]), result.floats[at] = exclusive ? realBefore : real;
    }
  }
  return result;
}

/// The first of the largest, or smallest, elements, or the last one.
Result<HostTensor> positionOf(const Fold &fold, bool largest) {
  const HostTensor &x = fold.in(0);
  Result<int64_t> axis = axisAttribute(fold, 0, x.shape.size());
  if (!axis)
    return axis.takeError();
  const int64_t extent = x.shape[*axis], inner = extentAfter(x.shape, *axis);
  if (extent == 0)
    return Error{"no element is the largest or smallest of none"};
  const bool last = Attributes(fold.node).integer("select_last_index", 0);
  Shape shape = x.shape;
  shape[*axis] = 1;
  HostTensor result = *HostTensor::zeros(shape, /*integral=*/true);
  for (int64_t line = 0; line < result.size(); ++line) {
    auto at = [&](int64_t along) { return x.number((line / inner * extent + along) * inner + line % inner); };
    int64_t best = 0;
    for (int64_t along = 1; along < extent; ++along)
      if (largest ? at(along) > at(best) : at(along) < at(best))
        best = along;
      else if (last && at(along) == at(best))
        best = along;
    result.ints[line] = best;
  }
  if (!Attributes(fold.node).integer("keepdims", 1))
    result.shape.erase(result.shape.begin() + *axis);
  return result;
}

} // namespace

void addConstantReductions(Folders &table) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto folder = [](Rule rule) -> Folder { return [rule](const Fold &fold) { return reduce(fold, rule); }; };
  const auto add = [](double a, double b) { return a + b; };
  table["ReduceProd"] = folder({product, [](double a, double b) { return a * b; }, 1});
  table["ReduceSum"] = folder({sum, add, 0});
  table["ReduceMean"] = folder({sum, add, 0, /*mean=*/true});
  table["ReduceMax"] = folder({[](int64_t a, int64_t b) { return std::max(a, b); },
                               [](double a, double b) { return std::max(a, b); }, -infinity});
  table["ReduceMin"] = folder({[](int64_t a, int64_t b) { return std::min(a, b); },
                               [](double a, double b) { return std::min(a, b); }, infinity});
  table["CumSum"] = cumulate;
  table["ArgMax"] = [](const Fold &fold) { return positionOf(fold, true); };
  table["ArgMin"] = [](const Fold &fold) { return positionOf(fold, false); };
}

} // namespace sluice
