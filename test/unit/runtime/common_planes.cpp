// SPDX-License-Identifier: Apache-2.0
// Which bytes are images, and that what lies over an image moves with it.
#include "runtime/Errors.h"

#include "test/unit/runtime/DataPrograms.h"

#include <cmath>
#include <numeric>
#include <set>

using namespace sluice;

namespace {

// Images of bytes beside a class, a mark or a depth for each of their pixels.
const Input classes[] = {{"x", {}, host(0, {1, 3, 4, 6}), 0},
                         {"target", {}, host(0, {1, 4, 6}, Layout::RowMajor, DataType::I64), 256, -100, false, true}};
const Input marks[] = {{"x", {}, host(0, {1, 3, 4, 6}), 0},
                       {"target", {}, host(0, {1, 1, 4, 6}), 0, Loss::none, false, true}};

/// An image whose every pixel has the number of its place in all channels, as has its target.
template <typename Value>
void writePlaces(const Folder &folder, const char *type, const std::string &shape, int pixels = 24) {
  std::vector<uint8_t> image;
  std::vector<Value> target;
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < pixels; ++i)
      image.push_back(static_cast<uint8_t>(i + 2));
  for (int i = 0; i < pixels; ++i)
    target.push_back(static_cast<Value>(i + 2));
  folder.write("input.npy", npyArray("|u1", pixels == 24 ? "(1, 3, 4, 6)" : "(1, 3, 8, 12)", image));
  folder.write("target.npy", npyArray(type, shape, target));
}

DataOptions augmented(const Folder &folder, const std::string &words) { return augmented(from(folder.path), words); }

} // namespace

/// Pixels and classes hold the same numbers, so wherever an image goes, they must still agree.
TEST(Planes, ClassesMoveAsTheirPixels) {
  Folder folder;
  const Program program = programWith(classes);
  writePlaces<int64_t>(folder, "<i8", "(1, 4, 6)");
  std::set<std::vector<int64_t>> seen;
  for (const char *words : {"flip", "random-crop,padding=2", "flip;random-crop,padding=1", "center-crop",
                            "colour,brightness=0.9;flip", "flip;colour,saturation=0.5,contrast=0"})
    for (int64_t epoch = 0; epoch < 12; ++epoch) {
      const bool colours = std::string(words).find("brightness") != std::string::npos;
      const auto [x, y] = firstBatch<int64_t>(augmented(folder, words), program, epoch);
      seen.insert(y);
      for (size_t i = 0; i < y.size() && !colours; ++i)
        EXPECT_EQ(y[i] == -100 ? 0.0f : static_cast<float>(y[i]) / 255.0f, x[i]) << words << " " << epoch << " " << i;
    }
  EXPECT_GT(seen.size(), 15u);
}

TEST(Planes, ColoursLeaveThemAlone) {
  Folder folder;
  const Program program = programWith(marks);
  writePlaces<float>(folder, "<f4", "(1, 1, 4, 6)");
  const auto plain = firstBatch<float>(from(folder.path), program),
             coloured = firstBatch<float>(augmented(folder, "colour,brightness=0.9"), program);
  EXPECT_EQ(coloured.second, plain.second);
  EXPECT_NE(coloured.first, plain.first);
}

/// Of images of another size each value is that of the nearest pixel: none that was not there.
TEST(Planes, AreResizedToTheNearest) {
  Folder folder;
  const Program program = programWith(classes);
  writePlaces<uint8_t>(folder, "|u1", "(1, 8, 12)", 96);
  const auto [x, y] = firstBatch<int64_t>(from(folder.path), program);
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 6; ++column)
      EXPECT_EQ(y[static_cast<size_t>(row * 6 + column)], (2 * row + 1) * 12 + 2 * column + 1 + 2);
  for (int64_t epoch = 0; epoch < 4; ++epoch)
    for (const int64_t value :
         firstBatch<int64_t>(augmented(folder, "random-resized-crop;rotate"), program, epoch).second)
      EXPECT_TRUE(value == -100 || (value >= 2 && value < 98)) << value;
}

TEST(Planes, TurnWithTheImage) {
  Folder folder;
  const Input square[] = {{"x", {}, host(0, {1, 1, 33, 33}), 0},
                          {"target", {}, host(0, {1, 33, 33}), 0, Loss::none, false, true}};
  std::vector<uint8_t> image(33 * 33);
  std::vector<float> target(33 * 33);
  for (int i = 0; i < 33 * 33; ++i) // the right half
    image[static_cast<size_t>(i)] = i % 33 > 16 ? 255 : 0, target[static_cast<size_t>(i)] = i % 33 > 16 ? 1 : 0;
  folder.write("input.npy", npyArray("|u1", "(1, 33, 33)", image));
  folder.write("target.npy", npyArray("<f4", "(1, 33, 33)", target));
  const Program program = programWith(square);
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    const auto [x, y] = firstBatch<float>(augmented(folder, "rotate,degrees=90"), program, epoch);
    int differ = 0;
    for (size_t i = 0; i < y.size(); ++i)
      differ += std::abs(x[i] - y[i]) > 0.6f;
    EXPECT_LT(differ, 5) << epoch;
  }
}

