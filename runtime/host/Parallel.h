// SPDX-License-Identifier: Apache-2.0
// Our own loops on a few threads. Work comes in numbered chunks; which thread runs a chunk is left to chance, so
// whoever sums over chunks fixes their number from the problem alone and combines them in order: results then do not
// depend on the thread count.
#pragma once

#include <cstdint>
#include <type_traits>

namespace sluice {

namespace detail {
void parallelRun(int64_t chunks, void (*body)(void *, int64_t), void *context);
} // namespace detail

/// Runs body(chunk) for every chunk in [0, chunks), below 2^32, on threads() threads, the caller's among them; returns
/// when all are done. While another caller has the threads, this one runs all of its chunks itself. body must not
/// throw.
template <typename Body> void parallelFor(int64_t chunks, Body &&body) {
  using Plain = std::remove_reference_t<Body>;
  detail::parallelRun(
      chunks, [](void *context, int64_t chunk) { (*static_cast<Plain *>(context))(chunk); },
      const_cast<void *>(static_cast<const void *>(&body)));
}

/// Splits [0, count) into ranges of about `grain` elements and runs body(begin, end) on each.
template <typename Body> void parallelRanges(int64_t count, int64_t grain, Body &&body) {
  const int64_t chunks = (count + grain - 1) / grain;
  parallelFor(chunks, [&](int64_t chunk) {
    const int64_t begin = chunk * grain;
    body(begin, begin + grain < count ? begin + grain : count);
  });
}

/// Makes OpenMP regions of the calling thread use threads() threads. Every stream calls it before work.
void adoptThreadCount();

} // namespace sluice
