// SPDX-License-Identifier: Apache-2.0
// The ways to run attention of bf16 on the host, for the compiler to choose from; see ConvEngine.h.
#pragma once

#include "runtime/Attention.h"
#include "runtime/host/AttentionScores.h"
#include "runtime/host/Parallel.h"

#include <string>
#include <vector>

namespace sluice {

/// Products by tiles of AMX, whose factors are bf16, probabilities and their gradients among them, as in PyTorch's
/// kernels; and products of floats.
constexpr const char *amxAttention = "amx", *floatAttention = "floats";

/// As ConvCandidate.
struct AttentionCandidate {
  std::string name;
  size_t workspace;
  double slowness;
};

/// Fastest first; of floats one without a name.
std::vector<AttentionCandidate> attentionCandidates(AttentionPass pass, const AttentionGeometry &geometry,
                                                    DataType type);

/// Bytes of scratch with AMX, on threads() threads.
size_t amxAttentionBytes(AttentionPass pass, const AttentionGeometry &geometry);
/// As Attention's methods, for the step's operands; synchronous. `work` has amxAttentionBytes() at a multiple of 64.
void amxAttentionForward(const AttentionStep<BFloat16> &step, BFloat16 *y, float *logsumexp, float *work);
struct AttentionGradients {
  BFloat16 *dq, *dk, *dv;
};
void amxAttentionBackward(const AttentionStep<BFloat16> &step, const BFloat16 *dy, const BFloat16 *y,
                          const float *logsumexp, const AttentionGradients &to, float *work);

/// Calls task(i, its scratch) for i in [0, count), each thread with scratch of its own of so many floats.
template <typename Task> void forAttentionTasks(int64_t count, float *work, int64_t floats, Task &&task) {
  const int64_t tasks = std::min<int64_t>(threads(), count);
  parallelFor(tasks, [&](int64_t first) {
    for (int64_t i = first; i < count; i += tasks)
      task(i, work + first * floats);
  });
}

} // namespace sluice