/// Each pixel of an image gets the value of the place in the plane over it, and `fill` where the plane is not.
TEST(Planes, GoBackToWhereTheirImageWas) {
  using Kind = ImageChange::Kind;
  const ImageSize image{60, 40};
  const Box whole{0, 0, 60, 40}, middle{20, 10, 20, 20}, beyond{-10, 0, 80, 40};
  struct Case {
    ImageChanges changes;
    ImageSize plane;
    Box seen; ///< part of the image under the plane
  };
  const Case cases[] = {{{}, image, whole},
                        {{}, {30, 20}, whole},                              // a coarser answer
                        {{{Kind::Resize, whole, 24, 24}}, {24, 24}, whole}, // the model's size
                        {{{Kind::Resize, whole, 24, 24}}, {6, 6}, whole},   // both
                        {{{Kind::Crop, middle}}, {20, 20}, middle},         //
                        {{{Kind::Crop, middle}, {Kind::Resize, {0, 0, 20, 20}, 32, 32}}, {16, 16}, middle},
                        {{{Kind::Resize, middle, 32, 32}}, {32, 32}, middle}, //
                        {{{Kind::Resize, whole, 120, 80}, {Kind::Crop, {40, 20, 40, 40}}}, {40, 40}, middle},
                        {{{Kind::Crop, beyond}}, {80, 40}, beyond}, // with black around it
                        {{{Kind::Flip}, {Kind::Flip}}, image, whole}};
  for (const Case &each : cases) {
    std::vector<uint16_t> places(static_cast<size_t>(each.plane.width) * static_cast<size_t>(each.plane.height));
    std::iota(places.begin(), places.end(), uint16_t{1});
    const PlaneMove move(undone(each.changes, image, each.plane), each.plane);
    ASSERT_FALSE(move.size() != image);
    std::vector<uint16_t> back(60 * 40), wanted;
    const uint16_t fill = 0;
    move.apply(reinterpret_cast<const char *>(places.data()), 1, 2, &fill, reinterpret_cast<char *>(back.data()));
    for (int y = 0; y < 40; ++y)
      for (int x = 0; x < 60; ++x) {
        const double left = (x + 0.5 - each.seen.left) / each.seen.width * each.plane.width,
                     top = (y + 0.5 - each.seen.top) / each.seen.height * each.plane.height;
        const bool inside = left >= 0 && top >= 0 && left < each.plane.width && top < each.plane.height;
        wanted.push_back(inside ? static_cast<uint16_t>(1 + std::floor(top) * each.plane.width + std::floor(left)) : 0);
      }
    EXPECT_EQ(back, wanted) << each.changes.size() << " changes, " << each.plane.width << " x " << each.plane.height;
  }
}

/// The 0 and 1 of a mask are no colours, whatever --mean and --std say of the image.
TEST(Planes, BytesOfATargetAreNumbers) {
  Folder folder;
  const Program program = programWith(marks);
  std::vector<uint8_t> mask(24);
  mask[3] = mask[20] = 1;
  const std::vector<float> wanted(mask.begin(), mask.end());
  for (const char *type : {"|u1", "|b1"}) {
    writePlaces<float>(folder, "<f4", "(1, 1, 4, 6)");
    folder.write("target.npy", npyArray(type, "(1, 1, 4, 6)", mask));
    DataOptions options = from(folder.path);
    options.images.mean = {0.5}, options.images.std = {0.25};
    EXPECT_EQ(firstBatch<float>(options, program).second, wanted) << type;
    options = augmented(folder, "flip,p=1");
    EXPECT_EQ(firstBatch<float>(options, program).second[2], 1) << type;
  }
  // Who says that they are an image has them as one.
  DataOptions options = from(folder.path);
  folder.write("target.npy", npyArray("|u1", "(1, 1, 4, 6)", mask));
  options.inputs = {{"target", InputKind::Image}};
  EXPECT_EQ(firstBatch<float>(options, program).second[3], 1 / 255.0f);
}

