// SPDX-License-Identifier: Apache-2.0
// Colours through libpng's simplified interface, which reports errors by return values; numbers through the other one,
// since they are to stay what they are, whatever a grey value means, and which reports errors by longjmp.

#include "runtime/data/Image.h"

#include "runtime/Errors.h"

#include <csetjmp>
#include <png.h>
#include <stdexcept>

namespace sluice {

std::string encodePng(const Image &image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string file(bytes, '\0');
  if (!png_image_write_to_memory(&png, file.data(), &bytes, 0, image.pixels.data(), 0, nullptr))
    throw std::runtime_error(text("cannot make a PNG of ", image.width, " x ", image.height, ": ", png.message));
  file.resize(bytes);
  return file;
}

namespace {

constexpr char softwareKey[] = "Software", softwareName[] = "sluice --predict";

struct PngWriter {
  std::string file, message;
  png_structp state = nullptr;
  png_infop info = nullptr;

  PngWriter() {
    state = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore);
    info = state ? png_create_info_struct(state) : nullptr;
    if (!info) {
      png_destroy_write_struct(&state, nullptr);
      throw std::bad_alloc();
    }
    png_set_write_fn(state, this, take, flush);
  }
  ~PngWriter() { png_destroy_write_struct(&state, &info); }

  [[noreturn]] static void fail(png_structp state, png_const_charp what) {
    static_cast<PngWriter *>(png_get_error_ptr(state))->message = what;
    png_longjmp(state, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  static void take(png_structp state, png_bytep from, size_t bytes) {
    static_cast<PngWriter *>(png_get_io_ptr(state))->file.append(reinterpret_cast<char *>(from), bytes);
  }
  static void flush(png_structp) {}
};

/// `rows` are those of the image, the higher byte first. False where the writer's message says why not.
bool writeGrey(PngWriter &png, const LabelMap &mask, int bits, std::vector<png_bytep> &rows) {
  if (setjmp(png_jmpbuf(png.state)))
    return false;
  png_set_IHDR(png.state, png.info, static_cast<png_uint_32>(mask.width), static_cast<png_uint_32>(mask.height), bits,
               PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_text software = {};
  software.compression = PNG_TEXT_COMPRESSION_NONE;
  software.key = const_cast<char *>(softwareKey);
  software.text = const_cast<char *>(softwareName);
  png_set_text(png.state, png.info, &software, 1);
  png_write_info(png.state, png.info);
  png_write_image(png.state, rows.data());
  png_write_end(png.state, nullptr);
  return true;
}

} // namespace

std::string maskPngMark() {
  const std::string content = std::string(softwareKey) + '\0' + softwareName;
  return std::string(3, '\0') + static_cast<char>(content.size()) + "tEXt" + content;
}

std::string encodeMask(const LabelMap &mask, int bits) {
  const size_t wide = bits == 16 ? 2 : 1, width = static_cast<size_t>(mask.width) * wide;
  std::vector<png_byte> bytes;
  bytes.reserve(mask.values.size() * wide);
  for (const uint16_t value : mask.values) {
    if (wide == 2)
      bytes.push_back(static_cast<png_byte>(value >> 8));
    bytes.push_back(static_cast<png_byte>(value & 0xff));
  }
  std::vector<png_bytep> rows;
  for (int y = 0; y < mask.height; ++y)
    rows.push_back(bytes.data() + static_cast<size_t>(y) * width);
  PngWriter png;
  if (!writeGrey(png, mask, bits, rows))
    throw std::runtime_error(text("cannot make a PNG of ", mask.width, " x ", mask.height, ": ", png.message));
  return std::move(png.file);
}

} // namespace sluice
