// SPDX-License-Identifier: Apache-2.0
// How many of a scalar function's values a region computes in a second, under the name that the function's op has in
// it. Operands lie in the nearest caches and there is arithmetic besides, as in most regions, so that nothing waits for
// them: a function takes what it adds.
#include "runtime/Math.h"
#include "tools/CalibrationBench.h"

#include <algorithm>
#include <cmath>

using namespace sluice;

namespace {

/// A polynomial, whose steps are a product and a sum each.
constexpr int steps = 12;
SLUICE_KERNEL float polynomial(float x) {
  float p = x;
  for (int i = 0; i < steps; ++i)
    p = p * x + 0.5f;
  return p;
}

template <typename F> struct Apply {
  static constexpr int inputs = 1, outputs = 1, sums = 0;
  static constexpr DataType types[] = {DataType::F32, DataType::F32};
  SLUICE_KERNEL Values<1> operator()(float x) const { return {{F::of(polynomial(x))}}; }
};

#define FUNCTION(Name, expression)                                                                                     \
  struct Name {                                                                                                        \
    SLUICE_KERNEL static float of(float x) { return expression; }                                                      \
  }
FUNCTION(Same, x);
FUNCTION(Twice, polynomial(x));
FUNCTION(Quotient, 1.0f / x);
FUNCTION(Root, sqrtf(x));
FUNCTION(Exponential, exponential(x));
FUNCTION(Logarithm, logarithm(x));
FUNCTION(Tangent, hyperbolicTangent(x));
FUNCTION(GaussError, errorFunction(x));
FUNCTION(Sine, sine(x));
FUNCTION(Cosine, cosine(x));
FUNCTION(ArcTangent, arcTangent(x));
#undef FUNCTION

/// What dropout draws.
struct Drawn {
  static constexpr int inputs = 1, outputs = 1, sums = 0;
  static constexpr bool random = true;
  static constexpr DataType types[] = {DataType::F32, DataType::F32};
  SLUICE_KERNEL Values<1> operator()(Element element, float x) const {
    return {{uniform(randomKey(element.seed, 1u, element.step), element.index) * polynomial(x)}};
  }
};

constexpr int64_t elements = 1 << 16;

template <typename Region> double secondsOfRegion(Bench &bench) {
  const Shape x{elements};
  const Tensor from = device(0, x), to = device(4 * elements, x);
  const Fused<Region> region("calibrate", x, Layout::RowMajor, {from}, {to}, {});
  return bench.seconds(8 * elements, [&](Stream &stream) { region.run(stream, {from}, {to}, {}, none); });
}

template <typename F> double secondsOf(Bench &bench) { return secondsOfRegion<Apply<F>>(bench); }

} // namespace

void sluice::measureFunctions(Bench &bench) {
  const double without = secondsOf<Same>(bench);
  const auto sample = [&](const char *name, double seconds, int count = 1) {
    bench.file(name, {planner::surroundings(1)}, count * elements / std::max(seconds - without, 1e-3 * without));
  };
  sample("arith", secondsOf<Twice>(bench), 2 * steps);
  sample("arith.divf", secondsOf<Quotient>(bench));
  sample("math.sqrt", secondsOf<Root>(bench));
  sample("math.exp", secondsOf<Exponential>(bench));
  sample("math.log", secondsOf<Logarithm>(bench));
  sample("math.tanh", secondsOf<Tangent>(bench));
  sample("math.erf", secondsOf<GaussError>(bench));
  sample("math.sin", secondsOf<Sine>(bench));
  sample("math.cos", secondsOf<Cosine>(bench));
  sample("train.uniform", secondsOfRegion<Drawn>(bench));
  sample("math.atan", secondsOf<ArcTangent>(bench));
}
