// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling, as torch.amp.GradScaler has it: the gradient of the loss is multiplied by a scale, so that
// small gradients do not underflow in f16, and gradients are divided by it again where parameters change. A step with a
// gradient that is not finite changes no parameter and halves the scale; enough steps without one double it.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

/// Scalars of F32 that live in device memory with a program's variables: the scale, steps in a row without overflow,
/// and steps that were skipped in the whole training. Names are reserved.
constexpr char lossScaleName[] = "train/loss_scale", goodStepsName[] = "train/good_steps",
               skippedStepsName[] = "train/skipped_steps";

/// Powers of 2 between which a scale lies.
constexpr float firstLossScale = 65536, leastLossScale = 0x1p-32f, mostLossScale = 0x1p32f;
/// Good steps that double it.
constexpr int goodStepsToGrow = 2000;

/// After all gradients of a step, in its last batch: checks whether they are finite, which decides whether the updates
/// after it change anything, and adjusts the scale. `gradients` are F32. The cuda runtime alone has it.
void checkGradients(Stream &, const Tensor &scale, const Tensor &goodSteps, const Tensor &skippedSteps,
                    TensorList gradients, Node node);

} // namespace sluice
