// SPDX-License-Identifier: Apache-2.0
// Formats of data: what each gives, and what of each is refused. Archives are in common_archives.cpp.
#include "test/unit/runtime/DataPrograms.h"

#include "runtime/Errors.h"

#include <zlib.h>

using namespace sluice;

TEST(ImageFolder, HasClassesInTheOrderOfTheirNames) {
  Folder folder;
  makeClasses(folder);
  const auto [x, y] = readAll(from("imagefolder:" + folder.path), programWith(images));
  EXPECT_EQ(y, (std::vector<int64_t>{0, 0, 1, 2}));
  EXPECT_EQ(x[2 * 48], x[2 * 48 + 16]); // grey
  EXPECT_NE(x[48], x[48 + 16]);
}

TEST(ImageFolder, SaysWhatItCannotUse) {
  Folder folder;
  const Program program = programWith(images);
  const auto open = [&] { readAll(from("imagefolder:" + folder.path), program); };
  expectError<DataError>(open, "has no subfolder with .jpg, .jpeg or .png");
  makeClasses(folder);
  std::filesystem::create_directory(folder / "d");
  expectError<DataError>(open, "/d: the class has no .jpg, .jpeg or .png");
  folder.write("d/1.png", picture("grey.png"));
  expectError<DataError>(open, "has 4 classes, the model tells 3 apart");
  std::filesystem::remove_all(folder / "d");
  folder.write("b/1.png", picture("grey.png").substr(0, 900));
  expectError<DataError>(open, "/b/1.png: a damaged PNG: ");
  std::filesystem::remove(folder / "b/1.png");
  std::filesystem::create_symlink("/dev/zero", folder / "b/1.png");
  expectError<DataError>(open, "/b/1.png is a link that leads nowhere or out of");
  std::filesystem::remove(folder / "b/1.png");
  folder.write("b/\n.png", picture("grey.png"));
  expectError<DataError>(open, "with a control character: rename it");
}

TEST(ImageFolder, CountsImagesThatItDoesNotRead) {
  Folder folder;
  makeClasses(folder);
  const Program program = programWith(images);
  EXPECT_TRUE(Dataset(from("imagefolder:" + folder.path), program).notes().empty());
  for (int i = 0; i < 12; ++i)
    folder.write("a/" + std::to_string(10 + i) + ".WEBP", "RIFF");
  folder.write("b/old.bmp", "BM");
  folder.write("b/notes.txt", "");
  const auto notes = Dataset(from("imagefolder:" + folder.path), program).notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], testing::StartsWith("13 images are neither JPEG nor PNG: '" + folder.path + "/a/10.WEBP'"));
  EXPECT_THAT(notes[0], testing::HasSubstr("they are left out"));
  std::filesystem::remove_all(folder / "c");
  std::filesystem::create_directory(folder / "c");
  folder.write("c/1.webp", "RIFF");
  expectError<DataError>([&] { Dataset(from("imagefolder:" + folder.path), program); },
                         "/c: the class has no .jpg, .jpeg or .png: 14 images are neither JPEG nor PNG");
}

