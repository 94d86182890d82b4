// SPDX-License-Identifier: Apache-2.0
// The safetensors format: what is written reads back, and hostile headers are refused.
#include "runtime/files/Safetensors.h"

#include "test/unit/runtime/Folder.h"

using namespace sluice;

static TensorToWrite floats(const std::string &name, const std::vector<float> &values) {
  return {name, DataType::F32, {static_cast<int64_t>(values.size())}, [values](const TensorToWrite::Put &put) {
            put(values.data(), values.size() * 4);
          }};
}

static void expectRefused(const std::string &header, const std::string &part,
                          const std::string &data = std::string(8, '\0')) {
  Folder folder;
  std::string path = folder.write("x.safetensors", safetensorsBytes(header, data));
  expectError<DataError>([&] { SafetensorsFile file(path); }, part);
}

TEST(Safetensors, WritesWhatItReads) {
  Folder folder;
  std::string path = folder / "x.safetensors";
  TensorToWrite scalar{"\"quoted\" name", DataType::I64, {}, [](const TensorToWrite::Put &put) {
                         int64_t value = 42;
                         put(&value, 8);
                       }};
  writeSafetensors(path, {{"step", "7"}}, {floats("b", {1, 2, 3}), floats("a", {4}), scalar});

  SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("step"), "7");
  float values[3];
  file.data().readAt(file.find("b", DataType::F32, {3}).offset, values, sizeof values);
  EXPECT_EQ(values[2], 3);
  int64_t number;
  file.data().readAt(file.find("\"quoted\" name", DataType::I64, {}).offset, &number, sizeof number);
  EXPECT_EQ(number, 42);
  EXPECT_TRUE(file.contains("a"));
  EXPECT_FALSE(folder.has("x.safetensors.partial"));
}

TEST(Safetensors, NamesBothSidesOfAMismatch) {
  Folder folder;
  std::string path = folder / "x.safetensors";
  writeSafetensors(path, {}, {floats("w", {1, 2})});
  SafetensorsFile file(path);
  expectError<DataError>([&] { file.find("v", DataType::F32, {2}); }, "there is no tensor 'v'");
  expectError<DataError>([&] { file.find("w", DataType::F32, {3}); }, "is F32 (2,), this program has F32 (3,)");
  expectError<DataError>([&] { file.find("w", DataType::I32, {2}); }, "is F32 (2,), this program has I32 (2,)");
  expectError<DataError>([&] { file.find("w", DataType::F32, {2, 1}); }, "this program has F32 (2, 1)");
}

TEST(Safetensors, LeavesAFormerFileAloneWhenWritingFails) {
  Folder folder;
  std::string path = folder / "x.safetensors";
  writeSafetensors(path, {}, {floats("w", {1})});
  std::string former = folder.read("x.safetensors");
  TensorToWrite failing{"w", DataType::F32, {2}, [](const TensorToWrite::Put &) { throw DataError("disk on fire"); }};
  expectError<DataError>([&] { writeSafetensors(path, {}, {failing}); }, "disk on fire");
  EXPECT_EQ(folder.read("x.safetensors"), former);
  EXPECT_FALSE(folder.has("x.safetensors.partial"));
  expectError<DataError>([&] { writeSafetensors("/dev/full", {}, {}); }, "not a regular file");
  expectError<DataError>([&] { writeSafetensors(folder / "no/x", {}, {}); }, "cannot write");
}

