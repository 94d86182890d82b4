// SPDX-License-Identifier: Apache-2.0
// Images against what Pillow makes of the same files (make_images.py), and augmentation.
#include "runtime/data/Augment.h"

#include "runtime/Errors.h"

#include "test/unit/runtime/Folder.h"

#include <cmath>
#include <numeric>
#include <set>
#include <sys/resource.h>
#include <zlib.h>

using namespace sluice;

static std::vector<uint8_t> fileBytes(const std::string &name) {
  std::ifstream in(std::string(SLUICE_IMAGES "/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

static Image decoded(const std::string &name, int channels = 3) { return decodeImage(fileBytes(name), channels, name); }

static Image expected(const std::string &name) {
  const std::vector<uint8_t> bytes = fileBytes(name);
  int32_t head[3] = {};
  EXPECT_GT(bytes.size(), sizeof head) << name;
  std::memcpy(head, bytes.data(), sizeof head);
  Image image(head[0], head[1], head[2]);
  EXPECT_EQ(bytes.size(), sizeof head + image.pixels.size());
  std::copy(bytes.begin() + sizeof head, bytes.end(), image.pixels.begin());
  return image;
}

static int largestDifference(const Image &a, const Image &b) {
  EXPECT_EQ(std::tie(a.width, a.height, a.channels), std::tie(b.width, b.height, b.channels));
  int most = a.pixels.size() == b.pixels.size() ? 0 : 999;
  for (size_t i = 0; i < a.pixels.size() && most < 999; ++i)
    most = std::max(most, std::abs(a.pixels[i] - b.pixels[i]));
  return most;
}

TEST(Images, DecodesAsPillow) {
  for (const char *name : {"colours.png", "grey.png", "palette.png", "alpha.png"})
    EXPECT_EQ(largestDifference(decoded(name), expected(std::string(name) + ".rgb")), 0) << name;
  EXPECT_EQ(largestDifference(decoded("colours.png", 1), expected("colours.png.grey")), 0);
  // Versions of libjpeg round differently.
  for (const char *name : {"colours.jpg", "grey.jpg"})
    EXPECT_LE(largestDifference(decoded(name), expected(std::string(name) + ".rgb")), 2) << name;
}

TEST(Images, ResizesAsPillow) {
  const Image image = decoded("colours.png");
  const Box whole = {0, 0, image.width, image.height};
  for (auto [width, height] : {std::pair{24, 24}, {100, 20}, {53, 80}, {7, 37}})
    // Bytes stand between rows and columns; newer versions of Pillow take columns first where that is less work.
    EXPECT_LE(largestDifference(resize(image, whole, width, height),
                                expected("resized-" + std::to_string(width) + "-" + std::to_string(height))),
              width > image.width ? 1 : 0)
        << width;
  EXPECT_EQ(largestDifference(resize(image, {5, 3, 40, 27}, 16, 48), expected("part")), 0);
  EXPECT_EQ(largestDifference(resize(image, whole, image.width, image.height), image), 0);
}

TEST(Images, RotatesAsPillow) {
  const Image image = decoded("colours.png");
  for (const char *degrees : {"15.5", "-130.25"})
    EXPECT_LE(largestDifference(rotate(image, std::stod(degrees)), expected(std::string("rotated-") + degrees)), 1)
        << degrees;
  EXPECT_EQ(largestDifference(rotate(image, 0), image), 0);
  EXPECT_EQ(rotate(rotate(image, 90), -90).pixels[0], 0); // it went out at the top
}

TEST(Images, ChangesColoursAsPillow) {
  using Adjust = void (*)(Image &, float);
  for (const auto &[name, adjust] : {std::pair<const char *, Adjust>{"brightness", adjustBrightness},
                                     {"contrast", adjustContrast},
                                     {"saturation", adjustSaturation}})
    for (const char *factor : {"0.4", "1.7"}) {
      Image image = decoded("colours.png");
      adjust(image, std::stof(factor));
      EXPECT_EQ(largestDifference(image, expected(std::string(name) + "-" + factor)), 0) << name << factor;
    }
}

TEST(Images, RefusesWhatIsNoImage) {
  const auto decode = [](std::vector<uint8_t> bytes) { return [bytes] { decodeImage(bytes, 3, "a"); }; };
  expectError<DataError>(decode({}), "a: 0 bytes that begin neither as a JPEG nor as a PNG");
  expectError<DataError>(decode({'G', 'I', 'F', '8'}), "begin neither");
  expectError<DataError>(decode(fileBytes("cmyk.jpg")), "a: a JPEG of 4 channels (CMYK): save it in RGB");
  std::vector<uint8_t> huge = fileBytes("colours.png");
  huge[16] = huge[20] = 0;
  huge[18] = huge[22] = 0xff; // 65280 x 65280; its checksum is wrong, too
  expectError<DataError>(decode(huge), "a: ");
}

/// Cut anywhere, and with any byte changed: an image or an error, no crash and no half an image.
TEST(Images, SurvivesDamage) {
  for (const char *name : {"colours.jpg", "palette.png"}) {
    const std::vector<uint8_t> good = fileBytes(name);
    for (size_t bytes = 0; bytes + 16 < good.size(); bytes += 7)
      expectError<DataError>(
          [&] { decodeImage({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes)}, 3, "cut"); }, "cut: ");
    for (size_t at = 0; at < good.size(); at += 3) {
      std::vector<uint8_t> bad = good;
      bad[at] ^= 0x55;
      try {
        decodeImage(bad, 3, "bad");
      } catch (const DataError &error) {
        EXPECT_THAT(error.what(), testing::StartsWith("bad: "));
      }
    }
  }
}

/// A chunk of a PNG: length, name, data and their checksum, highest byte first.
static std::vector<uint8_t> pngChunk(const std::string &name, const std::string &data) {
  std::vector<uint8_t> bytes;
  const auto number = [&](uLong value) {
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<uint8_t>(value >> shift));
  };
  const std::string summed = name + data;
  number(data.size());
  bytes.insert(bytes.end(), summed.begin(), summed.end());
  number(crc32(0, reinterpret_cast<const Bytef *>(summed.data()), static_cast<uInt>(summed.size())));
  return bytes;
}

/// 1.5 GiB of text in a file of a few hundred kilobytes are never unpacked.
TEST(Images, LeavesTextsPacked) {
  const std::vector<uint8_t> zeros(15 << 20);
  std::string packed(zeros.size() / 100, '\0');
  uLongf size = packed.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef *>(packed.data()), &size, zeros.data(), zeros.size()), Z_OK);
  packed.resize(size);
  std::vector<uint8_t> file = fileBytes("colours.png");
  const std::vector<uint8_t> texts[] = {pngChunk("zTXt", std::string("a\0\0", 3) + packed),
                                        pngChunk("iCCP", std::string("a\0\0", 3) + packed)};
  for (int i = 0; i < 100; ++i) // after the first chunk, which has 25 bytes
    file.insert(file.begin() + 8 + 25, texts[i % 2].begin(), texts[i % 2].end());
  rusage before = {}, after = {};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_EQ(largestDifference(decodeImage(file, 3, "texts"), decoded("colours.png")), 0);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 10 << 10); // KiB
}

