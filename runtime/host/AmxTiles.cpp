// SPDX-License-Identifier: Apache-2.0
// See AmxTiles.h. Only what is compiled for AVX-512 has it; the functions that need more of a processor say so.
#include "runtime/host/AmxTiles.h"

#include "runtime/host/TileForm.h"

#ifdef __AVX512F__
#include <algorithm>
#include <immintrin.h>
#include <oneapi/dnnl/dnnl.h>
#include <sys/syscall.h>
#include <unistd.h>

// Functions that use more than the level that this file is compiled for.
#define AMX_FUNCTION __attribute__((target("amx-tile,amx-bf16")))
#define BF16_FUNCTION __attribute__((target("avx512bf16,avx512bw,avx512vl")))

namespace sluice::amx {

namespace {

constexpr int64_t tileSize = side * deep;
constexpr int tileBytes = 64; ///< of a row of any tile
/// Of masked instructions: GCC 12 warns of what its others leave undefined.
constexpr __mmask16 all = 0xffff;

/// Asks Linux for the registers, which a process does not have from the start.
bool isGranted() {
  constexpr int requestFeature = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, requestFeature, tileData) == 0;
  return granted;
}

/// 16 elements, the first `count` of them; the others are 0.
__m256i load(const BFloat16 *from, int64_t count) {
  return count >= side
             ? _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from))
             : _mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << std::max<int64_t>(0, count)) - 1), from);
}
BF16_FUNCTION __m256i load(const float *from, int64_t count) {
  const __m512 floats =
      count >= side ? _mm512_loadu_ps(from)
                    : _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << std::max<int64_t>(0, count)) - 1), from);
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(floats));
}

/// Row `row` of the columns from `first` on; nothing of what is beyond either. Asks for the row that comes `ahead` of
/// it, which is most likely the next tile's.
template <typename T> BF16_FUNCTION __m256i part(const Rows<T> &m, int64_t row, int64_t first, int64_t ahead) {
  __builtin_prefetch(m.data + (row + ahead) * m.step + first);
  return row < m.rows ? load(m.data + row * m.step + first, m.columns - first) : _mm256_setzero_si256();
}

/// A tile of a left factor.
template <typename T> BF16_FUNCTION void packLeftTile(const Rows<T> &a, int64_t row, int64_t depth, __m512i *to) {
  for (int64_t i = 0; i < side; ++i)
    to[i] = _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(part(a, row + i, depth, side)),
                                     part(a, row + i, depth + side, side), 1);
}

/// A tile of a right factor.
template <typename T> BF16_FUNCTION void packRightTile(const Rows<T> &b, int64_t depth, int64_t column, __m512i *to) {
  for (int64_t pair = 0; pair < side; ++pair) {
    const __m512i even = _mm512_maskz_cvtepu16_epi32(all, part(b, depth + 2 * pair, column, deep));
    const __m512i odd = _mm512_maskz_cvtepu16_epi32(all, part(b, depth + 2 * pair + 1, column, deep));
    to[pair] = _mm512_or_si512(even, _mm512_maskz_slli_epi32(all, odd, 16));
  }
}