TEST(Safetensors, RefusesHostileHeaders) {
  Folder folder;
  std::string path = folder.write("short", "1234567");
  expectError<DataError>([&] { SafetensorsFile file(path); }, "only 7 bytes long");
  path = folder.write("long", std::string(8, '\xff') + "{}");
  expectError<DataError>([&] { SafetensorsFile file(path); }, "its length 18446744073709551615 is above");
  path = folder.write("beyond", std::string("\x03\0\0\0\0\0\0\0{}", 10));
  expectError<DataError>([&] { SafetensorsFile file(path); }, "its length 3 is above");

  path = folder.write("torch.pt", std::string("PK\x03\x04\0\0\x08\x08\0\0\0\0", 12));
  expectError<DataError>([&] { SafetensorsFile file(path); },
                         "not a safetensors file but a zip archive, as torch.save writes it: save the state_dict by");
  path = folder.write("old.pt", "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P");
  expectError<DataError>([&] { SafetensorsFile file(path); }, "not a safetensors file but a pickle, as torch.save");

  expectRefused("", "bad safetensors header");
  expectRefused("nonsense", "bad safetensors header");
  expectRefused("[]", "not a JSON object");
  expectRefused(std::string(100000, '['), "not a JSON object");
  expectRefused("{\"a\":" + std::string(100000, '['), "tensor 'a': not a JSON object");
  expectRefused("{\"a\":{\"shape\":" + std::string(100000, '['), "expected exactly dtype, shape and data_offsets");
  expectRefused("{\"__metadata__\":{\"k\":" + std::string(100000, '{'), "'k' is not a string");
  expectRefused("{\"a\":1}", "tensor 'a': not a JSON object");
  expectRefused("{\"__metadata__\":{\"k\":1}}", "'k' is not a string");
}

static std::string entry(const std::string &type, const std::string &shape, const std::string &range) {
  return "\"a\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + range + "}";
}

TEST(Safetensors, RefusesEntriesThatLie) {
  const char *form = "expected exactly dtype, shape and data_offsets";
  expectRefused("{\"a\":{}}", form);
  expectRefused("{" + entry("F32", "[2]", "[0]") + "}", form);
  expectRefused("{" + entry("F32", "[2]", "[8,0]") + "}", form);
  expectRefused("{" + entry("F32", "[-2]", "[0,8]") + "}", form);
  expectRefused("{" + entry("F32", "[2.0]", "[0,8]") + "}", form);
  expectRefused("{" + entry("F32", "[9223372036854775808]", "[0,8]") + "}", form);
  expectRefused("{" + entry("F4", "[2]", "[0,8]") + "}", "element type 'F4' is not known");
  expectRefused("{" + entry("F32", "[4294967296,4294967296]", "[0,8]") + "}", "too large");
  expectRefused("{" + entry("F32", "[3]", "[0,8]") + "}", "takes 12 bytes, its data_offsets span 8");
  expectRefused("{" + entry("F32", "[3]", "[0,12]") + "}", "ends at byte 12 of the data, the file holds 8");
}

/// In proportion to its length: each of a quarter of a million entries is looked at once.
TEST(Safetensors, BoundsTheNumberOfTensors) {
  std::string header = "{";
  const auto add = [&](int i) {
    header += "\"" + std::to_string(i) + "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},";
  };
  for (int i = 0; i < 1 << 18; ++i)
    add(i);
  Folder folder;
  const auto written = [&] {
    return folder.write("many.safetensors", safetensorsBytes(header.substr(0, header.size() - 1) + "}", ""));
  };
  EXPECT_EQ(SafetensorsFile(written()).tensors().size(), size_t{1} << 18);
  add(1 << 18);
  expectError<DataError>([&] { SafetensorsFile file(written()); }, "more than 262144 tensors");
}

TEST(Safetensors, RefusesTensorsThatOverlapOrLeaveGaps) {
  expectRefused("{" + entry("F32", "[1]", "[4,8]") + "}", "the one before ends at");
  expectRefused("{" + entry("F32", "[1]", "[0,4]") + "}", "the tensors end at byte");
  expectRefused("{" + entry("F32", "[2]", "[0,8]") + "," + entry("F32", "[2]", "[0,8]") + "}", "'a' is there twice");
  std::string overlapping = entry("F32", "[1]", "[2,6]");
  overlapping[1] = 'b';
  expectRefused("{" + entry("F32", "[1]", "[0,4]") + "," + overlapping + "}", "the one before ends at");
}

TEST(Safetensors, SurvivesDamage) {
  const std::string header =
      "{\"__metadata__\":{\"step\":\"1\"},\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
  expectSurvives<DataError>(safetensorsBytes(header, std::string(8, 'x')), [](const std::string &path) {
    SafetensorsFile file(path);
    float values[2];
    file.data().readAt(file.find("w", DataType::F32, {2}).offset, values, sizeof values);
  });
}
