// SPDX-License-Identifier: Apache-2.0
// Formats of data: what each gives, and what of each is refused. Archives, tables and tokens have files of their
// own.
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
  EXPECT_THAT(notes[0], testing::HasSubstr("/a/17.WEBP' and 5 more; convert them"));
  EXPECT_THAT(notes[0], testing::HasSubstr("they are left out"));
  std::filesystem::remove_all(folder / "c");
  std::filesystem::create_directory(folder / "c");
  folder.write("c/1.webp", "RIFF");
  expectError<DataError>([&] { Dataset(from("imagefolder:" + folder.path), program); },
                         "/c: the class has no .jpg, .jpeg or .png: 14 images are neither JPEG nor PNG");
  // Where a batch is not filled they are why.
  for (const char *name : {"a/2.png", "b", "c"})
    std::filesystem::remove_all(folder / name);
  expectError<DataError>([&] { Dataset(from("imagefolder:" + folder.path), program); },
                         " holds 1 samples, one batch takes 2; 12 images are neither JPEG nor PNG: ");
}

/// As many folders as the model has classes, so that nothing else tells.
TEST(ImageFolder, WarnsOfAFolderAboveThatOfTheClasses) {
  Folder folder;
  for (const char *name : {"new/all", "train/cat", "train/dog", "validation/cat"}) {
    std::filesystem::create_directories(folder / name);
    folder.write(name + std::string("/1.png"), picture("grey.png"));
  }
  const Program program = programWith(images);
  DataOptions options = from("imagefolder:" + folder.path);
  EXPECT_THAT(Dataset(options, program).warnings(),
              testing::ElementsAre(testing::AllOf(
                  testing::HasSubstr("no image lies in its folders 'new', 'train', 'validation' themselves"),
                  testing::EndsWith("as imagefolder:" + folder.path + "/train"))));
  options.classes = {"new", "train", "validation"}; // somebody says so
  EXPECT_TRUE(Dataset(options, program).warnings().empty());
  options.classes.clear();
  options.targets = false;
  EXPECT_TRUE(Dataset(options, program).warnings().empty());
  options.targets = true;
  folder.write("new/1.png", picture("grey.png"));
  EXPECT_TRUE(Dataset(options, program).warnings().empty());
}

/// As torchvision's ImageFolder: folders sorted by their whole paths, the images of each by name.
TEST(ImageFolder, ReadsFoldersInFolders) {
  Folder folder;
  makeClasses(folder);
  for (const char *name : {"a/deep", "a/deep/er", "a/deep-1", "a/.hidden"}) {
    std::filesystem::create_directories(folder / name);
    folder.write(name + std::string("/1.png"), picture("grey.png"));
  }
  const Program program = programWith(images);
  const auto names = [&] {
    std::vector<std::string> list;
    for (const std::string &path : Dataset(from("imagefolder:" + folder.path), program).paths())
      list.push_back(path.substr(folder.path.size() + 1));
    return list;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"a/10.JPG", "a/2.png", "a/deep/1.png", "a/deep-1/1.png",
                                               "a/deep/er/1.png", "b/1.png", "c/1.jpeg"}));
  // A folder elsewhere in the data may be linked to, but not one that leads in circles or out.
  std::filesystem::create_symlink("../b", folder / "c/more");
  EXPECT_EQ(names().back(), "c/more/1.png");
  std::filesystem::create_symlink("..", folder / "c/more/back");
  expectError<DataError>(names, "are read already: remove the link");
  std::filesystem::remove(folder / "b/back");
  std::filesystem::remove(folder / "c/more");
  std::filesystem::create_symlink("/tmp", folder / "c/more");
  expectError<DataError>(names, "/c/more is a link that leads nowhere or out of");
  std::filesystem::remove(folder / "c/more");
  std::string path = folder / "c";
  for (int i = 0; i < 65; ++i)
    path += "/d";
  std::filesystem::create_directories(path);
  expectError<DataError>(names, "folders lie in one another 64 levels deep");
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

/// Else they would end the name of a file that is not there. Names may have commas and equal signs all the same.
TEST(Formats, UnknownOptionsAreNamed) {
  const Program program = programWith(images);
  Folder folder;
  std::filesystem::create_directory(folder / "i");
  folder.write("t,strid=3", "12");
  const std::pair<const char *, const char *> misspelt[] = {
      {"tokens:t,strid=4", "there is no option 'strid' of tokens, but stride, type"},
      {"tokens:t,strid=4,type=uint8", "there is no option 'strid' of tokens"},
      {"segmentation:i,masks=m,sufix=_x", "there is no option 'sufix' of segmentation, but masks, suffix, values"},
      {"csv:t.csv,heading=no", "there is no option 'heading' of csv, but header"},
      {"imagefolder:i,size=3", "there is no option 'size' of imagefolder, which has none"}};
  for (const auto &[words, why] : misspelt)
    expectError<UsageError>([&, words = std::string(words)] { Dataset(from(words), program); }, why);
  expectError<DataError>([&] { Dataset(from("tokens:" + folder / "t,strid=3"), program); }, "tokens are");
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
