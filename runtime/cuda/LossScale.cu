// SPDX-License-Identifier: Apache-2.0
// The check of a scaled loss's gradients: as many launches as lists of them are full, and one that decides what the
// step does. Its outcome is in the step's state in device memory, which is brought up to date before each batch.
#include "runtime/LossScale.h"

#include "runtime/Math.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Gather.h"

#include <cstddef>

namespace sluice {

namespace {

/// A gradient that is looked through for infinities and NaN.
struct Checked {
  const float *gradient;
  int64_t count;
};

/// Any thread that finds one says so; what the others say changes nothing.
__global__ void checkKernel(Pieces<Checked> all, DeviceState *state) {
  if (!state->update.lastBatch)
    return;
  const int own = all.own();
  const Checked &p = all.piece[own];
  bool finite = true;
  for (int64_t i = 4 * all.thread(own); i < p.count; i += 4 * all.threads(own)) {
    float four[4] = {};
    loadFour(four, p.gradient + i, p.count - i);
    for (int k = 0; k < 4; ++k)
      finite &= magnitude(four[k]) < HUGE_VALF;
  }
  if (!finite)
    state->update.skips = true;
}

/// One thread, after all checks: what updates do, and the scale of the next step. The count of steps is that of those
/// before this one which were not skipped.
__global__ void decideStep(DeviceState *state, float *scale, float *goodSteps, float *skippedSteps) {
  UpdateFactors &f = state->update;
  if (!f.lastBatch)
    return;
  LossScale now{*scale, *goodSteps, *skippedSteps};
  f.unscale = 1 / now.scale;
  f.countSteps(f.step - static_cast<int64_t>(now.skippedSteps));
  now.follow(f.skips, f.scaleIsFixed);
  *scale = now.scale, *goodSteps = now.goodSteps, *skippedSteps = now.skippedSteps;
}

} // namespace

float gradientFactor() {
  UpdateFactors factors{StepState()};
  const char *from = reinterpret_cast<const char *>(deviceStateAddress()) + offsetof(DeviceState, update);
  checkCuda(cudaMemcpy(&factors, from, sizeof factors, cudaMemcpyDeviceToHost), "cannot read the step's state");
  return factors.unscale;
}

void checkGradients(Stream &stream, const Tensor &scale, const Tensor &goodSteps, const Tensor &skippedSteps,
                    TensorList gradients, Node node) {
  deviceState(stream); // up to date
  DeviceState *state = deviceStateAddress();
  float *values[] = {stream.data<float>(scale), stream.data<float>(goodSteps), stream.data<float>(skippedSteps)};
  stream.launch(node.as(OpRole::Update), "check_gradients", [&] {
    Pieces<Checked> pieces{};
    auto launch = [&] {
      checkKernel<<<pieces.blocks(), blockThreads, 0, native(stream)>>>(pieces, state);
      pieces = {};
    };
    for (const Tensor &gradient : gradients) {
      const int64_t count = gradient.shape.elements();
      pieces.add({stream.data<float>(gradient), count}, count);
      if (pieces.full() || &gradient + 1 == gradients.end())
        launch();
    }
    decideStep<<<1, 1, 0, native(stream)>>>(state, values[0], values[1], values[2]);
  });
}

} // namespace sluice
