// SPDX-License-Identifier: Apache-2.0
// Fixed-rate zfp through libzfp. Bands of block rows begin at whole words of the stream, so that they can be packed
// side by side; the result is the stream that libzfp writes for the whole array.
#include "runtime/host/Codec.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/CodecRules.h"

#include <algorithm>
#include <atomic>
#include <string>
#if defined(SLUICE_ZFP)
#include <zfp.h>
#endif

namespace sluice {

#if defined(SLUICE_ZFP)

namespace {

/// Rows of a band: 16 rows are four block rows, whose bits are whole 64-bit words at every rate.
int64_t bandRows(ZfpGrid grid) {
  constexpr int64_t wanted = int64_t(1) << 16; // elements
  return std::max<int64_t>(1, wanted / (16 * grid.columns)) * 16;
}

/// All blocks of a band of `rows`.
bool runBlocks(zfp_stream *zfp, float *x, ZfpGrid grid, int64_t rows, bool encode) {
  zfp_field *field = zfp_field_2d(x, zfp_type_float, static_cast<size_t>(grid.columns), static_cast<size_t>(rows));
  const size_t done = encode ? zfp_compress(zfp, field) : zfp_decompress(zfp, field);
  zfp_field_free(field);
  return done != 0;
}
/// The same, block by block, each of which is floats for a moment.
bool runBlocks(zfp_stream *zfp, BFloat16 *x, ZfpGrid grid, int64_t rows, bool encode) {
  float block[16];
  for (int64_t row = 0; row < rows; row += 4)
    for (int64_t column = 0; column < grid.columns; column += 4) {
      const int64_t high = std::min<int64_t>(4, rows - row), across = std::min<int64_t>(4, grid.columns - column);
      BFloat16 *first = x + row * grid.columns + column;
      for (int64_t i = 0; encode && i < high * across; ++i)
        block[i / across * 4 + i % across] = widened(first[i / across * grid.columns + i % across]);
      const auto width = static_cast<size_t>(across), height = static_cast<size_t>(high);
      if (encode)
        zfp_encode_partial_block_strided_float_2(zfp, block, width, height, 1, 4);
      else
        zfp_decode_partial_block_strided_float_2(zfp, block, width, height, 1, 4);
      for (int64_t i = 0; !encode && i < high * across; ++i)
        store(first + i / across * grid.columns + i % across, block[i / across * 4 + i % across]);
    }
  if (encode)
    zfp_stream_flush(zfp);
  return true;
}

/// One band in either direction.
template <typename T> bool run(T *x, ZfpGrid grid, int rate, char *packed, int64_t band, bool encode) {
  const int64_t first = band * bandRows(grid), rows = std::min(bandRows(grid), grid.rows - first);
  const int64_t begin = first / 4 * grid.blocksAcross() * 2 * rate;
  const int64_t bytes = (ZfpGrid{grid.columns, rows}.blocks() * 16 * rate + 63) / 64 * 8;
  bitstream *bits = stream_open(packed + begin, static_cast<size_t>(bytes));
  zfp_stream *zfp = zfp_stream_open(bits);
  zfp_stream_set_rate(zfp, rate, zfp_type_float, 2, zfp_false);
  const bool done = runBlocks(zfp, x + first * grid.columns, grid, rows, encode);
  zfp_stream_close(zfp);
  stream_close(bits);
  return done;
}

template <typename T> void runAll(T *x, ZfpGrid grid, int rate, char *packed, bool encode) {
  const int64_t bands = (grid.rows + bandRows(grid) - 1) / bandRows(grid);
  std::atomic<bool> sound{true};
  parallelFor(bands, [&](int64_t band) {
    if (!run(x, grid, rate, packed, band, encode))
      sound = false;
  });
  if (!sound)
    throw std::runtime_error("libzfp failed on an array of " + std::to_string(grid.rows) + " x " +
                             std::to_string(grid.columns));
}

/// Where a value is that zfp does not take; -1: nowhere.
template <typename T> int64_t findRefused(const T *x, int64_t count) {
  std::atomic<int64_t> refused{-1};
  parallelRanges(count, int64_t(1) << 16, [&](int64_t begin, int64_t end) {
    int bad = 0;
    for (int64_t i = begin; i < end; ++i)
      bad |= overflowsZfp(widened(x[i]));
    if (bad)
      refused = std::find_if(x + begin, x + end, [](T value) { return overflowsZfp(widened(value)); }) - x;
  });
  return refused;
}

} // namespace

template <typename T> void packZfp(const T *x, ZfpGrid grid, int rate, void *packed, const char *node) {
  if (const int64_t at = findRefused(x, grid.rows * grid.columns); at >= 0)
    throw zfpRefused(node, widened(x[at]));
  runAll(const_cast<T *>(x), grid, rate, static_cast<char *>(packed), true);
}

template <typename T> void unpackZfp(const void *packed, ZfpGrid grid, int rate, T *x) {
  runAll(x, grid, rate, static_cast<char *>(const_cast<void *>(packed)), false);
}

#else

[[noreturn]] static void missing() {
  throw std::runtime_error("this runtime was built without libzfp; install libzfp-dev and build again");
}
template <typename T> void packZfp(const T *, ZfpGrid, int, void *, const char *) { missing(); }
template <typename T> void unpackZfp(const void *, ZfpGrid, int, T *) { missing(); }

#endif

template void packZfp(const float *, ZfpGrid, int, void *, const char *);
template void packZfp(const BFloat16 *, ZfpGrid, int, void *, const char *);
template void unpackZfp(const void *, ZfpGrid, int, float *);
template void unpackZfp(const void *, ZfpGrid, int, BFloat16 *);

} // namespace sluice
