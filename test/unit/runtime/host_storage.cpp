// SPDX-License-Identifier: Apache-2.0
// Copies that pack on their way to the file of storage: what comes back has the bits of what goes through host memory,
// a slot's neighbours stay, zeros are not written, and a damaged slot is noticed.
#include "test/unit/runtime/Folder.h"

#include "runtime/Codec.h"
#include "runtime/Runtime.h"
#include "runtime/host/StorageFile.h"
#include "runtime/kernels/BFloat16.h"

#include <random>

namespace sluice {
namespace {

constexpr int64_t piece = StorageFile::pieceElements;
constexpr DataType f32 = DataType::F32, bytesType = DataType::U8;

/// Half of them zeros, of both signs; of bf16 the words are halves of floats.
std::string values(int64_t count, DataType type, double density = 0.5) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<float> normal;
  std::vector<float> floats(static_cast<size_t>(count));
  for (float &x : floats)
    x = uniform(generator) < density ? normal(generator) : 0.0f;
  if (type == f32)
    return bytesOf(floats);
  std::vector<uint16_t> halves;
  for (const float x : floats)
    halves.push_back(bfloat16Of(x).bits);
  return bytesOf(halves);
}

/// A session with a tensor, a place for what comes back, and a slot in each of the two arenas.
struct Copies {
  Copies(int64_t count, DataType type, Codec codec)
      : room(static_cast<size_t>(packedBytes(codec, device(0, {count}, Layout::RowMajor, type)) + 511) / 256 * 256 +
             static_cast<size_t>(4 * count + 255) / 256 * 256),
        x(device(0, {count}, Layout::RowMajor, type)), back(device(room, {count}, Layout::RowMajor, type)),
        slot(host(256, {packedBytes(codec, x)}, Layout::RowMajor, bytesType)),
        stored(slotIn(Space::Storage, 256, {packedBytes(codec, x)}, Layout::RowMajor, bytesType)), codec(codec),
        session(2 * room, room + 512, 2, (folder / "slots").c_str(), {0, 0, room + 512}) {}

  std::string read(const Tensor &tensor) {
    std::string bytes(tensor.bytes(), '\1');
    session.read(tensor, bytes.data());
    return bytes;
  }
  std::string throughHost() {
    copyToHost(session.toHost, x, slot, "x", codec);
    session.toHost.synchronize();
    copyToDevice(session.toDevice, slot, back, "x", codec);
    return read(back);
  }
  std::string throughStorage() {
    copyToStorage(session.storage, x, stored, "x", codec);
    copyFromStorage(session.storage, stored, back, "x", codec);
    return read(back);
  }

  Folder folder;
  size_t room;
  Tensor x, back, slot, stored;
  Codec codec;
  Session session;
};

TEST(PackedStorage, GivesBackTheBitsOfHostMemory) {
  for (const char *name : {"zvc", "fp16", "bf16", "int8", "mask+int8", "mask+fp16"})
    for (const DataType type : {f32, DataType::BF16})
      for (const int64_t count : {int64_t(1), int64_t(31), int64_t(1001), piece - 1, piece, 2 * piece + 4129}) {
        const Codec codec = *parseCodec(name);
        if (type != f32 && !factsOf(codec)->takesHalves)
          continue;
        SCOPED_TRACE(std::string(name) + ", " + std::to_string(count) + (type == f32 ? " floats" : " halves"));
        Copies copies(count, type, codec);
        const std::string x = values(count, type);
        copies.session.write(copies.x, x.data());
        const Tensor before = slotIn(Space::Storage, 0, {256}, Layout::RowMajor, bytesType);
        const Tensor after = slotIn(Space::Storage, 256 + copies.stored.bytes(), {100}, Layout::RowMajor, bytesType);
        const std::string marks(256, '\x5a');
        copies.session.write(before, marks.data());
        copies.session.write(after, marks.data());
        const std::string wanted = copies.throughHost();
        EXPECT_TRUE(copies.throughStorage() == wanted);
        EXPECT_TRUE(count < 1000 || (wanted == x) == factsOf(codec)->exact);
        EXPECT_EQ(copies.read(before), marks);
        EXPECT_EQ(copies.read(after), marks.substr(0, 100));
      }
}

TEST(PackedStorage, WritesNoZeros) {
  for (const double density : {0.0, 0.1, 1.0}) {
    Copies copies(2 * piece + 999, f32, Codec::Zvc);
    copies.session.write(copies.x, values(2 * piece + 999, f32, density).data());
    const std::string x = copies.read(copies.x);
    EXPECT_TRUE(copies.throughStorage() == x);
    const Session::PackedBytes packed = copies.session.packedBytes();
    EXPECT_EQ(packed.raw, x.size());
    EXPECT_LE(packed.packed, static_cast<size_t>(static_cast<double>(x.size()) * std::min(1.0, density + 0.04)) + 64);
  }
}

TEST(PackedStorage, DamagedSlotsAreNoticed) {
  const auto damaged = [](int64_t used) {
    Copies copies(piece + 5, f32, Codec::Zvc);
    copies.session.write(copies.x, values(piece + 5, f32).data());
    copyToStorage(copies.session.storage, copies.x, copies.stored, "conv1", Codec::Zvc);
    copies.session.write(slotIn(Space::Storage, 256, {8}, Layout::RowMajor, bytesType), &used);
    copyFromStorage(copies.session.storage, copies.stored, copies.back, "conv1", Codec::Zvc);
    try {
      copies.session.synchronize();
    } catch (const std::runtime_error &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const int64_t used : {int64_t(0), int64_t(-1), 4 * piece + 1})
    EXPECT_THAT(damaged(used), testing::HasSubstr("the slot of 'conv1' in the file of --offload-to does not hold"));
  EXPECT_THAT(damaged(1000), testing::HasSubstr("its zero-value code is damaged"));
}

TEST(PackedStorage, TakesCodecsThatPackInPieces) {
  Copies copies(1000, f32, Codec::Zfp);
  EXPECT_THROW(copyToStorage(copies.session.storage, copies.x, copies.stored, "x", Codec::Zfp), std::invalid_argument);
  const Tensor slot = slotIn(Space::Storage, 0, {1999}, Layout::RowMajor, bytesType);
  EXPECT_THROW(copyToStorage(copies.session.storage, copies.x, slot, "x", Codec::Fp16), std::invalid_argument);
  EXPECT_THROW(copyToStorage(copies.session.storage, copies.x, copies.slot, "x", Codec::Fp16), std::invalid_argument);
  std::vector<float> large(1000, 1e6f);
  copies.session.write(copies.x, large.data());
  const Tensor halves = slotIn(Space::Storage, 0, {2000}, Layout::RowMajor, bytesType);
  copyToStorage(copies.session.storage, copies.x, halves, "x", Codec::Fp16);
  EXPECT_THROW(copies.session.synchronize(), ValueNotStorable);
}

} // namespace
} // namespace sluice
