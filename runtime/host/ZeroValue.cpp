// SPDX-License-Identifier: Apache-2.0
// Zero-value compression after S. Shriram, A. Garg, P. Kulkarni, IPDPS 2019, Section III: bits that say which elements
// have a bit pattern that is not zero, and those elements. (Their code tests `> 0`, which loses negatives.) In a slot
// every part has its place, so that one pass over the tensor packs it. In a pool the place of a part follows from the
// parts before it: a few at a time are counted and packed, the second time from the caches.
#include "runtime/host/Codec.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace sluice {

namespace {

constexpr int64_t lanes = 32;
constexpr int64_t together = 8; ///< parts that are counted before they are packed: 1 MiB

/// An element's bits.
template <typename T> using WordOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>;

template <typename Word> constexpr int64_t width = sizeof(Word);
template <typename Word> constexpr int64_t partWords = zvcPart / width<Word>;

template <typename Word> int64_t partElements(int64_t elements, int64_t part) {
  return std::min(partWords<Word>, elements - part * partWords<Word>);
}

/// Bits of the elements that are not zero, and those elements at `kept`, which has room for `lanes` of them. restore()
/// undoes it, and may read as many.
template <typename Word> uint32_t keepNonzeros(const Word *x, int count, Word *kept) {
  uint32_t mask = 0;
  for (int i = 0, filled = 0; i < count; ++i) {
    kept[filled] = x[i]; // the next one that is not zero overwrites a zero
    const bool nonzero = x[i] != 0;
    mask |= static_cast<uint32_t>(nonzero) << i;
    filled += nonzero;
  }
  return mask;
}
template <typename Word> void restore(uint32_t mask, const Word *kept, Word *x, int count) {
  for (int i = 0; i < count; ++i) {
    const uint32_t bit = mask >> i & 1;
    x[i] = bit ? *kept : Word(0);
    kept += bit;
  }
}
#if defined(__AVX512F__)
uint32_t keepNonzeros(const uint32_t *x, int count, uint32_t *kept) {
  uint32_t mask = 0;
  for (int at = 0, filled = 0; at < count; at += 16) {
    const auto here = static_cast<__mmask16>(count - at < 16 ? (1u << (count - at)) - 1 : 0xffffu);
    const __m512i values = _mm512_maskz_loadu_epi32(here, x + at);
    const __mmask16 nonzero = _mm512_test_epi32_mask(values, values);
    _mm512_storeu_si512(kept + filled, _mm512_maskz_compress_epi32(nonzero, values));
    mask |= static_cast<uint32_t>(nonzero) << at;
    filled += __builtin_popcount(nonzero);
  }
  return mask;
}
void restore(uint32_t mask, const uint32_t *kept, uint32_t *x, int count) {
  for (int at = 0; at < count; at += 16) {
    const auto here = static_cast<__mmask16>(count - at < 16 ? (1u << (count - at)) - 1 : 0xffffu);
    const auto nonzero = static_cast<__mmask16>(mask >> at);
    _mm512_mask_storeu_epi32(x + at, here, _mm512_maskz_expand_epi32(nonzero, _mm512_loadu_si512(kept)));
    kept += __builtin_popcount(nonzero);
  }
}
#endif

template <typename Word> int64_t partBytes(const Word *x, int64_t count) {
  int64_t nonzero = 0;
  for (int64_t i = 0; i < count; ++i)
    nonzero += x[i] != 0;
  return std::min(width<Word> * count, zvcMaskBytes(count) + width<Word> * nonzero);
}

/// `count` words; whole groups where that does not touch what lies after `room` words, because they are moved faster.
template <typename Word> void moveWords(void *to, const void *from, int64_t count, int64_t room) {
  if (room >= lanes)
    memcpy(to, from, width<Word> * lanes);
  else
    memcpy(to, from, static_cast<size_t>(width<Word> * count));
}

/// Returns the bytes written, at most those of `count` elements. `room`: words at `out` that are the part's own.
template <typename Word> int64_t packPart(const Word *x, int64_t count, char *out, int64_t room) {
  uint32_t masks[partWords<Word> / lanes] = {};
  Word kept[lanes] = {};
  int64_t filled = zvcMaskBytes(count) / width<Word>;
  for (int64_t at = 0; at < count; at += lanes) {
    const uint32_t mask = keepNonzeros(x + at, static_cast<int>(std::min(lanes, count - at)), kept);
    const int64_t bits = __builtin_popcount(mask);
    if (filled + bits >= count) {
      memcpy(out, x, static_cast<size_t>(width<Word> * count));
      return width<Word> * count;
    }
    moveWords<Word>(out + width<Word> * filled, kept, bits, room - filled);
    masks[at / lanes] = mask;
    filled += bits;
  }
  memcpy(out, masks, static_cast<size_t>(zvcMaskBytes(count)));
  return width<Word> * filled;
}

/// False when bits and bytes disagree.
template <typename Word> bool unpackPart(const char *in, int64_t bytes, Word *x, int64_t count) {
  const int64_t end = bytes / width<Word>, masks = zvcMaskBytes(count) / 4;
  int64_t next = zvcMaskBytes(count) / width<Word>;
  if (bytes % width<Word> != 0 || next > end)
    return false;
  for (int64_t group = 0; group < masks; ++group) {
    const int here = static_cast<int>(std::max<int64_t>(0, std::min(lanes, count - group * lanes)));
    uint32_t mask;
    Word kept[lanes + 1] = {};
    memcpy(&mask, in + 4 * group, 4);
    const int64_t bits = __builtin_popcount(mask);
    if (next + bits > end || (here < lanes && mask >> here))
      return false;
    moveWords<Word>(kept, in + width<Word> * next, bits, end - next);
    restore(mask, kept, x + group * lanes, here);
    next += bits;
  }
  return next == end;
}

} // namespace

