// SPDX-License-Identifier: Apache-2.0
// JPEG and PNG through their libraries. These report errors by longjmp: everything that has a destructor, the image
// too, belongs to the caller of the function that calls setjmp.

#include "runtime/data/Image.h"

#include "runtime/Errors.h"

#include <cstdio>

#include <csetjmp>
#include <cstring>
#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

namespace sluice {

namespace {

[[noreturn]] void refuse(const std::string &name, const std::string &reason) {
  throw DataError(text(name, ": ", reason));
}

void checkSize(const std::string &name, uint64_t width, uint64_t height) {
  if (width == 0 || height == 0 || width > 65500 || height > 65500 || static_cast<int64_t>(width * height) > mostPixels)
    refuse(name, text("the image is ", width, " x ", height, ", at most ", mostPixels,
                      " pixels and 65500 a side are"
                      " decoded: make it smaller"));
}

struct JpegErrors {
  jpeg_error_mgr manager; ///< first: libjpeg knows only it
  jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void failJpeg(j_common_ptr state) {
  auto *errors = reinterpret_cast<JpegErrors *>(state->err);
  errors->manager.format_message(state, errors->message);
  std::longjmp(errors->back, 1);
}

/// Warnings are of damage that the decoder papers over, but for stray bytes between two segments.
void warnJpeg(j_common_ptr state, int level) {
  if (level < 0 && state->err->msg_code != JWRN_EXTRANEOUS_DATA)
    failJpeg(state);
}

/// Thousands of empty scans are a few bytes each and take as long as the image is large.
void limitScans(j_common_ptr state) {
  constexpr int mostScans = 500;
  if (state->is_decompressor && reinterpret_cast<j_decompress_ptr>(state)->input_scan_number > mostScans)
    ERREXIT(state, JERR_BAD_PROGRESSION);
}

/// A decoder and its end.
struct Jpeg {
  jpeg_decompress_struct state = {};
  JpegErrors errors = {};
  jpeg_progress_mgr progress = {};

  Jpeg() {
    state.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = failJpeg;
    errors.manager.emit_message = warnJpeg;
    jpeg_create_decompress(&state);
    progress.progress_monitor = limitScans;
    state.progress = &progress;
  }
  ~Jpeg() { jpeg_destroy_decompress(&state); }
};

/// Up to the pixels. Called where the decoder's errors come back to.
void readHead(Jpeg &jpeg, const std::vector<uint8_t> &file, const std::string &name) {
  jpeg_mem_src(&jpeg.state, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&jpeg.state, TRUE);
  checkSize(name, jpeg.state.image_width, jpeg.state.image_height);
}

void readJpeg(Jpeg &jpeg, const std::vector<uint8_t> &file, int channels, const std::string &name, Image &image) {
  jpeg_decompress_struct &state = jpeg.state;
  if (setjmp(jpeg.errors.back))
    refuse(name, text("a damaged JPEG: ", jpeg.errors.message));
  readHead(jpeg, file, name);
  if (state.num_components != 1 && state.num_components != 3)
    refuse(name, text("a JPEG of ", state.num_components, " channels (CMYK): save it in RGB"));
  state.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  image = Image(static_cast<int>(state.image_width), static_cast<int>(state.image_height), channels);
  jpeg_start_decompress(&state);
  while (state.output_scanline < state.output_height) {
    uint8_t *row = image.row(static_cast<int>(state.output_scanline));
    jpeg_read_scanlines(&state, &row, 1);
  }
  jpeg_finish_decompress(&state);
}

struct Png {
  const std::vector<uint8_t> &file;
  size_t at = 0;
  std::string message;
  std::vector<png_bytep> rows;
  png_structp state = nullptr;
  png_infop info = nullptr;

  explicit Png(const std::vector<uint8_t> &file) : file(file) {
    state = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore);
    info = state ? png_create_info_struct(state) : nullptr;
    if (!info) {
      png_destroy_read_struct(&state, nullptr, nullptr);
      throw std::bad_alloc();
    }
  }
  ~Png() { png_destroy_read_struct(&state, &info, nullptr); }

