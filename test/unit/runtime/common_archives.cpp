// SPDX-License-Identifier: Apache-2.0
// Data in archives: npz, safetensors, tar shards.
#include "test/unit/runtime/DataPrograms.h"

#include "runtime/Errors.h"

#include <zlib.h>

using namespace sluice;

namespace {

/// A zip file of one member, deflated unless that is off.
std::string zipOf(const std::string &name, const std::string &bytes, bool deflate, uint32_t claimed = 0) {
  std::string packed = bytes;
  if (deflate) {
    packed.resize(compressBound(bytes.size()));
    z_stream stream = {};
    deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef *>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    ::deflate(&stream, Z_FINISH);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
  }
  const auto number = [](uint64_t value, int size) {
    return std::string(reinterpret_cast<const char *>(&value), static_cast<size_t>(size));
  };
  const std::string facts = number(deflate ? 8 : 0, 2) + number(0, 4) + number(0, 4) + number(packed.size(), 4) +
                            number(claimed ? claimed : bytes.size(), 4) + number(name.size(), 2) + number(0, 2);
  const std::string local = number(0x04034b50, 4) + number(20, 2) + number(0, 2) + facts + name + packed;
  const std::string central =
      number(0x02014b50, 4) + number(20, 2) + number(20, 2) + number(0, 2) + facts + std::string(14, '\0') + name;
  return local + central + number(0x06054b50, 4) + number(0, 4) + number(1, 2) + number(1, 2) +
         number(central.size(), 4) + number(local.size(), 4) + number(0, 2);
}

const Input idsOnly[] = {{"ids", {}, host(0, {2, 3}, Layout::RowMajor, DataType::I64), 0}};

std::vector<int64_t> firstIds(const std::string &where) {
  const Program program = programWith(idsOnly);
  std::vector<int64_t> batch(6);
  Dataset(from(where), program).gather({0, 0}, {batch.data()});
  return batch;
}

} // namespace

TEST(Npz, ReadsStoredAndDeflatedArrays) {
  Folder folder;
  const std::vector<int64_t> ids = {1, 2, 3, 4, 5, 6};
  const std::string array = npyArray("<i8", "(2, 3)", ids);
  for (bool deflate : {false, true}) {
    folder.write("a.npz", zipOf("input.npy", array, deflate));
    EXPECT_EQ(firstIds("npz:" + folder / "a.npz"), ids);
  }
  const auto refused = [&](const std::string &zip, const std::string &why) {
    folder.write("a.npz", zip);
    expectError<DataError>([&] { firstIds("npz:" + folder / "a.npz"); }, why);
  };
  refused(zipOf("other.npy", array, true), "has no array 'input', but other.npy");
  refused(zipOf("input.npy", array, true, 100), "unpacks to more than 100 bytes");
  refused(zipOf("input.npy", array, true, 4096), "unpacks to 176 bytes, the directory says 4096");
  refused(zipOf("input.npy", array, true).substr(0, 100), "not a zip file, or cut short");
  refused("", "not a zip file, or cut short");
}

TEST(Npz, SurvivesDamage) {
  const std::string good = zipOf("input.npy", npyArray<int64_t>("<i8", "(2, 3)", {1, 2, 3, 4, 5, 6}), true);
  expectSurvives<DataError>(good, [](const std::string &path) { firstIds("npz:" + path); });
}

TEST(SafetensorsData, AreReadByName) {
  Folder folder;
  folder.write("a.safetensors", safetensorsBytes(R"({"input":{"dtype":"I32","shape":[2,3],"data_offsets":[0,24]}})",
                                                 bytesOf<int32_t>({1, 2, 3, 4, 5, -6})));
  EXPECT_EQ(firstIds("safetensors:" + folder / "a.safetensors"), (std::vector<int64_t>{1, 2, 3, 4, 5, -6}));
  folder.write("a.safetensors", safetensorsBytes(R"({"input":{"dtype":"F64","shape":[2,3],"data_offsets":[0,48]}})",
                                                 std::string(48, '\0')));
  expectError<DataError>([&] { firstIds("safetensors:" + folder / "a.safetensors"); }, "tensor 'input' is F64");
}

