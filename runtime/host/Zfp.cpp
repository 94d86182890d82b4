// SPDX-License-Identifier: Apache-2.0
// Fixed-rate zfp through libzfp. Bands of block rows begin at whole words of the stream, so that they can be packed
// side by side; the result is the stream that libzfp writes for the whole array.
#include "runtime/host/Codec.h"
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

/// One band in either direction.
bool run(float *x, ZfpGrid grid, int rate, char *packed, int64_t band, bool encode) {
  const int64_t first = band * bandRows(grid), rows = std::min(bandRows(grid), grid.rows - first);
  const int64_t begin = first / 4 * grid.blocksAcross() * 2 * rate;
  const int64_t bytes = (ZfpGrid{grid.columns, rows}.blocks() * 16 * rate + 63) / 64 * 8;
  zfp_field *field = zfp_field_2d(x + first * grid.columns, zfp_type_float, static_cast<size_t>(grid.columns),
                                  static_cast<size_t>(rows));
  bitstream *bits = stream_open(packed + begin, static_cast<size_t>(bytes));
  zfp_stream *zfp = zfp_stream_open(bits);
  zfp_stream_set_rate(zfp, rate, zfp_type_float, 2, zfp_false);
  const size_t done = encode ? zfp_compress(zfp, field) : zfp_decompress(zfp, field);
  zfp_stream_close(zfp);
  stream_close(bits);
  zfp_field_free(field);
  return done != 0;
}

void runAll(float *x, ZfpGrid grid, int rate, char *packed, bool encode) {
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
int64_t findRefused(const float *x, int64_t count) {
  std::atomic<int64_t> refused{-1};
  parallelRanges(count, int64_t(1) << 16, [&](int64_t begin, int64_t end) {
    int bad = 0;
    for (int64_t i = begin; i < end; ++i)
      bad |= overflowsZfp(x[i]);
    if (bad)
      refused = std::find_if(x + begin, x + end, overflowsZfp) - x;
  });
  return refused;
}

} // namespace

void packZfp(const float *x, ZfpGrid grid, int rate, void *packed, const char *node) {
  if (const int64_t at = findRefused(x, grid.rows * grid.columns); at >= 0)
    throw zfpRefused(node, x[at]);
  runAll(const_cast<float *>(x), grid, rate, static_cast<char *>(packed), true);
}

void unpackZfp(const void *packed, ZfpGrid grid, int rate, float *x) {
  runAll(x, grid, rate, static_cast<char *>(const_cast<void *>(packed)), false);
}

#else

[[noreturn]] static void missing() {
  throw std::runtime_error("this runtime was built without libzfp; install libzfp-dev and build again");
}
void packZfp(const float *, ZfpGrid, int, void *, const char *) { missing(); }
void unpackZfp(const void *, ZfpGrid, int, float *) { missing(); }

#endif

} // namespace sluice