  [[noreturn]] static void fail(png_structp state, png_const_charp what) {
    static_cast<Png *>(png_get_error_ptr(state))->message = what;
    png_longjmp(state, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  static void give(png_structp state, png_bytep to, size_t bytes) {
    auto *png = static_cast<Png *>(png_get_io_ptr(state));
    if (bytes > png->file.size() - png->at)
      png_error(state, "the file ends early");
    std::memcpy(to, png->file.data() + png->at, bytes);
    png->at += bytes;
  }
};

/// What an image may say besides its pixels is not even unpacked: texts and profiles of a few bytes can become
/// gigabytes.
void skipAncillary(png_structp state) {
  static constexpr png_byte chunks[] = "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0"
                                       "tEXt\0tIME\0zTXt";
  png_set_keep_unknown_chunks(state, PNG_HANDLE_CHUNK_NEVER, chunks, static_cast<int>(sizeof chunks / 5));
}

/// Up to the pixels. Called where png's errors come back to.
void readHead(Png &png, const std::string &name) {
  png_set_read_fn(png.state, &png, Png::give);
  png_set_user_limits(png.state, 65500, 65500);
  png_set_chunk_malloc_max(png.state, 1 << 24);
  skipAncillary(png.state);
  png_read_info(png.state, png.info);
  checkSize(name, png_get_image_width(png.state, png.info), png_get_image_height(png.state, png.info));
}

/// `pixels` holds as many rows as the image is high.
void readRows(Png &png, uint8_t *pixels, size_t rowBytes) {
  if (png_get_rowbytes(png.state, png.info) != rowBytes)
    png_error(png.state, "rows of an unknown size");
  png.rows.resize(png_get_image_height(png.state, png.info));
  for (size_t y = 0; y < png.rows.size(); ++y)
    png.rows[y] = pixels + y * rowBytes;
  png_read_image(png.state, png.rows.data());
  png_read_end(png.state, nullptr);
}

/// Eight bits a channel, without transparency, grey or colours as in the file.
void readPng(Png &png, const std::string &name, Image &image) {
  if (setjmp(png_jmpbuf(png.state)))
    refuse(name, text("a damaged PNG: ", png.message));
  readHead(png, name);
  png_set_expand(png.state);
  png_set_scale_16(png.state);
  png_set_strip_alpha(png.state);
  png_set_interlace_handling(png.state);
  png_read_update_info(png.state, png.info);
  image = Image(static_cast<int>(png_get_image_width(png.state, png.info)),
                static_cast<int>(png_get_image_height(png.state, png.info)), png_get_channels(png.state, png.info));
  readRows(png, image.pixels.data(), image.rowBytes());
}

/// The numbers as they are: of up to eight bits a byte each, else two, the higher one first.
void readNumbers(Png &png, const std::string &name, LabelMap &mask, std::vector<uint8_t> &bytes) {
  if (setjmp(png_jmpbuf(png.state)))
    refuse(name, text("a damaged PNG: ", png.message));
  readHead(png, name);
  const auto colours = png_get_color_type(png.state, png.info);
  if (colours != PNG_COLOR_TYPE_GRAY && colours != PNG_COLOR_TYPE_PALETTE)
    refuse(name, "a mask has one number for each pixel, this PNG has colours or transparency: save it with a palette "
                 "or as grey values (Pillow's modes P and L)");
  png_set_packing(png.state);
  png_set_interlace_handling(png.state);
  png_read_update_info(png.state, png.info);
  mask.width = static_cast<int>(png_get_image_width(png.state, png.info));
  mask.height = static_cast<int>(png_get_image_height(png.state, png.info));
  const size_t width = png_get_bit_depth(png.state, png.info) == 16 ? 2 : 1;
  bytes.resize(static_cast<size_t>(mask.width) * static_cast<size_t>(mask.height) * width);
  readRows(png, bytes.data(), static_cast<size_t>(mask.width) * width);
}

void readSize(Jpeg &jpeg, const std::vector<uint8_t> &file, const std::string &name) {
  if (setjmp(jpeg.errors.back))
    refuse(name, text("a damaged JPEG: ", jpeg.errors.message));
  readHead(jpeg, file, name);
}

void readSize(Png &png, const std::string &name) {
  if (setjmp(png_jmpbuf(png.state)))
    refuse(name, text("a damaged PNG: ", png.message));
  readHead(png, name);
}

bool isJpeg(const std::vector<uint8_t> &file) {
  return file.size() >= 3 && file[0] == 0xff && file[1] == 0xd8 && file[2] == 0xff;
}

[[noreturn]] void refuseOther(const std::vector<uint8_t> &file, const std::string &name) {
  refuse(name, text(file.size(), " bytes that begin neither as a JPEG nor as a PNG"));
}

bool isPng(const std::vector<uint8_t> &file) {
  static const uint8_t mark[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  return file.size() >= sizeof mark && std::memcmp(file.data(), mark, sizeof mark) == 0;
}

} // namespace

LabelMap decodeMask(const std::vector<uint8_t> &file, const std::string &name) {
  if (!isPng(file))
    refuse(name, text(file.size(), " bytes that do not begin as a PNG, which masks are"));
  LabelMap mask;
  std::vector<uint8_t> bytes;
  Png png(file);
  readNumbers(png, name, mask, bytes);
  const size_t pixels = static_cast<size_t>(mask.width) * static_cast<size_t>(mask.height);
  mask.values.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(pixels));
  if (bytes.size() > pixels)
    for (size_t i = 0; i < pixels; ++i)
      mask.values[i] = static_cast<uint16_t>(bytes[2 * i] << 8 | bytes[2 * i + 1]);
  return mask;
}

ImageSize imageSizeOf(const std::vector<uint8_t> &file, const std::string &name) {
  if (isJpeg(file)) {
    Jpeg jpeg;
    readSize(jpeg, file, name);
    return {static_cast<int>(jpeg.state.image_width), static_cast<int>(jpeg.state.image_height)};
  }
  if (!isPng(file))
    refuseOther(file, name);
  Png png(file);
  readSize(png, name);
  return {static_cast<int>(png_get_image_width(png.state, png.info)),
          static_cast<int>(png_get_image_height(png.state, png.info))};
}

Image decodeImage(const std::vector<uint8_t> &file, int channels, const std::string &name) {
  Image image;
  if (isJpeg(file)) {
    Jpeg jpeg;
    readJpeg(jpeg, file, channels, name, image);
    return image;
  }
  if (!isPng(file))
    refuseOther(file, name);
  Png png(file);
  readPng(png, name, image);
  if (image.channels == channels)
    return image;
  return channels == 1 ? toGrey(image) : toColours(image);
}

} // namespace sluice
