// SPDX-License-Identifier: Apache-2.0
// Gathered kernels give the bits of single ones.
#include "test/unit/cuda/Halves.h"

namespace sluice {
namespace {

/// Weights, momenta, averages, running statistics and rounded weights after two steps on tensors of many sizes.
std::vector<Numbers> trained(bool gathers) {
  Harness h;
  h.session.state.learningRate = 0.1f, h.session.state.momentum = 0.9f, h.session.state.averageDecay = 0.9f;
  Stream &stream = h.session.compute;
  const Shape shapes[] = {{16, 8, 3, 3}, {7, 3, 3, 3}, {5, 1, 1, 1}, {64, 16, 1, 1}, {1, 9, 5, 5}};
  std::vector<Tensor> all;
  struct Parameter {
    Tensor w, dw, momentum, average, rounded;
    Reorder cast;
  };
  std::vector<Parameter> parameters;
  for (unsigned i = 0; i < 60; ++i) { // more than one launch takes
    const Shape &shape = shapes[i % 5];
    const Numbers zero(static_cast<size_t>(shape.elements()));
    const Tensor w = h.tensor(shape, Layout::RowMajor, randomNumbers(shape.elements(), i)),
                 dw = h.tensor(shape, Layout::RowMajor, randomNumbers(shape.elements(), 100 + i)),
                 momentum = h.tensor(shape, Layout::RowMajor, zero), average = h.tensor(shape, Layout::RowMajor, zero),
                 rounded = h.tensor(shape, Layout::NHWC, zero, half);
    parameters.push_back({w, dw, momentum, average, rounded, Reorder("n", w, rounded, {0, 1, 2, 3})});
    all.insert(all.end(), {w, momentum, average, rounded});
  }
  const Tensor mean = h.tensor({5}, Layout::RowMajor, randomNumbers(5, 1)),
               rstd = h.tensor({5}, Layout::RowMajor, {1, 2, 3, 4, 5}),
               runningMean = h.tensor({5}, Layout::RowMajor, Numbers(5)),
               runningVar = h.tensor({5}, Layout::RowMajor, Numbers(5));
  const UpdateStatistics statistics("n", 5, 40, 0.1f, 1e-5f);
  all.insert(all.end(), {runningMean, runningVar});
  for (int step = 1; step <= 2; ++step) {
    h.session.state.step = step;
    if (gathers)
      gather(stream);
    for (const Parameter &p : parameters)
      updateSgd(stream, p.w, p.dw, none, p.momentum, "n");
    for (const Parameter &p : parameters)
      averageWeights(stream, p.w, p.average, "n");
    for (const Parameter &p : parameters)
      p.cast.run(stream, p.w, p.rounded);
    statistics.run(stream, mean, rstd, runningMean, runningVar);
    if (gathers)
      launchGathered(stream);
  }
  std::vector<Numbers> values;
  for (const Tensor &tensor : all)
    values.push_back(h.read(tensor));
  return values;
}

TEST(Launches, GatheredKernelsGiveTheBitsOfSingleOnes) { EXPECT_EQ(trained(true), trained(false)); }

/// Everything else goes behind what is kept.
TEST(Launches, WhatIsNotGatheredComesBehindWhatIs) {
  Harness h;
  h.session.state.learningRate = 1, h.session.state.step = 1;
  Stream &stream = h.session.compute;
  const Tensor w = h.tensor({4}, Layout::RowMajor, {1, 2, 3, 4}), dw = h.tensor({4}, Layout::RowMajor, {1, 1, 1, 1}),
               copy = h.tensor({4});
  const Reorder reorder("n", w, copy, {0});
  gather(stream);
  updateSgd(stream, w, dw, none, none, "n");
  reorder.run(stream, w, copy); // f32 to f32
  launchGathered(stream);
  EXPECT_EQ(h.read(copy), (Numbers{0, 1, 2, 3}));
}

} // namespace
} // namespace sluice