/// Of a mask over tokens, or tags: without rows and columns there is no image.
TEST(Planes, BytesWithoutRowsAndColumnsAreNumbers) {
  Folder folder;
  const Input tags[] = {{"x", {}, host(0, {2, 5}), 0}, {"target", {}, host(0, {2, 3}), 0, Loss::none, false, true}};
  const Program program = programWith(tags);
  const std::vector<uint8_t> mask = {1, 1, 1, 0, 0, 1, 1, 0, 0, 0}, yes = {1, 0, 1, 0, 0, 1};
  const std::pair<std::vector<float>, std::vector<float>> wanted = {{mask.begin(), mask.end()},
                                                                    {yes.begin(), yes.end()}};
  for (const char *type : {"|b1", "|u1"}) {
    folder.write("input.npy", npyArray(type, "(2, 5)", mask));
    folder.write("target.npy", npyArray(type, "(2, 3)", yes));
    EXPECT_EQ(firstBatch<float>(from(folder.path), program), wanted) << type;
    DataOptions options = from(folder.path); // what weights say of their images
    options.images.mean = {0.5}, options.images.std = {0.25}, options.images.carried = true;
    EXPECT_EQ(firstBatch<float>(options, program), wanted) << type;
  }
  folder.write("input.npy", npyArray("|b1", "(2, 5)", mask));
  DataOptions options = from(folder.path);
  options.inputs = {{"x", InputKind::Image}};
  expectError<DataError>([&] { Dataset(options, program); }, "input.npy is bool (2, 5), input 'x'");
}

TEST(Planes, MasksAreAsked) {
  Folder folder;
  const Input two[] = {{"x", {}, host(0, {1, 3, 4, 6}), 0}, {"mask", {}, host(0, {1, 4, 6}), 0}};
  const Program program = programWith(two);
  writePlaces<float>(folder, "<f4", "(1, 1, 4, 6)");
  std::filesystem::rename(folder / "input.npy", folder / "x.npy");
  std::vector<uint8_t> mask(24, 1);
  folder.write("mask.npy", npyArray("|u1", "(1, 4, 6)", mask));
  expectError<DataError>([&] { Dataset(from(folder.path), program); },
                         "mask.npy: no byte is above 1: is it a mask? --input mask=raw takes 0 and 1 as they are");
  DataOptions options = from(folder.path);
  options.inputs = {{"mask", InputKind::Raw}};
  EXPECT_EQ(firstBatch<float>(options, program).second, std::vector<float>(24, 1));
  folder.write("mask.npy", npyArray("|b1", "(1, 4, 6)", mask)); // booleans are no images
  EXPECT_EQ(firstBatch<float>(from(folder.path), program).second, std::vector<float>(24, 1));
}

/// More channels than an image has: numbers. Four: an image whose fourth is like the others.
TEST(Planes, ImagesHaveTheirChannels) {
  Folder folder;
  std::vector<uint8_t> bytes(20);
  std::iota(bytes.begin(), bytes.end(), 100);
  const Input five[] = {{"x", {}, host(0, {1, 5, 2, 2}), 0}}, four[] = {{"x", {}, host(0, {1, 4, 1, 5}), 0}};
  folder.write("input.npy", npyArray("|u1", "(1, 5, 2, 2)", bytes));
  std::vector<float> x(20);
  Dataset(from(folder.path), programWith(five)).gather({0, 0}, {x.data()});
  EXPECT_EQ(x, std::vector<float>(bytes.begin(), bytes.end()));
  folder.write("input.npy", npyArray("|u1", "(1, 4, 1, 5)", bytes));
  const DataOptions flipped = augmented(folder, "flip,p=1");
  Dataset(flipped, programWith(four)).gather({0, 0}, {x.data()});
  EXPECT_EQ(x[15], static_cast<float>(bytes[19]) / 255.0f);
  expectError<UsageError>([&] { Dataset(augmented(folder, "colour"), programWith(four)); }, "input 'x' takes 4");
}

TEST(Planes, SizesMustAgree) {
  Folder folder;
  const Input half[] = {{"x", {}, host(0, {1, 3, 4, 6}), 0},
                        {"target", {}, host(0, {1, 1, 2, 3}), 0, Loss::none, false, true}};
  const Program program = programWith(half);
  writePlaces<float>(folder, "<f4", "(1, 1, 4, 6)");
  const auto open = [&](const std::string &words) {
    return [&, words] { Dataset(augmented(folder, words), program); };
  };
  // Its values have the images' size in the files, the model has another.
  expectError<DataError>(open(""), "'target' takes 2 x 3 values, 'x' 4 x 6, the images have 4 x 6");
  folder.write("target.npy", npyArray("<f4", "(1, 1, 2, 3)", std::vector<float>(6)));
  open("")();
  open("colour,brightness=0.1")();
  expectError<DataError>(open("flip"), "--input target=raw if its values lie over no pixels");
  DataOptions options = augmented(folder, "flip");
  options.inputs = {{"target", InputKind::Raw}};
  EXPECT_EQ(firstBatch<float>(options, program).second, std::vector<float>(6));
  options.inputs = {{"tarjet", InputKind::Raw}};
  expectError<UsageError>([&] { Dataset(options, program); }, "--input: there is no input 'tarjet', but 'x', 'target'");
  options.inputs = {{"target", InputKind::Image}};
  expectError<DataError>([&] { Dataset(options, program); },
                         "target.npy is float32 (1, 1, 2, 3), input 'target': images are uint8");
}
