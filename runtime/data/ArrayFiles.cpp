// SPDX-License-Identifier: Apache-2.0
// Samples are read one by one at their offset. Arrays of smaller integers, and of booleans, serve as I64; those of
// bytes as images.

#include "runtime/data/ArrayFiles.h"

#include "runtime/files/Safetensors.h"
#include "runtime/files/Zip.h"

#include <cctype>
#include <cstring>

namespace sluice {

/// "input" for the only input, else the input's name.
static std::string arrayName(const Program &program, int input) {
  const int models = program.inputCount - (isTarget(program, program.inputCount - 1) ? 1 : 0);
  return models == 1 && input == 0 ? "input" : program.inputs[input].name;
}

/// Characters that could leave the folder become '_'.
static std::string fileName(std::string name) {
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._-", c))
      c = '_';
  return name + ".npy";
}

static NpyFile openMember(const ZipFile &zip, const std::string &name) {
  const std::string whole = name + ".npy";
  if (!zip.contains(whole))
    throw DataError(text(zip.path(), " has no array '", name, "', but ", zip.names()));
  ZipFile::Member member = zip.open(whole);
  return NpyFile(std::move(member.file), member.begin, member.end, text(zip.path(), ": ", whole));
}

static NpyFile openTensor(const SafetensorsFile &file, const std::string &name) {
  const SafetensorsFile::Entry &entry = file.find(name);
  const std::string whole = text(file.path(), ": tensor '", name, "'");
  for (const auto &[word, type] : {std::pair{"F32", DataType::F32},
                                   {"I64", DataType::I64},
                                   {"I32", DataType::I32},
                                   {"U8", DataType::U8},
                                   {"BOOL", DataType::U8}})
    if (entry.type == word)
      return NpyFile(InputFile(file.path()), entry.offset, type, entry.dims, whole);
  throw DataError(text(whole, " is ", entry.type, ": save it as F32, I64, I32, U8 or BOOL"));
}

static bool serves(DataType file, DataType input) {
  return file == input || (input == DataType::I64 && (file == DataType::I32 || file == DataType::U8));
}

/// Bytes for an input of floats: (N, C, H, W) or, of one channel, (N, H, W). Sizes may differ from the input's.
static bool isImages(const NpyFile &array, const Input &input) {
  const std::vector<int64_t> &dims = array.shape();
  const Shape &shape = input.staging.shape;
  if (array.type() != DataType::U8 || input.staging.type != DataType::F32 || shape.rank < 3 || shape.rank > 4)
    return false;
  const int64_t channels = shape.rank == 4 ? shape[1] : 1;
  const bool fits = dims.size() == 4 ? dims[1] == channels : dims.size() == 3 && channels == 1;
  const int64_t height = fits ? dims[dims.size() - 2] : 0, width = fits ? dims.back() : 0;
  return height > 0 && width > 0 && height <= mostPixels / width;
}

/// Whether it is an image. Throws DataError for an array that fits no way.
bool ArrayFiles::checkArray(const NpyFile &array, int input) {
  const Input &in = program.inputs[input];
  const Tensor &expected = in.staging;
  const std::vector<int64_t> &dims = array.shape();
  if (image < 0 && isImages(array, in))
    return true;
  bool fits = dims.size() == static_cast<size_t>(expected.shape.rank);
  for (size_t i = 1; fits && i < dims.size(); ++i)
    fits = dims[i] == expected.shape[static_cast<int>(i)];
  if (serves(array.type(), expected.type) && fits)
    return false;
  std::string rest;
  for (int i = 1; i < expected.shape.rank; ++i)
    rest += text(", ", expected.shape[i]);
  throw DataError(text(array.path(), " is ", typeName(array.type()), " ", numpyShape(dims), ", input '", in.name,
                       "' takes ", typeName(expected.type), " (N", rest.empty() ? "," : rest, ")"));
}

ArrayFiles::ArrayFiles(Container container, const std::string &path, const Program &program, bool targets)
    : program(program) {
  std::optional<ZipFile> zip;
  std::optional<SafetensorsFile> tensors;
  if (container == Container::Npz)
    zip.emplace(path);
  if (container == Container::Safetensors)
    tensors.emplace(path);
  if (container != Container::Folder)
    files.push_back(path);
  for (int i = 0; i < program.inputCount; ++i) {
    if (!targets && isTarget(program, i)) {
      arrays.emplace_back();
      continue;
    }
    const std::string name = arrayName(program, i);
    const NpyFile &array = *arrays.emplace_back(zip       ? openMember(*zip, name)
                                                : tensors ? openTensor(*tensors, name)
                                                          : NpyFile(joinPath(path, fileName(name))));
    if (container == Container::Folder)
      files.push_back(array.path());
    if (checkArray(array, i))
      image = i;
    const int64_t samples = array.shape()[0];
    if (count >= 0 && samples != count)
      throw DataError(text(array.path(), " holds ", samples, " samples, ", arrays[0]->path(), " holds ", count));
    count = samples;
  }
}

/// Integers of the file as those of the staging tensor, which are wider; from the last to the first, in place.
template <typename T> static void widen(char *values, int64_t elements) {
  for (int64_t i = elements; i-- > 0;) {
    T narrow;
    std::memcpy(&narrow, values + static_cast<size_t>(i) * sizeof narrow, sizeof narrow);
    const int64_t wide = narrow;
    std::memcpy(values + static_cast<size_t>(i) * sizeof wide, &wide, sizeof wide);
  }
}

void ArrayFiles::read(int input, int64_t sample, char *values) const {
  const NpyFile &file = *arrays[static_cast<size_t>(input)];
  const Input &in = program.inputs[input];
  file.read(sample, 1, values);
  if (file.type() == in.staging.type)
    return;
  if (file.type() == DataType::I32)
    widen<int32_t>(values, sampleElements(in));
  else
    widen<uint8_t>(values, sampleElements(in));
}

Image ArrayFiles::readImage(int64_t sample) const {
  const NpyFile &array = *arrays[static_cast<size_t>(image)];
  const std::vector<int64_t> &dims = array.shape();
  std::vector<uint8_t> planes(array.sampleBytes());
  array.read(sample, 1, planes.data());
  return fromPlanes(planes.data(), static_cast<int>(dims.back()), static_cast<int>(dims[dims.size() - 2]),
                    dims.size() == 4 ? static_cast<int>(dims[1]) : 1);
}

std::string ArrayFiles::name(int input, int64_t sample) const {
  return text(arrays[static_cast<size_t>(input)]->path(), ": sample ", sample);
}

} // namespace sluice
