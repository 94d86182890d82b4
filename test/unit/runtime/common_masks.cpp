// SPDX-License-Identifier: Apache-2.0
// Folders of images and masks: which belong together, what is refused, and that both are changed alike.
#include "runtime/Errors.h"
#include "runtime/data/MaskFolder.h"

#include "test/unit/runtime/DataPrograms.h"
#include "test/unit/runtime/PngFile.h"

#include <numeric>
#include <set>

using namespace sluice;

namespace {

constexpr int64_t ignored = 255;
const Input classes[] = {{"x", {}, host(0, {2, 1, 8, 8}), 0},
                         {"target", {}, host(0, {2, 8, 8}, Layout::RowMajor, DataType::I64), 64, ignored, false, true}};
const Input marks[] = {{"x", {}, host(0, {2, 1, 8, 8}), 0},
                       {"target", {}, host(0, {2, 1, 8, 8}), 0, Loss::none, false, true}};
// A model whose answer is a quarter of the image's height and width.
const Input coarse[] = {{"x", {}, host(0, {2, 1, 8, 8}), 0},
                        {"target", {}, host(0, {2, 2, 2}, Layout::RowMajor, DataType::I64), 64, ignored, false, true}};

struct Pictures : Folder {
  Pictures() {
    std::filesystem::create_directory(*this / "images");
    std::filesystem::create_directory(*this / "masks");
  }
  std::string where() const { return "segmentation:" + *this / "images" + ",masks=" + *this / "masks"; }
  /// Each pixel of an image and of its mask has the number of its place, from `first` on.
  void add(const std::string &name, uint32_t width, uint32_t height, uint16_t first = 0) const {
    std::vector<uint16_t> places(width * height);
    std::iota(places.begin(), places.end(), first);
    write("images/" + name + ".png", pngFile(width, height, 8, 0, places));
    write("masks/" + name + ".png", pngFile(width, height, 8, 3, places));
  }
};

DataOptions augmented(const Pictures &folder, const std::string &words) {
  return augmented(from(folder.where()), words);
}

} // namespace

/// Image and mask hold the same numbers, so wherever a pixel goes, they must still agree.
TEST(Masks, MoveAsTheirImages) {
  Pictures folder;
  folder.add("a", 8, 8);
  folder.add("b", 8, 8);
  const Program program = programWith(classes);
  std::set<std::vector<int64_t>> seen;
  for (const char *words : {"", "flip", "random-crop,padding=2", "flip;random-crop,padding=1", "center-crop"})
    for (int64_t epoch = 0; epoch < 8; ++epoch) {
      const auto [x, y] = firstBatch<int64_t>(augmented(folder, words), program, epoch);
      seen.insert(y);
      for (size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(x[i], y[i] == ignored ? 0.0f : static_cast<float>(y[i]) / 255.0f) << words << " " << epoch;
    }
  EXPECT_GT(seen.size(), 12u);
}

/// A mask of the left half stays that of the dark half, whatever turns and stretches both, and never gets a number
/// between two classes.
TEST(Masks, FollowWhatIsSmoothInImages) {
  Pictures folder;
  for (const char *name : {"a", "b"}) {
    std::vector<uint16_t> image(60 * 40), mask(60 * 40);
    for (size_t i = 0; i < image.size(); ++i)
      image[i] = i % 60 < 30 ? 40 : 240, mask[i] = i % 60 < 30 ? 5 : 60;
    folder.write(std::string("images/") + name + ".png", pngFile(60, 40, 8, 0, image));
    folder.write(std::string("masks/") + name + ".png", pngFile(60, 40, 8, 0, mask));
  }
  Input list[] = {{"x", {}, host(0, {2, 1, 32, 32}), 0},
                  {"target", {}, host(0, {2, 32, 32}, Layout::RowMajor, DataType::I64), 64, ignored}};
  const Program program = programWith(list);
  for (const char *words : {"random-resized-crop,least=0.5", "rotate,degrees=60", "resize,size=36;random-crop;flip"})
    for (int64_t epoch = 0; epoch < 6; ++epoch) {
      const auto [x, y] = firstBatch<int64_t>(augmented(folder, words), program, epoch);
      int differ = 0;
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_TRUE(y[i] == 5 || y[i] == 60 || y[i] == ignored) << y[i];
        const float shade = x[i] * 255;
        differ += y[i] == ignored ? shade > 200 : (shade > 140) != (y[i] == 60);
      }
      EXPECT_LT(differ, 2 * 3 * 32) << words << " " << epoch; // along the edge, where pixels are blends
    }
}

TEST(Masks, ColoursAndMeansAreOfImages) {
  Pictures folder;
  folder.add("a", 8, 8);
  folder.add("b", 8, 8);
  const Program program = programWith(classes);
  const auto plain = firstBatch<int64_t>(from(folder.where()), program);
  DataOptions options = augmented(folder, "colour,brightness=0.9");
  options.images.mean = {0.5}, options.images.std = {0.25};
  const auto coloured = firstBatch<int64_t>(options, program);
  EXPECT_EQ(coloured.second, plain.second);
  EXPECT_NE(coloured.first, plain.first);
}

