// SPDX-License-Identifier: Apache-2.0
// Zero-value compression after S. Shriram, A. Garg, P. Kulkarni, IPDPS 2019, Section III: for every 32 elements a mask
// of those whose bit pattern is not zero, then those elements. (Their code tests `> 0`, which loses negatives.) A
// tensor is cut into parts; one pass counts, a second packs all parts at their final places. A part that would not
// shrink is stored as it is, so that the slot is never larger than the raw tensor and its table.
#include "runtime/host/Codec.h"
#include "runtime/host/Parallel.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

namespace sluice {

namespace {

constexpr int64_t lanes = 32;

int64_t partElements(int64_t elements, int64_t part) { return std::min(zvcPart, elements - part * zvcPart); }

int64_t partBytes(const uint32_t *x, int64_t count) {
  int64_t nonzero = 0;
  for (int64_t i = 0; i < count; ++i)
    nonzero += x[i] != 0;
  return std::min(4 * count, 4 * ((count + lanes - 1) / lanes + nonzero));
}

void packPart(const uint32_t *x, int64_t count, char *out) {
  for (int64_t at = 0; at < count; at += lanes) {
    const int here = static_cast<int>(std::min(lanes, count - at));
    uint32_t mask = 0, kept[lanes + 1];
    int filled = 0;
    for (int i = 0; i < here; ++i) {
      kept[filled] = x[at + i];
      const bool nonzero = x[at + i] != 0;
      mask |= static_cast<uint32_t>(nonzero) << i;
      filled += nonzero;
    }
    memcpy(out, &mask, 4);
    memcpy(out + 4, kept, 4 * static_cast<size_t>(filled));
    out += 4 + 4 * filled;
  }
}

/// False when masks and bytes disagree.
bool unpackPart(const char *in, int64_t bytes, uint32_t *x, int64_t count) {
  for (int64_t at = 0; at < count; at += lanes) {
    const int here = static_cast<int>(std::min(lanes, count - at));
    uint32_t mask, kept[lanes + 1] = {};
    if (bytes < 4)
      return false;
    memcpy(&mask, in, 4);
    const int64_t filled = 4 * __builtin_popcount(mask);
    if (bytes < 4 + filled || (here < lanes && mask >> here))
      return false;
    memcpy(kept, in + 4, static_cast<size_t>(filled));
    in += 4 + filled, bytes -= 4 + filled;
    for (int i = 0, next = 0; i < here; ++i) {
      const uint32_t bit = mask >> i & 1;
      x[at + i] = bit ? kept[next] : 0;
      next += static_cast<int>(bit);
    }
  }
  return bytes == 0;
}

} // namespace

int64_t measureZeroValues(const float *values, int64_t elements, int64_t *offsets) {
  const auto *x = reinterpret_cast<const uint32_t *>(values);
  const int64_t parts = zvcParts(elements);
  parallelFor(parts,
              [=](int64_t part) { offsets[part + 1] = partBytes(x + part * zvcPart, partElements(elements, part)); });
  offsets[0] = 8 * (parts + 1);
  for (int64_t part = 0; part < parts; ++part)
    offsets[part + 1] += offsets[part];
  return offsets[parts];
}

void packZeroValues(const float *values, int64_t elements, const int64_t *offsets, void *slot) {
  const auto *x = reinterpret_cast<const uint32_t *>(values);
  const int64_t parts = zvcParts(elements);
  char *data = static_cast<char *>(slot);
  if (slot != offsets)
    memcpy(slot, offsets, static_cast<size_t>(8 * (parts + 1)));
  parallelFor(parts, [=](int64_t part) {
    const int64_t count = partElements(elements, part), bytes = offsets[part + 1] - offsets[part];
    if (bytes == 4 * count)
      memcpy(data + offsets[part], x + part * zvcPart, static_cast<size_t>(bytes));
    else
      packPart(x + part * zvcPart, count, data + offsets[part]);
  });
}

void unpackZeroValues(const void *slot, size_t bytes, int64_t elements, float *values, const char *node) {
  auto *x = reinterpret_cast<uint32_t *>(values);
  const int64_t parts = zvcParts(elements), first = 8 * (parts + 1);
  const auto *offsets = static_cast<const int64_t *>(slot);
  const char *data = static_cast<const char *>(slot);
  const auto limit = static_cast<int64_t>(bytes);
  std::atomic<bool> sound{first <= limit && offsets[0] == first};
  parallelFor(sound ? parts : 0, [&](int64_t part) {
    const int64_t count = partElements(elements, part), begin = offsets[part], end = offsets[part + 1];
    // Every offset is checked against the slot before anything behind it is read.
    if (begin < first || end < begin || end - begin > 4 * count || end > limit)
      sound = false;
    else if (end - begin == 4 * count)
      memcpy(x + part * zvcPart, data + begin, static_cast<size_t>(end - begin));
    else if (!unpackPart(data + begin, end - begin, x + part * zvcPart, count))
      sound = false;
  });
  if (!sound)
    throw std::runtime_error("the host slot of '" + std::string(node) +
                             "' does not hold what was written: its zero-value code is damaged");
}

} // namespace sluice