static const Input smallImage = {"x", {}, host(0, {1, 3, 24, 24}), 0};

static std::vector<float> applied(const ImageOptions &options, const Image &image, uint64_t key = 1,
                                  const Input &input = smallImage) {
  std::vector<float> values(static_cast<size_t>(input.staging.shape.elements()));
  const ImagePipeline pipeline(options, input);
  pipeline.apply(image, pipeline.draw({image.width, image.height}, key, "a"), "a", values.data());
  return values;
}

static ImageOptions options(const std::string &augment, bool random = true) {
  ImageOptions options;
  options.augment = augment;
  options.random = random;
  return options;
}

TEST(Augment, NormalizesChannels) {
  ImageOptions normal;
  normal.mean = {0.5, 0.25, 0};
  normal.std = {0.5, 2, 1};
  const Image image = expected("resized-24-24");
  const std::vector<float> values = applied(normal, image);
  for (size_t c = 0; c < 3; ++c)
    for (size_t i : {0u, 100u, 575u})
      EXPECT_EQ(values[c * 576 + i],
                (static_cast<float>(image.pixels[i * 3 + c]) / 255.0f - static_cast<float>(normal.mean[c])) /
                    static_cast<float>(normal.std[c]));
}

TEST(Augment, ResizesToTheInput) {
  EXPECT_EQ(applied({}, decoded("colours.png")), applied({}, expected("resized-24-24")));
}

TEST(Augment, DependsOnNothingButTheKey) {
  const Image image = decoded("colours.png");
  for (const char *words : {"random-resized-crop", "random-crop,padding=4", "flip", "rotate",
                            "colour,brightness=0.4,contrast=0.4,saturation=0.4"}) {
    std::set<std::vector<float>> seen;
    for (uint64_t key = 0; key < 8; ++key) {
      seen.insert(applied(options(words), image, key));
      EXPECT_EQ(applied(options(words), image, key), applied(options(words), image, key));
    }
    EXPECT_GE(seen.size(), 2u) << words;
    EXPECT_EQ(applied(options(words, false), image), applied({}, image)) << words; // evaluation draws nothing
  }
}

