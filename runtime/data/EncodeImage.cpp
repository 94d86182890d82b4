// SPDX-License-Identifier: Apache-2.0
// PNG through libpng's simplified interface, which reports errors by return values.

#include "runtime/data/Image.h"

#include "runtime/Errors.h"

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

} // namespace sluice
