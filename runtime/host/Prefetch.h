// SPDX-License-Identifier: Apache-2.0
// Saying to the caches what memory is for. Processors follow one row by themselves, but not rows that lie apart, nor
// several of which one is written in place: a region of bf16 took twice its time that way. And they read every line
// before it is written, though nobody wants what it holds.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace sluice {

constexpr int64_t cacheLine = 64;

/// `bytes` from p on, which are read or written a little later. They may lie beyond what there is. Into the second
/// level: more lines can be on their way there than to the first.
inline void expect(const void *p, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += cacheLine)
    __builtin_prefetch(static_cast<const char *>(p) + at, 0, 2);
}

/// Copies from and to beginnings of lines, around the caches where the processor can: `to` is not read first. Who hands
/// it to another thread calls finishStreaming() before.
inline void streamLines(const char *from, char *to, int64_t bytes) {
  int64_t at = 0;
#if defined(__AVX512F__)
  for (; at + 64 <= bytes; at += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i *>(to + at), _mm512_load_si512(from + at));
#elif defined(__AVX__)
  for (; at + 32 <= bytes; at += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i *>(to + at),
                        _mm256_load_si256(reinterpret_cast<const __m256i *>(from + at)));
#elif defined(__SSE2__)
  for (; at + 16 <= bytes; at += 16)
    _mm_stream_si128(reinterpret_cast<__m128i *>(to + at),
                     _mm_load_si128(reinterpret_cast<const __m128i *>(from + at)));
#endif
  memcpy(to + at, from + at, static_cast<size_t>(bytes - at));
}
inline void finishStreaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

} // namespace sluice
