// SPDX-License-Identifier: Apache-2.0
// .npy files as NumPy writes them, and headers that lie.
#include "runtime/files/Npy.h"

#include "test/unit/runtime/Folder.h"

using namespace sluice;
using Dims = std::vector<int64_t>;

static void expectRefused(const std::string &bytes, const std::string &part) {
  Folder folder;
  std::string path = folder.write("x.npy", bytes);
  expectError<DataError>([&] { NpyFile file(path); }, part);
}
static void expectHeaderRefused(const std::string &dictionary, const std::string &part) {
  expectRefused(npyBytes(dictionary, std::string(16, '\0')), part);
}

TEST(Npy, ReadsTypesAndShapes) {
  Folder folder;
  NpyFile floats(folder.write("f.npy", npyArray<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6})));
  EXPECT_EQ(floats.type(), DataType::F32);
  EXPECT_EQ(floats.shape(), (Dims{2, 3}));
  float row[3];
  floats.read(1, 1, row);
  EXPECT_EQ(row[0], 4);
  EXPECT_EQ(row[2], 6);

  NpyFile ids(folder.write("i.npy", npyArray<int64_t>("<i8", "(3,)", {7, -1, int64_t(1) << 40})));
  EXPECT_EQ(ids.type(), DataType::I64);
  int64_t id;
  ids.read(2, 1, &id);
  EXPECT_EQ(id, int64_t(1) << 40);

  EXPECT_EQ(NpyFile(folder.write("u.npy", npyArray<uint8_t>("|u1", "(1, 0, 4)", {}))).shape(), (Dims{1, 0, 4}));
  EXPECT_EQ(NpyFile(folder.write("s.npy", npyArray<int32_t>("<i4", "()", {5}))).shape(), Dims{});
}

TEST(Npy, ReadsVersionsTwoAndThree) {
  for (char version : {'\x02', '\x03'}) {
    Folder folder;
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n";
    std::string bytes = std::string("\x93NUMPY") + version + std::string(1, '\0') + static_cast<char>(header.size()) +
                        std::string(3, '\0') + header + bytesOf<float>({2.5f});
    NpyFile file(folder.write("x.npy", bytes));
    float value;
    file.read(0, 1, &value);
    EXPECT_EQ(value, 2.5f);
  }
}

TEST(Npy, RefusesWhatIsNoNpy) {
  expectError<DataError>([] { NpyFile("/nonexistent/x.npy"); }, "cannot open /nonexistent/x.npy: No such file");
  expectError<DataError>([] { NpyFile("/tmp"); }, "not a regular file");
  expectError<DataError>([] { NpyFile("/dev/zero"); }, "not a regular file");
  expectRefused("", "0 bytes are too short");
  expectRefused("\x93NUMPY", "6 bytes are too short");
  expectRefused(std::string(100, 'x'), "does not begin with");
  std::string other = npyArray<float>("<f4", "(1,)", {1});
  other[6] = 4;
  expectRefused(other, "version 4 is not known");
}

TEST(Npy, NamesWhatNumpyHasBesides) {
  expectHeaderRefused("{'descr': [('x', '<f4'), ('y', '<i8')], 'fortran_order': False, 'shape': (2,)}",
                      "x.npy: a structured array, whose elements have fields: save each field as an array of its own, "
                      "numpy.save(NAME, array[FIELD])");
  Folder folder;
  const std::vector<uint8_t> bytes = {0, 1};
  const NpyFile truths(folder.write("b.npy", npyArray("|b1", "(2,)", bytes)));
  EXPECT_EQ(truths.type(), DataType::U8);
  EXPECT_STREQ(truths.elementName(), "bool");
  EXPECT_STREQ(NpyFile(folder.write("u.npy", npyArray("|u1", "(2,)", bytes))).elementName(), "uint8");
}

TEST(Npy, RefusesHeadersThatLie) {
  std::string length = npyArray<float>("<f4", "(1,)", {1});
  length[9] = '\x7f';
  expectRefused(length, "bad .npy header: its length");
  std::string huge = length;
  huge[6] = 2;
  expectRefused(huge, "bad .npy header: its length");
  expectHeaderRefused("", "expected '{'");
  expectHeaderRefused("{", "expected '\"'");
  expectHeaderRefused("{'descr", "a string has no end");
  expectHeaderRefused("{'descr': '<f4'}", "a key of descr, fortran_order, shape is missing");
  expectHeaderRefused("{'descr': '<f4', 'descr': '<f4'}", "'descr' is given twice");
  expectHeaderRefused("{'x': '<f4'}", "unknown key 'x'");
  expectHeaderRefused("{'descr': '<f4', 'fortran_order': Fals", "expected True or False");
  expectHeaderRefused("{'descr': '<f4', 'fortran_order': False, 'shape': (-4,)}", "expected a dimension");
  expectHeaderRefused("{'descr': '<f4', 'fortran_order': False, 'shape': (4", "expected ')'");
  expectHeaderRefused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "too large");
  std::string many = "(";
  for (int i = 0; i < 40; ++i)
    many += "1,";
  expectHeaderRefused("{'descr': '<f4', 'fortran_order': False, 'shape': " + many + ")}", "more than 32 dimensions");
}

TEST(Npy, RefusesArraysThatDoNotFit) {
  auto header = [](const std::string &descr, const std::string &order, const std::string &shape) {
    return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  };
  expectHeaderRefused(header("<f8", "False", "(2,)"), "element type '<f8' is not supported");
  expectHeaderRefused(header(">f4", "False", "(4,)"), "element type '>f4' is not supported");
  expectHeaderRefused(header("|O", "False", "(4,)"), "element type '|O' is not supported");
  expectHeaderRefused(header("<f4", "True", "(2, 2)"), "Fortran order");
  expectHeaderRefused(header("<f4", "False", "(5,)"), "takes 20 bytes, the file holds 16");
  expectHeaderRefused(header("<f4", "False", "(3,)"), "takes 12 bytes, the file holds 16");
  expectHeaderRefused(header("<f4", "False", "(4294967296, 4294967296, 4)"), "too large, the file holds 16 bytes");
  expectHeaderRefused(header("<f4", "False", "(4294967296, 1073741825)"), "too large, the file holds 16 bytes");
}

TEST(Npy, NoticesAFileThatShrinks) {
  Folder folder;
  NpyFile file(folder.write("x.npy", npyArray<float>("<f4", "(2,)", {1, 2})));
  std::filesystem::resize_file(file.path(), 20);
  float value;
  expectError<DataError>([&] { file.read(1, 1, &value); }, "ends at byte");
}

TEST(Npy, SurvivesDamage) {
  expectSurvives<DataError>(npyArray<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6}), [](const std::string &path) {
    NpyFile file(path);
    int64_t samples = file.shape().empty() ? 1 : file.shape()[0];
    std::vector<char> bytes(static_cast<size_t>(samples) * file.sampleBytes());
    file.read(0, samples, bytes.data());
  });
}
