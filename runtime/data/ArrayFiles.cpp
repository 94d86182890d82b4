// SPDX-License-Identifier: Apache-2.0
// Samples are read one by one at their offset. Arrays of smaller integers, and of booleans, serve as I64; bytes and
// booleans as floats, too. Which bytes are images is a matter of shapes, as long as the user does not say it: those
// that an input of images takes, never those of a target, and never those that are marks of 0 and 1.

#include "runtime/data/ArrayFiles.h"

#include "runtime/Errors.h"
#include "runtime/data/ImageFiles.h"
#include "runtime/files/Safetensors.h"
#include "runtime/files/Zip.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

namespace fs = std::filesystem;

namespace sluice {

/// "input" for the only input, else the input's name.
static std::string arrayName(const Program &program, int input) {
  const bool attached = program.outputCount > 0 && program.outputs[0].loss; // what only that reads is no model's
  const auto models = std::count_if(program.inputs, program.inputs + program.inputCount,
                                    [&](const Input &one) { return !attached || !one.ofLossOnly; });
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
  const bool booleans = entry.type == "BOOL";
  for (const auto &[word, type] : {std::pair{"F32", DataType::F32},
                                   {"I64", DataType::I64},
                                   {"I32", DataType::I32},
                                   {"U8", DataType::U8},
                                   {"BOOL", DataType::U8}})
    if (entry.type == word)
      return NpyFile(InputFile(file.path()), entry.offset, type, entry.dims, whole, booleans);
  throw DataError(text(whole, " is ", entry.type, ": save it as F32, I64, I32, U8 or BOOL"));
}

/// What --data without a kind was probably meant to be; empty: nothing to say.
static std::string otherKind(const std::string &path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    for (const auto &[ending, kind] : {std::pair{".csv", "csv"},
                                       {".npz", "npz"},
                                       {".safetensors", "safetensors"},
                                       {".tar", "shards"},
                                       {".bin", "tokens"}})
      if (endsWith(path, ending))
        return text("; a file is ", kind, ":", path);
    if (isImageName(path) || isOtherImageName(path))
      return text("; images are read by the folder: imagefolder:", parentFolder(path));
    return "";
  }
  const auto anyImage = [&](const std::string &folder) {
    fs::directory_iterator entries(folder, error);
    for (int looked = 0; !error && entries != fs::directory_iterator() && looked < 1000; ++looked) {
      if (isImageName(entries->path().filename().string()))
        return true;
      entries.increment(error);
    }
    return false;
  };
  bool any = anyImage(path);
  fs::directory_iterator entries(path, error);
  for (int looked = 0; !any && !error && entries != fs::directory_iterator() && looked < 100; ++looked) {
    any = entries->is_directory(error) && anyImage(entries->path().string());
    entries.increment(error);
  }
  return any ? text("; a folder of images is imagefolder:", path,
                    ", with a subfolder for each class, or segmentation:", path, ",masks=FOLDER")
             : "";
}

static NpyFile openInFolder(const std::string &folder, const std::string &name) {
  const std::string path = joinPath(folder, fileName(name));
  std::error_code error;
  try {
    return NpyFile(path);
  } catch (const DataError &reason) {
    if (fs::exists(path, error))
      throw;
    throw DataError(text(reason.what(), otherKind(folder)));
  }
}

static bool serves(DataType file, DataType input) {
  return file == input || file == DataType::U8 || (input == DataType::I64 && file == DataType::I32);
}

/// Whether a sample of the array is an image as far as shapes tell: (N, C, H, W) or, of one channel, (N, H, W) for an
/// input like that. Sizes may differ.
static bool isShapedLikeImages(const NpyFile &array, const Input &input) {
  const std::vector<int64_t> &dims = array.shape();
  const Shape &shape = input.staging.shape;
  if (array.type() != DataType::U8 || array.isBoolean() || input.staging.type != DataType::F32 || shape.rank < 3 ||
      shape.rank > 4 || input.shared)
    return false;
  const int64_t channels = shape.rank == 4 ? shape[1] : 1;
  const bool fits = isImageOf(channels) && (dims.size() == 4 ? dims[1] == channels : dims.size() == 3 && channels == 1);
  const int64_t height = fits ? dims[dims.size() - 2] : 0, width = fits ? dims.back() : 0;
  return height > 0 && width > 0 && height <= mostPixels / width;
}

static ImageSize sizeOf(const NpyFile &array) {
  const std::vector<int64_t> &dims = array.shape();
  return {static_cast<int>(dims.back()), static_cast<int>(dims[dims.size() - 2])};
}

/// What the user calls an input: by its name, or as its file is called.
std::optional<InputKind> ArrayFiles::calledBy(const InputKinds &said, int input) const {
  for (const std::string &name : {std::string(program.inputs[input].name), arrayName(program, input)})
    if (const auto found = said.find(name); found != said.end())
      return found->second;
  return std::nullopt;
}

