// SPDX-License-Identifier: Apache-2.0
// Whether an algorithm of oneDNN or of ours gives what the definition of a convolution says, see ConvEngine.h.
#include "runtime/host/ConvEngine.h"

#include "runtime/Random.h"
#include "runtime/host/ElementTypes.h"

#include <cmath>
#include <cstdint>

namespace sluice {

namespace {

/// Uniform in [-1, 1).
std::vector<float> randomValues(int64_t count, uint64_t key) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 2 * uniform(key, i) - 1;
  return values;
}

/// Values as tensors of T hold them.
template <typename T> std::vector<T> storedValues(const std::vector<float> &values) {
  std::vector<T> stored(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    store(&stored[i], values[i]);
  return stored;
}

/// One element of the result over volumes by the definition, and how many products of values up to 1 it adds, to judge
/// an error by.
struct Expected {
  double value, terms;
};

template <typename T>
Expected expected(const ConvGeometry &g, const T *first, const T *second, const float *bias, int64_t element) {
  if (g.pass == ConvPass::Forward) {
    const int64_t o = element % g.y[1];
    return {convForwardAt(g, first, second, pixelAt(g.y, element / g.y[1]), o) +
                (bias ? static_cast<double>(bias[o]) : 0),
            static_cast<double>(g.w.elements() / g.w[0])};
  }
  if (g.pass == ConvPass::BackwardData) {
    return {convBackwardDataAt(g, first, second, pixelAt(g.x, element / g.x[1]), element % g.x[1]),
            static_cast<double>(g.w.elements() / g.w[1] / g.groups)};
  }
  const int64_t pixels = pixelsOf(g.y);
  double sum = 0;
  for (int64_t pixel = 0; pixel < pixels; ++pixel)
    sum += static_cast<double>(convBackwardWeightTerm(g, first, second, pixel, element));
  return {sum, static_cast<double>(pixels)};
}

/// What the engine makes of random values against the definition, in some places.
template <typename T> bool givesExpected(const ConvEngine &engine, const ConvGeometry &g, bool bias) {
  const bool forward = g.pass == ConvPass::Forward, weight = g.pass == ConvPass::BackwardWeight;
  const std::vector<T> first = storedValues<T>(randomValues((forward ? g.x : g.y).elements(), 1)),
                       second = storedValues<T>(randomValues((weight ? g.x : g.w).elements(), 2));
  const std::vector<float> rubbish = randomValues((forward ? g.y : weight ? g.w : g.x).elements(), 3);
  std::vector<float> gradient = rubbish, biases = randomValues(bias ? g.w[0] : 0, 4);
  std::vector<T> result = storedValues<T>(rubbish);
  std::vector<char> scratch(engine.workspaceBytes() + 64);
  void *aligned = scratch.data(), *to = weight ? static_cast<void *>(gradient.data()) : result.data();
  size_t space = scratch.size();
  engine.run(first.data(), second.data(), to, bias ? biases.data() : nullptr,
             static_cast<char *>(std::align(64, engine.workspaceBytes(), aligned, space)));
  const double rounding = weight || sizeof(T) == sizeof(float) ? 0 : 0x1p-8;
  const uint64_t samples = weight ? 8 : 64;
  const ConvGeometry volumes = g.asVolume();
  for (uint64_t sample = 0; sample < samples; ++sample) {
    const auto element = static_cast<int64_t>(randomBits64(5, sample) % rubbish.size());
    const auto at = static_cast<size_t>(element);
    const Expected want =
        expected(volumes, first.data(), second.data(), forward && bias ? biases.data() : nullptr, element);
    const double error = std::abs(static_cast<double>(weight ? gradient[at] : widened(result[at])) - want.value);
    if (!(error <= 1e-5 * (10 + want.terms) + rounding * std::abs(want.value)))
      return false;
  }
  return true;
}

} // namespace

/// Bytes of all tensors of a trial, as many as other input may take while it is compiled.
static constexpr int64_t mostBytes = int64_t(1) << 30;

/// Operations of a trial, about.
static constexpr int64_t manyOperations = 300000000;

static int64_t operationsOf(const ConvGeometry &g) {
  return std::max<int64_t>(1, 2 * g.w.elements() / g.groups * (g.y.elements() / g.y[1]));
}

/// The first rows of large images, or slices of volumes: eight of the result at least, so that blocks have neighbours.
static void leaveOutRows(ConvGeometry &g) {
  const int64_t rows = g.y[2], wanted = std::max<int64_t>(8, manyOperations / (operationsOf(g) / rows + 1));
  if (wanted >= rows)
    return;
  g.y.dims[2] = wanted;
  g.x.dims[2] -= (rows - wanted) * g.window.strides[0];
}

bool convolutionWorks(const ConvGeometry &whole, bool bias, const Algorithm &algorithm) {
  // As many images as these operations take, the parts' number of them at least.
  const int64_t operations = std::max<int64_t>(1, operationsOf(whole) / whole.y[0]);
  int64_t batch = algorithm.parts;
  while (2 * batch <= whole.x[0] && whole.x[0] % (2 * batch) == 0 && 2 * batch * operations <= manyOperations)
    batch *= 2;
  ConvGeometry g = whole;
  g.x.dims[0] = g.y.dims[0] = batch;
  const auto tooLarge = [](const ConvGeometry &of) {
    return 4 * (of.x.elements() + of.w.elements() + of.y.elements()) > mostBytes;
  };
  if (tooLarge(g))
    return true; // nothing is known against it
  leaveOutRows(g);
  std::unique_ptr<ConvEngine> engine;
  try {
    engine = makeConvEngine(g, bias, algorithm);
  } catch (const MemoryNotAvailable &) { // not for so few images
    if (batch == whole.x[0])
      throw;
    if (tooLarge(whole))
      return true;
    engine = makeConvEngine(g = whole, bias, algorithm);
  }
  return isHalf(g.type) ? givesExpected<BFloat16>(*engine, g, bias) : givesExpected<float>(*engine, g, bias);
}

} // namespace sluice