/// Arrays of bytes are images for inputs of floats: scaled, and of any size.
TEST(Npz, HasImagesOfBytes) {
  Folder folder;
  folder.write("input.npy", npyArray<uint8_t>("|u1", "(2, 2, 3)", {0, 51, 102, 153, 204, 255, 1, 2, 3, 4, 5, 6}));
  folder.write("target.npy", npyArray<int64_t>("<i8", "(2,)", {3, 4}));
  EXPECT_EQ(readAll(from(folder.path), programWith(greys)).first[1], 0.2f);
}

namespace {

std::string tarMember(const std::string &name, const std::string &bytes, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  char size[13];
  std::snprintf(size, sizeof size, "%011o", static_cast<unsigned>(bytes.size()));
  header.replace(124, 11, size);
  header[156] = type;
  header.replace(257, 5, "ustar");
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (unsigned char c : header)
    sum += c;
  std::snprintf(size, sizeof size, "%06o", sum);
  header.replace(148, 7, std::string(size, 7));
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

std::string sampleOf(const std::string &key, int label) {
  return tarMember(key + ".cls", std::to_string(label) + "\n") + tarMember(key + ".png", picture("grey.png"));
}

} // namespace

TEST(Shards, AreSamplesOfNeighbouringMembers) {
  Folder folder;
  const Program program = programWith(images);
  folder.write("1.tar", sampleOf("d/0", 2) + tarMember("pax", "30 mtime=1700000000.123456789\n", 'x') +
                            sampleOf("d/1", 0) + std::string(1024, '\0'));
  folder.write("0.tar", sampleOf("0", 1) + sampleOf("1", 2));
  EXPECT_EQ(readAll(from("shards:" + folder.path), program).second, (std::vector<int64_t>{1, 2, 2, 0}));
  EXPECT_EQ(readAll(from("shards:" + folder / "1.tar"), program).second, (std::vector<int64_t>{2, 0}));

  DataOptions options = from("shards:" + folder / "2.tar");
  const auto open = [&] { readAll(options, program); };
  const std::string bare = tarMember("7.png", picture("grey.png"));
  folder.write("2.tar", sampleOf("0", 1) + bare + sampleOf("1", 2));
  expectError<DataError>(open, "2.tar: 7 has no .cls with a number beside its image");
  options.skipBad = true;
  EXPECT_EQ(readAll(options, program).second, (std::vector<int64_t>{1, 2}));
  folder.write("2.tar", sampleOf("0", 1).substr(0, 1600));
  expectError<DataError>(open, "cut short: a member of");
  folder.write("2.tar", std::string(512, 'x'));
  expectError<DataError>(open, "a bad tar header");
}

TEST(Shards, IgnoreExtendedHeadersThatAreDamaged) {
  Folder folder;
  const Program program = programWith(images);
  for (const char *records :
       {"0013 path=d/7\n", "0001 path=d/7\n", "99 path=d/7\n", "0 path=d/7\n", "path=d/7\n", "1"}) {
    folder.write("0.tar", tarMember("pax", records, 'x') + sampleOf("0", 1) + sampleOf("1", 2));
    EXPECT_EQ(readAll(from("shards:" + folder / "0.tar"), program).second, (std::vector<int64_t>{1, 2})) << records;
  }
}

/// All samples once an epoch, shards in another order each, neighbours mixed.
TEST(Shards, AreShuffledTogether) {
  Folder folder;
  const Input list[] = {{"x", {}, host(0, {1, 3, 4, 4}), 0},
                        {"target", {}, host(0, {1}, Layout::RowMajor, DataType::I64), 30, Loss::none, false, true}};
  const Program program = programWith(list);
  for (int file = 0; file < 6; ++file) {
    std::string tar;
    for (int i = 0; i < 5; ++i)
      tar += sampleOf(std::to_string(i), file * 5 + i);
    folder.write(std::to_string(file) + ".tar", tar);
  }
  DataOptions options = from("shards:" + folder.path);
  std::vector<int64_t> plain = readAll(options, program).second;
  options.shuffle = true;
  std::vector<int64_t> mixed = readAll(options, program).second;
  EXPECT_EQ(mixed, readAll(options, program).second);
  EXPECT_NE(mixed, plain);
  std::sort(mixed.begin(), mixed.end());
  EXPECT_EQ(mixed, plain);
}
