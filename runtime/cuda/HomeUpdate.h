// SPDX-License-Identifier: Apache-2.0
// Updates of what is at home in host memory, by threads of the host, on the stream `home`. The rules are those of the
// device's kernels, compiled for the host without contraction, so that both give the same bits.
#pragma once

#include "runtime/cuda/Launch.h"

namespace sluice {

/// As the tensors of an update on the device, in the host arena.
struct HomeTensors {
  float *w, *first, *second;
  const float *dw, *norm;
  int64_t count;
  ParameterGroup group;
  bool decoupled, plain;
};

/// Enqueues on `stream`, which is `home`: where `plain` or without momentum by Plain. Hyperparameters are the device's
/// when the stream comes there, so that a captured graph sees what a step changed, and what the check of a scaled
/// loss's gradients says. Defined for the rules of UpdateRules.h.
template <typename Rule, typename Plain>
void updateAtHome(Stream &stream, Node node, const char *op, const HomeTensors &p);
void averageAtHome(Stream &stream, Node node, const char *op, const float *w, float *average, int64_t count);

} // namespace sluice
