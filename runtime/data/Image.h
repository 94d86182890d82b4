// SPDX-License-Identifier: Apache-2.0
// Images of bytes, as files hold them, before they become floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

/// Rows from the top, pixels from the left, channels (1, 3 or 4: grey, red, green and blue, or these with one more,
/// which arrays alone have) beside one another.
struct Image {
  int width = 0, height = 0, channels = 0;
  std::vector<uint8_t> pixels;

  Image() = default;
  Image(int width, int height, int channels)
      : width(width), height(height), channels(channels),
        pixels(static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels)) {}
  uint8_t *row(int y) { return pixels.data() + static_cast<size_t>(y) * rowBytes(); }
  const uint8_t *row(int y) const { return pixels.data() + static_cast<size_t>(y) * rowBytes(); }
  size_t rowBytes() const { return static_cast<size_t>(width) * static_cast<size_t>(channels); }
};

/// Whether images, of arrays at least, can have so many channels.
constexpr bool isImageOf(int64_t channels) { return channels == 1 || channels == 3 || channels == 4; }

/// No image may have more pixels, decoded or resized: 64 Mi, 192 MiB in colour.
inline constexpr int64_t mostPixels = int64_t{1} << 26;

/// Decodes JPEG or PNG, known by their first bytes, to that many channels: grey as equal colours, colours as their luma
/// (ITU-R 601), transparency left out. Throws DataError that begins with `name` for what is neither, damaged, cut
/// short, or too large.
Image decodeImage(const std::vector<uint8_t> &file, int channels, const std::string &name);

struct ImageSize {
  int width = 0, height = 0;
  bool operator!=(const ImageSize &other) const { return width != other.width || height != other.height; }
};

/// What decodeImage() makes of the file, as its head says it: it may end anywhere after that. Throws as decodeImage().
ImageSize imageSizeOf(const std::vector<uint8_t> &file, const std::string &name);

/// A number for each pixel, such as that of a class.
struct LabelMap {
  int width = 0, height = 0;
  std::vector<uint16_t> values; ///< row by row from the top
};

/// The numbers of a PNG of grey values, or of a palette whose places they are, with 1 to 16 bits a pixel as the file
/// has them. Throws DataError that begins with `name` for colours, for what is no PNG, damaged, cut short, or too
/// large.
LabelMap decodeMask(const std::vector<uint8_t> &file, const std::string &name);

/// A PNG of grey values, which decodeMask() gives back, with `bits` of them for each: 8 or 16. Begins with
/// `maskPngHead` bytes that depend on the size and then with maskPngMark(). Throws std::runtime_error where it cannot
/// be made.
std::string encodeMask(const LabelMap &mask, int bits);
inline constexpr size_t maskPngHead = 33; ///< signature and IHDR
/// A text chunk that names who wrote it.
std::string maskPngMark();

/// A PNG of an image of three channels. Throws std::runtime_error where it cannot be made.
std::string encodePng(const Image &image);

/// One channel of luma: (19595 R + 38470 G + 7471 B + 2^15) / 2^16, as Pillow has it.
Image toGrey(const Image &colours);
/// Grey as equal colours.
Image toColours(const Image &grey);

/// Interleaved bytes from planes, one channel after the other.
Image fromPlanes(const uint8_t *planes, int width, int height, int channels);

/// A part of an image, in whole pixels; what lies outside of the image is black.
struct Box {
  int left, top, width, height;
};
Image crop(const Image &image, Box box);

/// The bilinear resampling of Pillow 10 (Image.resize with BILINEAR), bit for bit, which averages over all pixels that
/// a smaller image has in one of its own. Only the part `box`, which must lie within the image, is looked at.
Image resize(const Image &image, Box box, int width, int height);

/// Counterclockwise around the middle of an image, by -180 to 180 degrees.
struct Turn {
  Turn(int width, int height, double degrees);
  /// Where the middle of the turned image's pixel comes from; pixel 0 reaches from 0 to 1. May lie outside.
  std::pair<double, double> from(int x, int y) const {
    const double right = x + 0.5 - middleX, down = y + 0.5 - middleY;
    return {cosine * right + sine * down + middleX, cosine * down - sine * right + middleY};
  }

private:
  double middleX, middleY, sine, cosine;
};
/// Black where nothing was, as Pillow 10's Image.rotate with BILINEAR has it.
Image rotate(const Image &image, double degrees);

/// Exchanges left and right.
void flip(Image &image);

/// As Pillow's ImageEnhance does it with the same factors; 1 leaves an image as it is. Of grey images saturation does
/// nothing. Images of one or three channels.
void adjustBrightness(Image &image, float factor);
void adjustContrast(Image &image, float factor);
void adjustSaturation(Image &image, float factor);

} // namespace sluice