bool ArrayFiles::takesImage(const NpyFile &array, int input, std::optional<InputKind> said) const {
  const bool shaped = isShapedLikeImages(array, program.inputs[input]);
  if (said == InputKind::Image && !shaped)
    throw DataError(text(array.path(), " is ", array.elementName(), " ", numpyShape(array.shape()), ", input '",
                         program.inputs[input].name,
                         "': images are uint8 (N, C, H, W), or (N, H, W) of one channel, with the input's 1, 3 or 4 "
                         "channels; leave --input out"));
  if (!shaped || said == InputKind::Raw || (isTarget(program, input) && !said))
    return false;
  if (!said)
    refuseMarks(array, input);
  return true;
}

/// Bytes that are all 0 or 1 can be marks, such as a mask, or dark images.
void ArrayFiles::refuseMarks(const NpyFile &array, int input) const {
  constexpr size_t looked = size_t{1} << 22;
  const int64_t most = static_cast<int64_t>(looked / std::max<size_t>(1, array.sampleBytes())) + 1;
  const int64_t samples = std::min(array.shape()[0], most);
  std::vector<uint8_t> bytes(array.sampleBytes());
  for (int64_t i = 0; i < samples; ++i) {
    array.read(i, 1, bytes.data());
    if (std::any_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte > 1; }))
      return;
  }
  if (samples == 0)
    return;
  const char *name = program.inputs[input].name;
  throw DataError(text(array.path(), ": no byte is above 1",
                       samples < array.shape()[0] ? text(" in the first ", samples, " samples") : "",
                       ": is it a mask? --input ", name, "=raw takes 0 and 1 as they are, --input ", name,
                       "=image takes value / 255"));
}

void ArrayFiles::noteSize(const NpyFile &array) {
  const ImageSize own = sizeOf(array);
  if (size && *size != own)
    throw DataError(text(array.path(), " has images of ", own.width, " x ", own.height, ", others have ", size->width,
                         " x ", size->height, ": all of a sample are changed alike, so they need one size"));
  size = own;
}

/// Whether it has a value, or several planes of them, for each pixel of the images.
bool ArrayFiles::liesOverImages(const NpyFile &array, int input) const {
  const std::vector<int64_t> &dims = array.shape();
  const Shape &shape = program.inputs[input].staging.shape;
  if (!size || program.inputs[input].shared || shape.rank < 3 || dims.size() != static_cast<size_t>(shape.rank) ||
      sizeOf(array) != *size)
    return false;
  for (int i = 1; i < shape.rank - 2; ++i)
    if (dims[static_cast<size_t>(i)] != shape[i])
      return false;
  return serves(array.type(), program.inputs[input].staging.type);
}

/// Whether a sample is one number, however many dimensions of extent 1 that has.
static bool isOneNumber(const std::vector<int64_t> &dims) {
  return !dims.empty() && std::all_of(dims.begin() + 1, dims.end(), [](int64_t extent) { return extent == 1; });
}

/// Throws DataError for an array that fits no way. One number a sample may be (N,) as well as (N, 1).
void ArrayFiles::checkArray(const NpyFile &array, int input) const {
  const Input &in = program.inputs[input];
  const Tensor &expected = in.staging;
  const std::vector<int64_t> &dims = array.shape();
  bool fits = dims.size() == static_cast<size_t>(expected.shape.rank);
  for (size_t i = in.shared ? 0 : 1; fits && i < dims.size(); ++i)
    fits = dims[i] == expected.shape[static_cast<int>(i)];
  const std::vector<int64_t> whole(expected.shape.dims, expected.shape.dims + expected.shape.rank);
  fits |= !in.shared && isOneNumber(dims) && isOneNumber(whole);
  if (serves(array.type(), expected.type) && fits)
    return;
  std::string rest;
  for (int i = 1; i < expected.shape.rank; ++i)
    rest += text(", ", expected.shape[i]);
  throw DataError(text(array.path(), " is ", array.elementName(), " ", numpyShape(dims), ", input '", in.name,
                       in.shared ? "', which all samples have in common," : "'", " takes ", typeName(expected.type),
                       " ", in.shared ? numpyShape(whole) : text("(N", rest.empty() ? "," : rest, ")")));
}