/// Exchanges rows and columns of 16 x 16 pairs.
void transpose(const __m512i *from, __m512i *to) {
  __m512i a[side], b[side];
  for (int i = 0; i < side; i += 2) { // pairs within quarters
    a[i] = _mm512_maskz_unpacklo_epi32(all, from[i], from[i + 1]);
    a[i + 1] = _mm512_maskz_unpackhi_epi32(all, from[i], from[i + 1]);
  }
  for (int i = 0; i < side; i += 4) { // quarter q of b[i + c] has column 4 q + c of rows i to i + 3
    b[i] = _mm512_maskz_unpacklo_epi64(0xff, a[i], a[i + 2]);
    b[i + 1] = _mm512_maskz_unpackhi_epi64(0xff, a[i], a[i + 2]);
    b[i + 2] = _mm512_maskz_unpacklo_epi64(0xff, a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_maskz_unpackhi_epi64(0xff, a[i + 1], a[i + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    const __m512i low = _mm512_maskz_shuffle_i32x4(all, b[c], b[c + 4], 0x44),
                  high = _mm512_maskz_shuffle_i32x4(all, b[c], b[c + 4], 0xee);
    const __m512i low2 = _mm512_maskz_shuffle_i32x4(all, b[c + 8], b[c + 12], 0x44),
                  high2 = _mm512_maskz_shuffle_i32x4(all, b[c + 8], b[c + 12], 0xee);
    to[c] = _mm512_maskz_shuffle_i32x4(all, low, low2, 0x88);
    to[c + 4] = _mm512_maskz_shuffle_i32x4(all, low, low2, 0xdd);
    to[c + 8] = _mm512_maskz_shuffle_i32x4(all, high, high2, 0x88);
    to[c + 12] = _mm512_maskz_shuffle_i32x4(all, high, high2, 0xdd);
  }
}

/// Calls pack(first side element, first deep element, its tile) for all tiles of a factor.
template <typename Pack> void eachTile(int64_t sides, int64_t depths, BFloat16 *to, Pack &&pack) {
  for (int64_t at = 0; at < sides; at += side)
    for (int64_t depth = 0; depth < depths; depth += deep, to += tileSize)
      pack(at, depth, reinterpret_cast<__m512i *>(to));
}

/// `lines` rows of the transpose of 16 x 16 floats, the first `count` elements of each.
BF16_FUNCTION void storeTransposedTile(const float *from, int64_t step, int64_t lines, int64_t count, BFloat16 *to,
                                       int64_t toStep) {
  __m512i rows[side], turned[side];
  for (int64_t i = 0; i < side; ++i)
    rows[i] = _mm512_loadu_si512(from + i * step);
  transpose(rows, turned);
  const auto mask = static_cast<__mmask16>((1u << std::min(count, side)) - 1);
  for (int64_t i = 0; i < std::min(lines, side); ++i)
    _mm256_mask_storeu_epi16(to + i * toStep, mask,
                             reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_castsi512_ps(turned[i]))));
}

struct alignas(64) Configuration {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {tileBytes, tileBytes, tileBytes, tileBytes, tileBytes, tileBytes, tileBytes, tileBytes};
  uint8_t rows[16] = {side, side, side, side, side, side, side, side};
};
/// A constant: GCC's instruction is said to read no more than its first bytes, and what is only stored to might be left
/// out.
constexpr Configuration configuration;

AMX_FUNCTION void configure() { _tile_loadconfig(&configuration); }
AMX_FUNCTION void release() { _tile_release(); }

/// Where the factors of a block begin, and how far apart their neighbouring tiles are; those of the left one are all
/// multiplied.
struct Factors {
  const BFloat16 *left, *right;
  int64_t leftStep, rightStep;
};

/// A block of RowTiles x ColumnTiles result tiles.
template <int RowTiles, int ColumnTiles> AMX_FUNCTION void block(const Factors &f, float *c, int64_t cStep, bool add) {
  const auto stride = static_cast<size_t>(cStep) * sizeof(float);
  float *below = c + side * cStep;
  if (add) {
    _tile_loadd(0, c, stride);
    if (ColumnTiles > 1)
      _tile_loadd(1, c + side, stride);
    if (RowTiles > 1)
      _tile_loadd(2, below, stride);
    if (RowTiles > 1 && ColumnTiles > 1)
      _tile_loadd(3, below + side, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t at = 0; at < f.leftStep; at += tileSize) {
    _tile_loadd(4, f.left + at, tileBytes);
    _tile_loadd(6, f.right + at, tileBytes);
    _tile_dpbf16ps(0, 4, 6);
    if (ColumnTiles > 1) {
      _tile_loadd(7, f.right + f.rightStep + at, tileBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (RowTiles > 1) {
      _tile_loadd(5, f.left + f.leftStep + at, tileBytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if (RowTiles > 1 && ColumnTiles > 1)
      _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, stride);
  if (ColumnTiles > 1)
    _tile_stored(1, c + side, stride);
  if (RowTiles > 1)
    _tile_stored(2, below, stride);
  if (RowTiles > 1 && ColumnTiles > 1)
    _tile_stored(3, below + side, stride);
}

} // namespace

bool isOffered() {
  return tile::form() == tile::formOf(4) && tile::asksVendor() &&
         dnnl_get_effective_cpu_isa() == dnnl_cpu_isa_avx512_core_amx && isGranted();
}

void packLeft(const Rows<BFloat16> &a, BFloat16 *to) {
  eachTile(a.rows, a.columns, to,
           [&](int64_t row, int64_t depth, __m512i *tile) { packLeftTile(a, row, depth, tile); });
}
void packLeft(const Rows<float> &a, BFloat16 *to) {
  eachTile(a.rows, a.columns, to,
           [&](int64_t row, int64_t depth, __m512i *tile) { packLeftTile(a, row, depth, tile); });
}
void packRight(const Rows<BFloat16> &b, BFloat16 *to) {
  eachTile(b.columns, b.rows, to,
           [&](int64_t column, int64_t depth, __m512i *tile) { packRightTile(b, depth, column, tile); });
}
void packRight(const Rows<float> &b, BFloat16 *to) {
  eachTile(b.columns, b.rows, to,
           [&](int64_t column, int64_t depth, __m512i *tile) { packRightTile(b, depth, column, tile); });
}
void packLeftTransposed(const Rows<BFloat16> &a, BFloat16 *to) {
  eachTile(a.columns, a.rows, to, [&](int64_t row, int64_t depth, __m512i *tile) {
    __m512i pairs[side];
    packRightTile(a, depth, row, pairs);
    transpose(pairs, tile);
  });
}
void packRightTransposed(const Rows<BFloat16> &b, BFloat16 *to) {
  eachTile(b.rows, b.columns, to, [&](int64_t column, int64_t depth, __m512i *tile) {
    __m512i lines[side];
    packLeftTile(b, column, depth, lines);
    transpose(lines, tile);
  });
}

void storeTransposed(const Rows<float> &m, BFloat16 *to, int64_t toStep) {
  for (int64_t row = 0; row < m.rows; row += side)
    for (int64_t column = 0; column < m.columns; column += side)
      storeTransposedTile(m.data + row * m.step + column, m.step, m.columns - column, m.rows - row,
                          to + column * toStep + row, toStep);
}

Tiles::Tiles() { configure(); }
Tiles::~Tiles() { release(); }

void multiply(const BFloat16 *left, const BFloat16 *right, const Extents &e, float *c, int64_t cStep, bool add,
              int64_t rightDepths) {
  const int64_t leftStep = side * whole(e.depths, deep), rightStep = side * whole(rightDepths, deep);
  for (int64_t column = 0; column < e.columns; column += 2 * side) {
    const bool wide = column + side < e.columns;
    for (int64_t row = 0; row < e.rows; row += 2 * side) {
      const Factors f{left + row / side * leftStep, right + column / side * rightStep, leftStep, rightStep};
      float *to = c + row * cStep + column;
      if (row + side < e.rows)
        wide ? block<2, 2>(f, to, cStep, add) : block<2, 1>(f, to, cStep, add);
      else
        wide ? block<1, 2>(f, to, cStep, add) : block<1, 1>(f, to, cStep, add);
    }
  }
}

} // namespace sluice::amx

#else

namespace sluice::amx {

bool isOffered() { return false; }
void packLeft(const Rows<BFloat16> &, BFloat16 *) {}
void packLeft(const Rows<float> &, BFloat16 *) {}
void packLeftTransposed(const Rows<BFloat16> &, BFloat16 *) {}
void packRight(const Rows<BFloat16> &, BFloat16 *) {}
void packRight(const Rows<float> &, BFloat16 *) {}
void packRightTransposed(const Rows<BFloat16> &, BFloat16 *) {}
void storeTransposed(const Rows<float> &, BFloat16 *, int64_t) {}
Tiles::Tiles() {}
Tiles::~Tiles() {}
void multiply(const BFloat16 *, const BFloat16 *, const Extents &, float *, int64_t, bool, int64_t) {}

} // namespace sluice::amx

#endif