TEST(Augment, CropsTheMiddle) {
  const Image image = decoded("colours.png"); // 53 x 37: 14.5 and 6.5 are rounded to even
  EXPECT_EQ(applied(options("center-crop"), image), applied({}, crop(image, {14, 6, 24, 24})));
  EXPECT_EQ(applied(options("resize,size=24;center-crop"), image),
            applied({}, crop(resize(image, {0, 0, 53, 37}, 34, 24), {5, 0, 24, 24})));
}

TEST(Augment, FlipsExactly) {
  Image image = expected("resized-24-24");
  const std::vector<float> values = applied(options("flip,p=1"), image);
  for (int c = 0; c < 3; ++c)
    EXPECT_EQ(values[static_cast<size_t>(c) * 576], applied({}, image)[static_cast<size_t>(c) * 576 + 23]);
}

TEST(Augment, RotatesUpToTheAskedDegrees) {
  // A pixel right of the middle goes where the angle says.
  Image image(33, 33, 1);
  image.row(16)[26] = 255;
  const Input grey = {"x", {}, host(0, {1, 1, 33, 33}), 0};
  double least = 0, most = 0;
  for (uint64_t key = 0; key < 200; ++key) {
    const std::vector<float> values = applied(options("rotate,degrees=30"), image, key, grey);
    double sum = 0, right = 0, up = 0;
    for (int i = 0; i < 33 * 33; ++i) {
      const double value = values[static_cast<size_t>(i)];
      sum += value, right += value * (i % 33 - 16), up += value * (16 - i / 33);
    }
    const double degrees = std::atan2(up, right) * 180 / 3.14159265358979;
    EXPECT_GT(sum, 0.5);
    least = std::min(least, degrees), most = std::max(most, degrees);
  }
  EXPECT_NEAR(least, -30, 1.5);
  EXPECT_NEAR(most, 30, 1.5);
}

TEST(Augment, TakesRandomPartsOfTheAskedSize) {
  // Of an image whose pixels say where they are, all parts of random-crop lie within it and its black border.
  Image image(32, 32, 1);
  std::iota(image.pixels.begin(), image.pixels.end(), 0);
  const Input grey = {"x", {}, host(0, {1, 1, 32, 32}), 0};
  std::set<float> corners;
  for (uint64_t key = 0; key < 200; ++key)
    corners.insert(applied(options("random-crop,padding=4"), image, key, grey)[32 * 16 + 16]);
  EXPECT_GT(corners.size(), 40u); // of 81 places
  const Input large = {"x", {}, host(0, {1, 1, 64, 64}), 0};
  expectError<DataError>([&] { applied(options("random-crop"), image, 0, large); },
                         "a: an image of 32 x 32 with a padding of 0 has no part of 64 x 64");
}

TEST(Augment, RefusesWordsThatMeanNothing) {
  const auto make = [](const std::string &words) { return [=] { ImagePipeline(options(words), smallImage); }; };
  expectError<UsageError>(make("blur"), "--augment: 'blur' is not known, there are resize, center-crop");
  expectError<UsageError>(make("flip;"), "--augment: '' is not known");
  expectError<UsageError>(make("flip,q=1"), "flip takes no 'q'");
  expectError<UsageError>(make("flip,p=0.1,p=0.2"), "flip takes only one 'p'");
  expectError<UsageError>(make("flip,p=2"), "flip: p expects a number from 0 to 1, got '2'");
  expectError<UsageError>(make("flip,p=nan"), "got 'nan'");
  expectError<UsageError>(make("flip,p"), "got ''");
  expectError<UsageError>(make("rotate,degrees=181"), "degrees expects a number from 0 to 180, got '181'");
  expectError<UsageError>(make("resize,size=2.5"), "size expects a whole number from 1 to 65500, got '2.5'");
  expectError<UsageError>(make("random-resized-crop,least=0.9,most=0.5"), "least 0.9 is above most 0.5");
  const Input flat = {"x", {}, host(0, {1, 784}), 0};
  expectError<UsageError>([&] { ImagePipeline(options("flip"), flat); }, "input 'x' is no image");
  const Input five = {"x", {}, host(0, {1, 5, 8, 8}), 0};
  expectError<DataError>([&] { ImagePipeline(ImageOptions(), five); }, "takes 5 channels of 8 x 8 pixels");
  ImageOptions three;
  three.mean = {1, 2, 3};
  const Input grey = {"x", {}, host(0, {1, 1, 8, 8}), 0};
  expectError<UsageError>([&] { ImagePipeline(three, grey); }, "--mean has 3 values, images have 1 channels");
}