/// The next sample takes the place of a bad one, with any number of workers.
TEST(ImageFolder, SkipsBadImages) {
  Folder folder;
  makeClasses(folder);
  folder.write("a/2.png", "nothing");
  const Program program = programWith(images);
  DataOptions options = from("imagefolder:" + folder.path);
  options.skipBad = true;
  for (options.workers = 1; options.workers < 4; ++options.workers) {
    Dataset data(options, program);
    std::vector<float> x(96);
    std::vector<int64_t> y(2);
    data.gather({0, 0}, {x.data(), y.data()});
    EXPECT_EQ(y, (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(data.skipped(), 1);
  }
  for (const char *name : {"a/10.JPG", "b/1.png", "c/1.jpeg"})
    folder.write(name, "nothing");
  Dataset data(options, program);
  std::vector<float> x(96);
  std::vector<int64_t> y(2);
  expectError<DataError>([&] { data.gather({0, 0}, {x.data(), y.data()}); }, "none of 4 samples can be used");
}

TEST(ImageFolder, NeedsNoClassesForNewData) {
  Folder folder;
  folder.write("1.png", picture("grey.png"));
  folder.write("2.png", picture("colours.png"));
  DataOptions options = from("imagefolder:" + folder.path);
  options.targets = false;
  EXPECT_EQ(readAll(options, programWith(images)).second, (std::vector<int64_t>{0, 0}));
}

static std::string cifarRecord(const std::string &labels, int shade) {
  std::string record = labels;
  for (int c = 0; c < 3; ++c)
    record += std::string(1024, static_cast<char>(shade + c));
  return record;
}

TEST(Cifar, ReadsBothKinds) {
  const Input list[] = {{"x", {}, host(0, {1, 3, 32, 32}), 0},
                        {"target", {}, host(0, {1}, Layout::RowMajor, DataType::I64), 100, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  for (int i = 1; i <= 5; ++i)
    folder.write("data_batch_" + std::to_string(i) + ".bin", cifarRecord(std::string(1, static_cast<char>(i)), 10 * i));
  auto [x, y] = readAll(from("cifar10:" + folder.path), program);
  EXPECT_EQ(y, (std::vector<int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(x[3072 * 2 + 1024], 31 / 255.0f);
  folder.write("train.bin", cifarRecord("\x03\x2a", 0) + cifarRecord("\x03\x2b", 0));
  EXPECT_EQ(readAll(from("cifar100:" + folder.path), program).second, (std::vector<int64_t>{42, 43}));
  folder.write("train.bin", cifarRecord("\x03\x2a", 0).substr(1));
  expectError<DataError>([&] { readAll(from("cifar100:" + folder.path), program); },
                         "train.bin has 3073 bytes, which are no whole number of records of 3074");
}

static std::string idxHeader(std::initializer_list<int> dims) {
  std::string bytes("\0\0\x08", 3);
  bytes += static_cast<char>(dims.size());
  for (int dim : dims)
    bytes += std::string(2, '\0') + static_cast<char>(dim >> 8) + static_cast<char>(dim & 255);
  return bytes;
}

static void writeGzip(const std::string &path, const std::string &bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

TEST(Idx, ReadsPlainAndPackedFiles) {
  Folder folder;
  const std::string pixels("\0\x33\x66\x99\xcc\xff\1\2\3\4\5\6", 12);
  folder.write("train-images-idx3-ubyte", idxHeader({2, 2, 3}) + pixels);
  folder.write("train-labels-idx1-ubyte", idxHeader({2}) + "\x07\x02");
  const Program program = programWith(greys);
  const auto plain = readAll(from("idx:" + folder / "train"), program);
  EXPECT_EQ(plain.second, (std::vector<int64_t>{7, 2}));
  EXPECT_EQ(plain.first[1], 0.2f);
  writeGzip(folder / "packed-images-idx3-ubyte.gz", idxHeader({2, 2, 3}) + pixels);
  writeGzip(folder / "packed-labels-idx1-ubyte.gz", idxHeader({2}) + "\x07\x02");
  EXPECT_EQ(readAll(from("idx:" + folder / "packed"), program), plain);

  const auto open = [&] { readAll(from("idx:" + folder / "train"), program); };
  folder.write("train-labels-idx1-ubyte", idxHeader({2}) + "\x07\x0a");
  expectError<DataError>(open, "train-labels-idx1-ubyte: sample 1 holds 10, 'target' must lie between 0 and 9");
  folder.write("train-labels-idx1-ubyte", idxHeader({3}) + "\x07\x02\x02");
  expectError<DataError>(open, "holds 3 labels");
  folder.write("train-images-idx3-ubyte", idxHeader({2, 2, 3}) + pixels.substr(1));
  expectError<DataError>(open, "the header promises 12 bytes, the file has 11 behind it");
  const std::string packed = folder.read("packed-images-idx3-ubyte.gz");
  folder.write("packed-images-idx3-ubyte.gz", packed.substr(0, packed.size() - 9));
  expectError<DataError>([&] { readAll(from("idx:" + folder / "packed"), program); }, "cannot be unpacked");
}

TEST(Tokens, TargetsAreOneTokenLater) {
  const Input list[] = {{"ids", {}, host(0, {1, 3}, Layout::RowMajor, DataType::I64), 100},
                        {"target", {}, host(0, {1, 3}, Layout::RowMajor, DataType::I64), 100, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  const auto ids = [&](const std::string &name) {
    Dataset data(from("tokens:" + folder / name), program);
    std::vector<int64_t> input(3), target(3);
    data.gather({0, 1}, {input.data(), target.data()});
    input.insert(input.end(), target.begin(), target.end());
    return input;
  };
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

TEST(Table, HasItsTargetByNameOrLast) {
  const Input list[] = {{"x", {}, host(0, {2, 2}), 0},
                        {"target", {}, host(0, {2}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  const auto read = [&](const std::string &csv) {
    folder.write("t.csv", csv);
    return readAll(from("csv:" + folder / "t.csv"), program);
  };
  const std::pair<std::vector<float>, std::vector<int64_t>> same = {{0.5f, -2, 3e4f, 4}, {1, 2}};
  EXPECT_EQ(read("\"a, b\",c,class\r\n 0.5 ,-2,1\r\n\r\n3e4,4,2\r\n"), same);
  EXPECT_EQ(read("target,a,b\n1,0.5,-2\n2,3e4,4"), same);
  const auto refused = [&](const std::string &csv, const std::string &why) {
    expectError<DataError>([&] { read(csv); }, why);
  };
  refused("", "an empty file");
  refused("a,b,c,d\n1,2,3,1\n", "has 3 numbers for 'x', which takes 2");
  refused("a,b,c\n1,2,1\n1,2\n", "row 2 has 2 fields, the first line has 3");
  refused("a,b,c\n1,2,1\n1,,2\n", "row 2: column 'b' holds '', input 'x' takes finite numbers");
  refused("a,b,c\n1,inf,1\n1,1,2\n", "row 1: column 'b' holds 'inf'");
  refused("a,b,c\n1,2,1\n1,1,3\n", "row 2 holds 3, 'target' must lie between 0 and 2");
  refused("a,b,c\n1,2,1\n1,1,x\n", "row 2: column 'c' holds 'x', input 'target' takes whole numbers");
}

/// Two inputs and a target of two numbers, by names; categories as ids and as a number for each; numbers standardized.
TEST(Table, HasColumnsByTheirNames) {
  const Input list[] = {{"x", {}, host(0, {2, 4}), 0},
                        {"city", {}, host(64, {2}, Layout::RowMajor, DataType::I64), 3},
                        {"target", {}, host(128, {2, 2}), 0, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  folder.write("t.csv", "y1,id,f1,town,f2,colour,y2\n1,7,10,Rome,5,red,2\n3,8,20,Bonn,5,blue,4\n");
  DataOptions options = from("csv:" + folder / "t.csv");
  options.columns = {{"x=f\\d|colour", "city=town", "target=y."}, {"town|colour"}, true, "", true};
  const auto read = [&](const DataOptions &by) {
    Dataset data(by, program);
    std::vector<float> x(8), y(4);
    std::vector<int64_t> city(2);
    data.gather({0, 0}, {x.data(), city.data(), y.data()});
    EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(city, (std::vector<int64_t>{1, 0})); // Bonn, Rome
    return std::pair(x, data.knownColumns());
  };
  const auto [x, known] = read(options);
  EXPECT_EQ(x, (std::vector<float>{-1, 0, 0, 1, 1, 0, 1, 0})); // f2 never changes; blue, red
  // Other data are taken as those that were trained on, whatever their own mean is.
  folder.write("u.csv", "f2,f1,town,colour\n6,15,Rome,red\n5,25,Rome,red\n");
  DataOptions later = from("csv:" + folder / "u.csv");
  later.targets = false;
  later.columns.known = known;
  later.columns.trains = false;
  Dataset data(later, program);
  std::vector<float> again(8), y(4);
  std::vector<int64_t> city(2);
  data.gather({0, 0}, {again.data(), city.data(), y.data()});
  EXPECT_EQ(again, (std::vector<float>{0, 1, 0, 1, 2, 0, 0, 1})); // in the order of training
  folder.write("u.csv", "f2,f1,town,colour\n6,15,Rome,green\n5,25,Rome,red\n");
  expectError<DataError>([&] { Dataset(later, program).gather({0, 0}, {again.data(), city.data(), y.data()}); },
                         "column 'colour' holds 'green', which is no category that the weights were trained with");
  expectError<DataError>([&] { checkKnownColumns("{}", "it"); }, "it is damaged");
  later.columns.columns = {"x=f.*"};
  expectError<UsageError>([&] { Dataset(later, program); }, "are those that the weights were trained with");
  DataOptions unknown = options;
  unknown.columns.trains = false;
  expectError<UsageError>([&] { Dataset(unknown, program); }, "are found when training");
  options.columns.columns = {"x=f.", "city=town", "target=z.*"};
  expectError<DataError>([&] { Dataset(options, program); },
                         "--columns 'target=z.*' matches no column, but 'y1', 'id'");
  options.columns.columns = {"x=f.", "city=town", "target=y."};
  expectError<DataError>([&] { Dataset(options, program); }, "has 2 numbers for 'x', which takes 4");
  options.columns.columns = {"z=f."};
  expectError<UsageError>([&] { Dataset(options, program); },
                          "with the name of an input (x, city, target), got 'z=f.'");
  options.columns.columns = {};
  expectError<DataError>([&] { Dataset(options, program); }, "say which columns are whose");
  options.where = folder.path;
  expectError<UsageError>([&] { Dataset(options, program); }, "are of csv:FILE");
}

/// No sample becomes the names of the columns, and no name a sample.
TEST(Table, AsksWhatItsFirstLineIs) {
  const Input list[] = {{"x", {}, host(0, {1, 2}), 0},
                        {"target", {}, host(0, {1}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  const auto read = [&](const std::string &csv, const char *header = "") {
    folder.write("t.csv", csv);
    return readAll(from("csv:" + folder / "t.csv" + header), program);
  };
  using Read = std::pair<std::vector<float>, std::vector<int64_t>>;
  const Read both = {{0.5f, -2, 3e4f, 4}, {1, 2}}, last = {{3e4f, 4}, {2}};
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "0.5,-2,1\n3e4,4,2\n"),
            both);
  EXPECT_THAT(
      Dataset(from("csv:" + folder / "t.csv"), program).notes(),
      testing::ElementsAre(testing::HasSubstr("names no columns: its first line is a sample, the last column")));
  EXPECT_EQ(read("0.5,-2,1\n3e4,4,2\n", ",header=no"), both);
  EXPECT_EQ(read("0.5,-2,1\n3e4,4,2\n", ",header=yes"), last);
  EXPECT_EQ(read("0,1,2\n3e4,4,2\n", ",header=yes"), last);
  for (const char *first : {"0,1,2", "a,2019,c", "1,,2"})
    expectError<DataError>([&] { read(first + std::string("\n3e4,4,2\n")); },
                           std::string("the first line, '") + first + "', may name the columns or be a sample");
  expectError<UsageError>([&] { read("1,2,1\n", ",header=maybe"); }, "header=yes or header=no, got 'maybe'");
}

/// A million bad rows are counted and ten of them told, and none is tried for every one before it.
TEST(Table, CountsBadRows) {
  const Input list[] = {{"x", {}, host(0, {1, 2}), 0},
                        {"target", {}, host(0, {1}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true}};
  const Program program = programWith(list);
  Folder folder;
  std::string rows = "a,b,c\n";
  for (int i = 0; i < 20000; ++i)
    rows += "1,2\n";
  folder.write("t.csv", rows + "1,2,1\n");
  DataOptions options = from("csv:" + folder / "t.csv");
  options.skipBad = true;
  testing::internal::CaptureStderr();
  Dataset data(options, program);
  std::vector<float> x(2);
  std::vector<int64_t> y(1);
  for (int64_t i = 0; i < data.batches(); ++i) {
    data.gather({0, i}, {x.data(), y.data()});
    ASSERT_EQ(y[0], 1);
  }
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(data.skipped(), 20000);
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 10);
  EXPECT_THAT(told, testing::HasSubstr("row 10 has 2 fields, the first line has 3 (more are counted, not told)"));
}

TEST(Formats, UnknownKindsAreNamed) {
  const Program program = programWith(images);
  expectError<UsageError>([&] { Dataset(from("tfrecord:a"), program); },
                          "there are no data of the kind 'tfrecord', but cifar10, cifar100, csv");
  expectError<UsageError>([&] { Dataset(from("csv:"), program); }, "csv: names no path");
  DataOptions options = from("synthetic");
  options.images.mean = {0.5};
  expectError<UsageError>([&] { Dataset(options, program); }, "--mean is for images of bytes, synthetic has none");
}