void ArrayFiles::chooseForms(const InputKinds &said) {
  for (const auto &[name, kind] : said) {
    std::string known;
    bool found = false;
    for (int i = 0; i < program.inputCount; ++i) {
      found |= name == program.inputs[i].name || name == arrayName(program, i);
      known += text(i > 0 ? ", '" : "'", program.inputs[i].name, "'");
    }
    if (!found)
      throw UsageError(text("--input: there is no input '", name, "', but ", known));
  }
  forms.assign(arrays.size(), Form::Numbers);
  for (size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i] && takesImage(*arrays[i], static_cast<int>(i), calledBy(said, static_cast<int>(i)))) {
      forms[i] = Form::Image;
      noteSize(*arrays[i]);
    }
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i] || forms[i] == Form::Image)
      continue;
    const auto input = static_cast<int>(i);
    const bool raw = calledBy(said, input) == InputKind::Raw;
    forms[i] = raw ? Form::Raw : liesOverImages(*arrays[i], input) ? Form::Planes : Form::Numbers;
    if (forms[i] != Form::Planes)
      checkArray(*arrays[i], input);
  }
}

ArrayFiles::ArrayFiles(Container container, const std::string &path, const Program &program, bool targets,
                       const InputKinds &said)
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
    if (!targets && !isPredictedFrom(program, i)) {
      arrays.emplace_back();
      continue;
    }
    const std::string name = arrayName(program, i);
    const NpyFile &array = *arrays.emplace_back(zip       ? openMember(*zip, name)
                                                : tensors ? openTensor(*tensors, name)
                                                          : openInFolder(path, name));
    if (container == Container::Folder)
      files.push_back(array.path());
  }
  chooseForms(said);
  const NpyFile *first = nullptr;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i] || program.inputs[i].shared)
      continue;
    const int64_t samples = arrays[i]->shape()[0];
    if (first && samples != count)
      throw DataError(text(arrays[i]->path(), " holds ", samples, " samples, ", first->path(), " holds ", count));
    count = samples;
    first = first ? first : &*arrays[i];
  }
}

/// Elements of the file as those of the staging tensor, which are wider; from the last to the first, in place.
template <typename From, typename To> static void widen(char *values, int64_t elements) {
  for (int64_t i = elements; i-- > 0;) {
    From narrow;
    std::memcpy(&narrow, values + static_cast<size_t>(i) * sizeof narrow, sizeof narrow);
    const To wide = static_cast<To>(narrow);
    std::memcpy(values + static_cast<size_t>(i) * sizeof wide, &wide, sizeof wide);
  }
}

void ArrayFiles::read(int input, int64_t sample, char *values) const {
  const NpyFile &file = *arrays[static_cast<size_t>(input)];
  const DataType wanted = program.inputs[input].staging.type;
  const bool shared = program.inputs[input].shared;
  const int64_t samples = shared && !file.shape().empty() ? file.shape()[0] : 1;
  file.read(shared ? 0 : sample, samples, values);
  if (file.type() == wanted)
    return;
  const auto elements = samples * static_cast<int64_t>(file.sampleBytes() / byteWidth(file.type()));
  if (wanted == DataType::F32)
    widen<uint8_t, float>(values, elements);
  else if (file.type() == DataType::I32)
    widen<int32_t, int64_t>(values, elements);
  else
    widen<uint8_t, int64_t>(values, elements);
}

Image ArrayFiles::readImage(int input, int64_t sample) const {
  const NpyFile &array = *arrays[static_cast<size_t>(input)];
  const std::vector<int64_t> &dims = array.shape();
  std::vector<uint8_t> planes(array.sampleBytes());
  array.read(sample, 1, planes.data());
  return fromPlanes(planes.data(), static_cast<int>(dims.back()), static_cast<int>(dims[dims.size() - 2]),
                    dims.size() == 4 ? static_cast<int>(dims[1]) : 1);
}

PlaneValues ArrayFiles::readPlanes(int input, int64_t sample) const {
  const Input &in = program.inputs[input];
  const Shape &shape = in.staging.shape;
  PlaneValues planes{*size, sampleElements(in) / (shape[shape.rank - 2] * shape[shape.rank - 1]), {}};
  const int64_t elements = planes.planes * size->width * size->height;
  planes.values.resize(static_cast<size_t>(elements) * byteWidth(in.staging.type));
  read(input, sample, planes.values.data());
  return planes;
}

std::string ArrayFiles::name(int input, int64_t sample) const {
  const std::string &path = arrays[static_cast<size_t>(input)]->path();
  return program.inputs[input].shared ? path : text(path, ": sample ", sample);
}

/// What is done with bytes that could be images or not.
std::vector<std::string> ArrayFiles::notes() const {
  std::vector<std::string> list;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Input &input = program.inputs[i];
    if (!arrays[i] || !isShapedLikeImages(*arrays[i], input))
      continue;
    const bool image = forms[i] == Form::Image;
    list.push_back(text("the bytes of '", input.name,
                        image ? "' are images: value / 255" : "' are numbers from 0 to 255", "; --input ", input.name,
                        image ? "=raw takes them as numbers" : "=image takes them as images"));
  }
  return list;
}

} // namespace sluice