template <typename T> int64_t packZeroValues(const T *values, int64_t elements, void *slot) {
  using Word = WordOf<T>;
  const auto *x = reinterpret_cast<const Word *>(values);
  auto *table = static_cast<int64_t *>(slot);
  table[0] = zvcTableBytes(width<Word> * elements);
  std::atomic<int64_t> used{table[0]};
  parallelFor(zvcParts(width<Word> * elements), [&](int64_t part) {
    const int64_t place = table[0] + zvcPart * part;
    const int64_t count = partElements<Word>(elements, part);
    const int64_t bytes = packPart(x + part * partWords<Word>, count, static_cast<char *>(slot) + place, count);
    table[part + 1] = place + bytes;
    used += bytes;
  });
  return used;
}

template <typename T> int64_t packZeroValuesDensely(const T *values, int64_t elements, void *to, int64_t room) {
  using Word = WordOf<T>;
  const auto *x = reinterpret_cast<const Word *>(values);
  auto *table = static_cast<int64_t *>(to);
  int64_t end = zvcTableBytes(width<Word> * elements);
  if (end <= room)
    table[0] = end;
  for (int64_t first = 0, parts = zvcParts(width<Word> * elements); first < parts; first += together) {
    const int64_t here = std::min(together, parts - first);
    int64_t begins[together + 1] = {end};
    parallelFor(here, [&](int64_t i) {
      begins[i + 1] = partBytes(x + (first + i) * partWords<Word>, partElements<Word>(elements, first + i));
    });
    for (int64_t i = 0; i < here; ++i)
      begins[i + 1] += begins[i];
    end = begins[here];
    parallelFor(end <= room ? here : 0, [&](int64_t i) {
      table[first + i + 1] = begins[i + 1];
      packPart(x + (first + i) * partWords<Word>, partElements<Word>(elements, first + i),
               static_cast<char *>(to) + begins[i], (begins[i + 1] - begins[i]) / width<Word>);
    });
  }
  return end;
}

template <typename T>
void unpackZeroValues(const void *slot, size_t bytes, int64_t elements, T *values, const char *node, bool densely) {
  using Word = WordOf<T>;
  auto *x = reinterpret_cast<Word *>(values);
  const int64_t parts = zvcParts(width<Word> * elements), first = zvcTableBytes(width<Word> * elements);
  const auto *table = static_cast<const int64_t *>(slot);
  const char *data = static_cast<const char *>(slot);
  const auto limit = static_cast<int64_t>(bytes);
  std::atomic<bool> sound{first <= limit && table[0] == first};
  parallelFor(sound ? parts : 0, [&](int64_t part) {
    const int64_t count = partElements<Word>(elements, part), end = table[part + 1],
                  begin = densely ? table[part] : first + zvcPart * part;
    // Every place is checked against the slot before anything there is read.
    if (begin < first || end < begin || end - begin > width<Word> * count || end > limit)
      sound = false;
    else if (end - begin == width<Word> * count)
      memcpy(x + part * partWords<Word>, data + begin, static_cast<size_t>(end - begin));
    else if (!unpackPart(data + begin, end - begin, x + part * partWords<Word>, count))
      sound = false;
  });
  if (!sound)
    throw std::runtime_error("the host slot of '" + std::string(node) +
                             "' does not hold what was written: its zero-value code is damaged");
}

#define SLUICE_ZERO_VALUES(T)                                                                                          \
  template int64_t packZeroValues(const T *, int64_t, void *);                                                         \
  template int64_t packZeroValuesDensely(const T *, int64_t, void *, int64_t);                                         \
  template void unpackZeroValues(const void *, size_t, int64_t, T *, const char *, bool);
SLUICE_ZERO_VALUES(float)
SLUICE_ZERO_VALUES(BFloat16)

} // namespace sluice
