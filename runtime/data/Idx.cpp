// SPDX-License-Identifier: Apache-2.0
// The format of http://yann.lecun.com/exdb/mnist: two zeros, the type 8 of bytes, the number of dimensions, each of
// them in four bytes, the highest first; the data after it.

#include "runtime/data/LabelledImages.h"

#include "runtime/Errors.h"
#include "runtime/files/Inflate.h"

#include <filesystem>

namespace sluice {

static InputFile openIdx(const std::string &path) {
  const std::string packed = path + ".gz";
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) || !std::filesystem::exists(packed, ignored))
    return InputFile(path);
  const InputFile file(packed);
  return inflate(file, 0, file.size(), Compression::Gzip, uint64_t{1} << 36, packed);
}

/// The dimensions, whose product is what the file has after its header.
static std::vector<int64_t> readHeader(const InputFile &file, size_t rank) {
  uint8_t header[16] = {};
  const size_t bytes = 4 + 4 * rank;
  if (file.size() < bytes)
    throw DataError(text(file.path(), ": ", file.size(), " bytes are too short for an IDX header of ", bytes));
  file.readAt(0, header, bytes);
  if (header[0] != 0 || header[1] != 0 || header[2] != 8 || header[3] != rank)
    throw DataError(text(file.path(), ": not an IDX file of bytes with ", rank, " dimensions"));
  std::vector<int64_t> dims;
  int64_t product = 1;
  bool overflow = false;
  for (size_t i = 4; i < bytes; i += 4) {
    dims.push_back(int64_t{header[i]} << 24 | header[i + 1] << 16 | header[i + 2] << 8 | header[i + 3]);
    overflow |= __builtin_mul_overflow(product, dims.back(), &product);
  }
  if (overflow || static_cast<uint64_t>(product) != file.size() - bytes)
    throw DataError(text(file.path(), ": the header promises ", overflow ? "too many" : text(product),
                         " bytes, the file has ", file.size() - bytes, " behind it"));
  return dims;
}

Idx::Idx(const std::string &prefix, const Program &program, bool targets) : LabelledImages("idx", program, targets) {
  const InputFile &images = files.emplace_back(openIdx(prefix + "-images-idx3-ubyte"));
  const std::vector<int64_t> dims = readHeader(images, 3);
  if (dims[1] == 0 || dims[2] == 0 || dims[1] > mostPixels / dims[2])
    throw DataError(text(images.path(), ": images of ", dims[1], " x ", dims[2], " pixels, from 1 to ", mostPixels,
                         " are allowed"));
  count = dims[0];
  height = static_cast<int>(dims[1]);
  width = static_cast<int>(dims[2]);
  if (!targets || program.inputCount < 2)
    return;
  const InputFile &labels = files.emplace_back(openIdx(prefix + "-labels-idx1-ubyte"));
  if (const int64_t found = readHeader(labels, 1)[0]; found != count)
    throw DataError(text(labels.path(), " holds ", found, " labels, ", files[0].path(), " holds ", count, " images"));
}

std::vector<std::string> Idx::paths() const {
  std::vector<std::string> list;
  for (const InputFile &file : files)
    list.push_back(file.path());
  return list;
}

int64_t Idx::label(int64_t sample) const {
  uint8_t value = 0;
  files[1].readAt(8 + static_cast<uint64_t>(sample), &value, 1);
  return value;
}

Image Idx::readImage(int, int64_t sample) const {
  Image image(width, height, 1);
  files[0].readAt(16 + static_cast<uint64_t>(sample) * image.pixels.size(), image.pixels.data(), image.pixels.size());
  const Shape &shape = program.inputs[0].staging.shape;
  return shape.rank == 4 && shape[1] == 3 ? toColours(image) : image;
}

std::string Idx::name(int input, int64_t sample) const {
  return text(files[input > 0 ? 1 : 0].path(), ": sample ", sample);
}

} // namespace sluice