/// The nearest pixel of the image as it was changed, in the size that the model answers in.
TEST(Masks, HaveTheSizeOfTheTarget) {
  Pictures folder;
  folder.add("a", 8, 8);
  folder.add("b", 8, 8);
  EXPECT_EQ(firstBatch<int64_t>(from(folder.where()), programWith(coarse)).second,
            (std::vector<int64_t>{18, 22, 50, 54, 18, 22, 50, 54}));
  EXPECT_EQ(firstBatch<int64_t>(augmented(folder, "flip,p=1"), programWith(coarse)).second,
            (std::vector<int64_t>{21, 17, 53, 49, 21, 17, 53, 49}));
}

TEST(Masks, AreNumbersOfEveryDepth) {
  Pictures folder;
  folder.add("a", 8, 8);
  folder.add("b", 8, 8);
  const Program program = programWith(classes);
  const auto read = [&] { return firstBatch<int64_t>(from(folder.where()), program).second; };
  for (const auto &[bits, kind] : {std::pair{1, 0}, {1, 3}, {2, 0}, {4, 0}, {4, 3}, {8, 0}, {8, 3}, {16, 0}}) {
    std::vector<uint16_t> values(64);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<uint16_t>(i % (size_t{1} << std::min(bits, 6)));
    folder.write("masks/a.png", pngFile(8, 8, bits, kind, values));
    const std::vector<int64_t> both = read();
    EXPECT_EQ(std::vector<uint16_t>(both.begin(), both.begin() + 64), values) << bits << " bits, kind " << kind;
  }
  folder.write("masks/a.png", pngFile(8, 8, 16, 0, std::vector<uint16_t>(64, 300)));
  expectError<DataError>(read, "masks/a.png holds 300 at column 0, row 0, 'target' must lie between 0 and 63");
  for (const auto &[kind, channels] : {std::pair{2, 3}, {4, 2}}) {
    folder.write("masks/a.png", pngFile(8, 8, 8, kind, std::vector<uint16_t>(64 * channels)));
    expectError<DataError>(read,
                           "masks/a.png: a mask has one number for each pixel, this PNG has colours or transparency");
  }
  folder.write("masks/a.png", picture("grey.jpg"));
  expectError<DataError>(read, "bytes that do not begin as a PNG, which masks are");
  expectSurvives<DataError>(pngFile(8, 8, 4, 3, std::vector<uint16_t>(64, 9)),
                            [](const std::string &path) { decodeMask(readImageFile(path), path); });
}

TEST(Masks, ValuesOutOfRangeNameTheirPixel) {
  Pictures folder;
  folder.add("a", 8, 8);
  folder.add("b", 8, 8);
  std::vector<uint16_t> values(64);
  values[8 * 3 + 5] = 64;
  folder.write("masks/b.png", pngFile(8, 8, 8, 0, values));
  const auto open = [&] { Dataset(from(folder.where()), programWith(classes)); };
  expectError<DataError>(open, "masks/b.png holds 64 at column 5, row 3, 'target' must lie between 0 and 63");
  values[8 * 3 + 5] = ignored;
  folder.write("masks/b.png", pngFile(8, 8, 8, 0, values));
  open();
  Input strict[] = {classes[0], classes[1]};
  strict[1].ignoreIndex = Loss::none;
  expectError<DataError>([&] { Dataset(from(folder.where()), programWith(strict)); },
                         "must lie between 0 and 63, or be 255 in a program compiled with --ignore-index=255");
}

/// Masks of black and white, and of classes that begin with 1.
TEST(Masks, TakeTheNumbersThatAreSaid) {
  Pictures folder;
  folder.add("a", 8, 8);
  folder.add("b", 8, 8);
  std::vector<uint16_t> values(64, 0);
  values[1] = 255;
  for (const char *name : {"masks/a.png", "masks/b.png"})
    folder.write(name, pngFile(8, 8, 8, 0, values));
  const Program floats = programWith(marks), program = programWith(classes);
  const auto with = [&](const std::string &said) { return from(folder.where() + ",values=" + said); };
  expectError<DataError>([&] { firstBatch<float>(from(folder.where()), floats); },
                         "masks/a.png holds 255 at column 1, row 0, 'target' takes 0 and 1: ,values=0:255");
  const std::vector<float> y = firstBatch<float>(with("0:255"), floats).second;
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(firstBatch<int64_t>(with("255:0"), program).second[1], 0);
  EXPECT_EQ(firstBatch<int64_t>(with("1-20:0"), program).second[0], 20);
  EXPECT_EQ(firstBatch<int64_t>(with("1-20:0"), program).second[1], ignored); // no class, but what is ignored
  expectError<DataError>([&] { Dataset(with("1:255"), program); },
                         "holds 0 at column 0, row 0, which is none of values=1:255");
  for (const char *bad : {"", "0:", "a", "3-1", "0:70000", "-1", "0:0"})
    expectError<UsageError>([&] { Dataset(with(bad), program); }, "values");
  expectError<UsageError>([&] { Dataset(with("0-64"), program); }, "these are 65 classes, the model tells 64 apart");
}

