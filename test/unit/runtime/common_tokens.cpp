// SPDX-License-Identifier: Apache-2.0
// Files of token ids: how they are cut into windows, and what ids they are taken for.
#include "test/unit/runtime/DataPrograms.h"

#include "runtime/Errors.h"

using namespace sluice;

/// The ids and the targets of the second window of three tokens.
static std::vector<int64_t> secondWindow(const std::string &where, const Program &program) {
  Dataset data(from("tokens:" + where), program);
  std::vector<int64_t> input(3), target(3);
  data.gather({0, 1}, {input.data(), target.data()});
  input.insert(input.end(), target.begin(), target.end());
  return input;
}

TEST(Tokens, TargetsAreOneTokenLater) {
  const Input list[] = {{"ids", {}, host(0, {1, 3}, Layout::RowMajor, DataType::I64), 100},
                        {"target", {}, host(0, {1, 3}, Layout::RowMajor, DataType::I64), 100, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  const auto ids = [&](const std::string &name) { return secondWindow(folder / name, program); };
  folder.write("t.bin", bytesOf<uint16_t>({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(ids("t.bin"), (std::vector<int64_t>{4, 5, 6, 5, 6, 7}));
  folder.write("t.u32.bin", bytesOf<uint32_t>({1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(ids("t.u32.bin"), (std::vector<int64_t>{4, 5, 6, 5, 6, 7}));
  // Windows at every second token: 1-3, 3-5, 5-7, the last with 8 after it.
  EXPECT_EQ(ids("t.bin,stride=2"), (std::vector<int64_t>{3, 4, 5, 4, 5, 6}));
  EXPECT_EQ(Dataset(from("tokens:" + folder / "t.bin,stride=2"), program).samples(), 3);
  EXPECT_EQ(Dataset(from("tokens:" + folder / "t.bin,stride=1"), program).samples(), 5);
  EXPECT_EQ(Dataset(from("tokens:" + folder / "t.bin"), program).samples(), 2);
  for (const char *stride : {"0", "-1", "x", ""})
    expectError<UsageError>([&] { ids(std::string("t.bin,stride=") + stride); }, "stride is a whole number");
  folder.write("t.bin", bytesOf<uint16_t>({1, 2, 3, 4, 5, 100, 7}));
  expectError<DataError>([&] { ids("t.bin"); }, "the window at token 3 holds 100, 'ids' must lie between 0 and 99");
  folder.write("t.bin", "123");
  expectError<DataError>([&] { ids("t.bin"); }, "3 bytes are no whole number of tokens of 2 bytes");
}

/// Ids of another width, or what are no ids, may all lie within the model's range.
TEST(Tokens, AreReadAsWhatTheyAre) {
  const Input list[] = {
      {"ids", {}, host(0, {1, 3}, Layout::RowMajor, DataType::I64), 50000},
      {"target", {}, host(0, {1, 3}, Layout::RowMajor, DataType::I64), 50000, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  const auto ids = [&](const std::string &name) { return secondWindow(folder / name, program); };
  const std::vector<int> numbers = {1, 2, 3, 400, 5, 6, 7, 8, 9, 10, 11, 40000, 13, 14, 15, 16, 17, 18};
  const std::vector<uint16_t> shorts(numbers.begin(), numbers.end());
  const std::vector<uint32_t> words(numbers.begin(), numbers.end());
  const std::vector<int64_t> longs(numbers.begin(), numbers.end());
  const std::vector<int64_t> wanted = {400, 5, 6, 5, 6, 7};
  folder.write("u16.bin", bytesOf(shorts));
  folder.write("u32.bin", bytesOf(words));
  folder.write("i64.bin", bytesOf(longs));
  EXPECT_EQ(ids("u16.bin"), wanted);
  EXPECT_THAT(Dataset(from("tokens:" + folder / "u16.bin"), program).notes(),
              testing::ElementsAre(testing::HasSubstr("u16.bin: 18 tokens of uint16")));
  expectError<DataError>([&] { ids("u32.bin"); }, "u32.bin: every second number of 2 bytes is 0 or a sign, as in a ");
  expectError<DataError>([&] { ids("i64.bin"); }, "as in a file of int64: say so, tokens:");
  EXPECT_EQ(ids("u32.bin,type=uint32"), wanted);
  EXPECT_EQ(ids("u32.bin,type=int32"), wanted);
  EXPECT_EQ(ids("i64.bin,type=int64"), wanted);
  EXPECT_EQ(ids("i64.bin,type=int64,stride=3"), wanted);
  EXPECT_EQ(ids("i64.bin,stride=3,type=int64"), wanted);
  EXPECT_EQ(ids("u32.bin,type=uint16"), (std::vector<int64_t>{0, 3, 0, 3, 0, 400}));
  expectError<UsageError>([&] { ids("i64.bin,type=float"); }, "the type is one of uint8, uint16, uint32, int32, int64");
  expectError<UsageError>([&] { ids("i64.bin,type="); }, "type= names nothing: the type is one of uint8, uint16");

  folder.write("a.npy", npyArray("<u2", "(18,)", shorts));
  folder.write("b.npy", npyArray("<i8", "(18,)", longs));
  EXPECT_EQ(ids("a.npy"), wanted);
  EXPECT_EQ(ids("b.npy"), wanted);
  expectError<UsageError>([&] { ids("a.npy,type=uint16"); }, "a .npy file says its type itself");
  folder.write("a.npy", npyArray("<f4", "(9,)", words));
  expectError<DataError>([&] { ids("a.npy"); }, "element type '<f4' is no whole number");
  folder.write("a.npy", npyArray("<u2", "(2, 9)", shorts));
  expectError<DataError>([&] { ids("a.npy"); }, "an array (2, 9): one of one dimension is needed");
  folder.write("a.npy", npyArray("<u2", "(19,)", shorts));
  expectError<DataError>([&] { ids("a.npy"); }, "does not take the 36 bytes that the file holds");
  const std::vector<int64_t> ignored = {1, -100, 3, 4, 5, 6, 7, 8, 9};
  folder.write("i.bin", bytesOf(ignored));
  expectError<DataError>([&] { ids("i.bin"); }, "as in a file of int64");
  expectError<DataError>([&] { ids("i.bin,type=int64"); }, "the window at token 0 holds -100, 'ids' must lie");

  folder.write("t.txt", "It was the best of times, it was the worst of times.");
  expectError<DataError>([&] { ids("t.txt"); }, "t.txt is text: tokens: takes ids, which a tokenizer makes of it; "
                                                ",type=uint8 takes each of its bytes as an id");
  EXPECT_EQ(ids("t.txt,type=uint8"), (std::vector<int64_t>{'w', 'a', 's', 'a', 's', ' '}));
  EXPECT_EQ(Dataset(from("tokens:" + folder / "t.txt,type=uint8"), program).samples(), 17); // 52 bytes
  folder.write("b.bin", "\x01\x7f\x80\xff\xfe\x02\x03");
  EXPECT_EQ(ids("b.bin,type=uint8"), (std::vector<int64_t>{255, 254, 2, 254, 2, 3}));
  folder.write("t.txt", "\xd0\x94\xd0\xb5\xd0\xbd\xd1\x8c \xd0\xb8 \xd0\xbd\xd0\xbe\xd1\x87\xd1\x8c, "
                        "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\n");
  expectError<DataError>([&] { ids("t.txt"); }, "t.txt is text");
  folder.write("t.gz", "\x1f\x8b\x08 and so on");
  expectError<DataError>([&] { ids("t.gz"); }, "is packed by gzip: unpack it");
}
