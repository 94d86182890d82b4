// SPDX-License-Identifier: Apache-2.0
// Copies with zvc of words of any size, for tests: what stands in the slot, what comes back, and what was counted.
#pragma once

#include "test/unit/runtime/Harness.h"

#include <random>

namespace sluice {

/// What a slot of zvc holds, read as runtime/Codec.h describes it.
template <typename Word> std::vector<Word> fromZeroValues(const std::vector<char> &slot, int64_t count) {
  constexpr int64_t width = sizeof(Word), most = zvcPart / width;
  std::vector<Word> x(static_cast<size_t>(count));
  const auto *table = reinterpret_cast<const int64_t *>(slot.data());
  EXPECT_EQ(table[0], zvcTableBytes(width * count));
  for (int64_t part = 0; part < zvcParts(width * count); ++part) {
    const int64_t here = std::min(most, count - part * most), begin = table[0] + part * zvcPart;
    const char *form = slot.data() + begin;
    Word *to = x.data() + part * most;
    if (table[part + 1] - begin == width * here) {
      memcpy(to, form, static_cast<size_t>(width * here));
      continue;
    }
    int64_t next = zvcMaskBytes(here);
    for (int64_t i = 0; i < here; ++i) {
      uint32_t mask;
      memcpy(&mask, form + i / 32 * 4, 4);
      if ((mask >> (i % 32) & 1) == 0)
        continue;
      memcpy(to + i, form + next, sizeof(Word));
      next += width;
    }
    EXPECT_EQ(table[part + 1], begin + next) << "part " << part;
  }
  return x;
}

/// `density` of them are among `odd`, the others zero.
template <typename Word> std::vector<Word> sparseWords(int64_t count, double density, const std::vector<Word> &odd) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Word> words(static_cast<size_t>(count));
  for (Word &word : words)
    word = uniform(generator) < density ? odd[generator() % odd.size()] : Word(0);
  return words;
}

/// Copies tensors of `type` out and back: of one group, of a ragged one, of whole and ragged parts, of more parts than
/// a copy has blocks.
template <typename Word> void expectZeroValuesBack(DataType type, const std::vector<Word> &odd) {
  constexpr Codec zvc{Codec::Zvc};
  constexpr int64_t width = sizeof(Word), part = zvcPart / width;
  for (int64_t count : {int64_t(1), int64_t(33), int64_t(1001), part, 2 * part + 4129, 33 * part + 131})
    for (double density : {0.0, 0.02, 0.5, 0.98, 1.0}) {
      const auto raw = static_cast<size_t>(width * count), room = (raw + 255) / 256 * 256;
      Session session(2 * room, room + 4096, 2);
      const Tensor x = device(0, {count}, Layout::RowMajor, type), back = device(room, {count}, Layout::RowMajor, type);
      const Tensor slot = host(256, {packedBytes(zvc, x)}, Layout::RowMajor, DataType::U8);
      const std::vector<Word> words = sparseWords(count, density, odd);
      std::vector<Word> read(words.size(), Word(1));
      session.write(x, words.data());
      session.write(back, read.data());
      copyToHost(session.toHost, x, slot, "x", zvc);
      session.toHost.record({0});
      session.toDevice.wait({0});
      copyToDevice(session.toDevice, slot, back, "x", zvc);
      session.read(back, read.data());
      EXPECT_TRUE(read == words) << count << " values, " << density;
      std::vector<char> bytes(slot.bytes());
      session.read(slot, bytes.data());
      EXPECT_TRUE(fromZeroValues<Word>(bytes, count) == words) << count << " values, " << density;
      const auto *table = reinterpret_cast<const int64_t *>(bytes.data());
      auto used = static_cast<size_t>(table[0]);
      for (int64_t i = 0; i < zvcParts(width * count); ++i)
        used += static_cast<size_t>(table[i + 1] - table[0] - i * zvcPart);
      EXPECT_EQ(session.packedBytes().raw, raw);
      EXPECT_EQ(session.packedBytes().packed, used);
    }
}

} // namespace sluice