TEST(Masks, NeedTheirImages) {
  Pictures folder;
  const Program program = programWith(classes);
  const auto open = [&] { Dataset(from(folder.where()), program); };
  expectError<DataError>(open, "images has no .jpg, .jpeg or .png");
  std::filesystem::create_directory(folder / "images/streets");
  expectError<DataError>(open, "images has no .jpg, .jpeg or .png; 1 folder in ");
  folder.add("a", 8, 8);
  folder.add("b", 8, 8);
  folder.add("c", 8, 8);
  folder.add("d", 8, 8);
  open();
  std::filesystem::remove(folder / "masks/c.png");
  std::filesystem::rename(folder / "images/d.png", folder / "images/e.png");
  expectError<DataError>(open, "2 of 4 images in " + folder / "images" + " have no mask in " + folder / "masks" +
                                   " ('" + folder / "images/c.png" + "', '" + folder / "images/e.png" +
                                   "'), 1 of 3 masks no image ('" + folder / "masks/d.png" +
                                   "'); --on-bad-data=skip leaves both out");
  DataOptions options = from(folder.where());
  options.skipBad = true;
  Dataset data(options, program);
  EXPECT_EQ(data.samples(), 2);
  EXPECT_THAT(data.notes()[0], testing::HasSubstr("2 images have a mask, 3 files without a partner are left out"));
  folder.write("images/a.jpg", picture("grey.jpg"));
  expectError<DataError>(open,
                         "images/a.jpg and " + folder / "images/a.png have one name: which of them belongs to 'a'?");
}

TEST(Masks, MayHaveASuffixAndTheFolderOfTheImages) {
  Pictures folder;
  folder.add("a", 8, 8);
  folder.add("b", 4, 4, 7);
  for (const char *name : {"a", "b"})
    std::filesystem::rename(folder / ("masks/" + std::string(name) + ".png"),
                            folder / ("images/" + std::string(name) + "_mask.png"));
  folder.write("masks/a_mask.png", picture("grey.png"));
  const Program program = programWith(classes);
  expectError<DataError>([&] { Dataset(from(folder.where()), program); },
                         "is " + folder / "masks/a_mask.png" + " the mask of " + folder / "images/a.png" +
                             "? Then add ,suffix=_mask");
  const std::string both = folder / "images";
  const auto [x, y] = firstBatch<int64_t>(from("segmentation:" + both + ",suffix=_mask,masks=" + both), program);
  EXPECT_EQ(y[63], 63);
  EXPECT_EQ(y[64], 7);
  EXPECT_EQ(x[64], 7 / 255.0f);
}

TEST(Masks, HaveTheSizeOfTheirImages) {
  Pictures folder;
  folder.add("a", 8, 8);
  folder.add("b", 8, 8);
  folder.write("masks/b.png", pngFile(4, 16, 8, 0, std::vector<uint16_t>(64)));
  expectError<DataError>([&] { firstBatch<int64_t>(from(folder.where()), programWith(classes)); },
                         "masks/b.png is 4 x 16, " + folder / "images/b.png" +
                             " 8 x 8: what lies over an image has its size");
}

/// New images have no masks, and nobody asks for them.
TEST(Masks, AreNotNeededForPredictions) {
  Pictures folder;
  folder.add("a", 8, 8);
  folder.add("b", 8, 8);
  DataOptions options = from("segmentation:" + folder / "images");
  expectError<UsageError>([&] { Dataset(options, programWith(classes)); }, "needs the folder of masks");
  options.targets = false;
  Dataset data(options, programWith(classes));
  EXPECT_EQ(data.sampleName(1), folder / "images/b.png");
  EXPECT_EQ(firstBatch<int64_t>(options, programWith(classes)).second, std::vector<int64_t>(128));
}

TEST(Masks, FitTheProgramOrSayWhy) {
  Pictures folder;
  folder.add("a", 8, 8);
  folder.add("b", 8, 8);
  const auto refused = [&](const Program &program, const std::string &part) {
    expectError<DataError>([&] { Dataset(from(folder.where()), program); }, part);
  };
  refused(programWith(images), "segmentation has one number for each pixel, 'target' takes (2,)");
  const Input deep[] = {marks[0], {"target", {}, host(0, {2, 3, 8, 8}), 0}};
  refused(programWith(deep), "'target' takes (2, 3, 8, 8), which is no (N, height, width)");
  const Input two[] = {{"x", {}, host(0, {2, 2, 8, 8}), 0}, classes[1]};
  refused(programWith(two), "segmentation has images of 1 or 3 channels, input 'x' takes (2, 2, 8, 8)");
  const Input one[] = {classes[0]};
  refused(programWith(one), "segmentation has an image and a mask, this program takes 'x': use .npy files");
  const Input three[] = {{"x", {}, host(0, {2, 1, 8, 8}), 0}, {"y", {}, host(0, {2, 1, 8, 8}), 0}, classes[1]};
  refused(programWith(three), "this program takes 'x', 'y' and, to compare with, 'target': use .npy files");
}
