// SPDX-License-Identifier: Apache-2.0
// Speed of codecs, on either target.
#pragma once

#include "runtime/Codec.h"

#include <algorithm>
#include <chrono>

namespace sluice {

/// Of some runs.
template <typename Run> double bestSeconds(Session &session, Run &&run) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration passed) { return std::chrono::duration<double>(passed).count(); };
  const auto first = Clock::now();
  double best = 1e9;
  // Short kernels go on until fresh threads have found their processors.
  for (int i = 0; i < 4 || seconds(Clock::now() - first) < 0.1; ++i) {
    const auto begin = Clock::now();
    run();
    session.synchronize();
    best = std::min(best, seconds(Clock::now() - begin));
  }
  return best;
}

/// Prints how fast tensors as ReLU leaves them, [batch, 64, 56, 56], are packed on the device and unpacked; and how
/// fast copies take tensors of that size to the host and back, raw, as fp16, and with three shares of zeros without
/// these; on cuda of halves, too.
void benchCodecs(int64_t batch);

} // namespace sluice
