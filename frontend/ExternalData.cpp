// SPDX-License-Identifier: Apache-2.0
// Mapping of external tensor data, with every claim of the model file checked against the data file.
#include "frontend/ExternalData.h"
#include "onnx/onnx_pb.h"
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {
namespace {

Result<int64_t> parseNumber(const std::string &key, const std::string &text) {
  int64_t number = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || number < 0)
    return Error{"external data " + key + " '" + text + "' is not a number of bytes"};
  return number;
}

/// Whether `path`, links resolved, lies below `folder`.
bool liesBelow(const std::filesystem::path &path, const std::filesystem::path &folder) {
  std::error_code failure;
  auto real = std::filesystem::canonical(path, failure);
  if (failure)
    return false;
  auto root = std::filesystem::canonical(folder, failure);
  if (failure)
    return false;
  auto relative = real.lexically_relative(root);
  return !relative.empty() && *relative.begin() != "..";
}

/// Whether model and data are links whose files lie beside one another, as in the cache of a model hub: snapshots of
/// links into one folder of blobs.
bool liesBesideModel(const std::filesystem::path &path, const std::string &modelPath) {
  std::error_code failure;
  if (!std::filesystem::is_symlink(modelPath, failure) || !std::filesystem::is_symlink(path, failure))
    return false;
  const auto model = std::filesystem::canonical(modelPath, failure), data = std::filesystem::canonical(path, failure);
  return !failure && !model.empty() && model.parent_path() == data.parent_path();
}

} // namespace

/// Only regular files with bytes: mmap() takes neither empty ones nor pipes, and a model may name any path.
Result<MappedFile> MappedFile::open(const std::string &path) {
  // O_NONBLOCK: opening a pipe would wait for its other end.
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return Error{std::string("cannot open: ") + std::strerror(errno)};
  struct stat status;
  bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular || status.st_size == 0) {
    ::close(file);
    return Error{regular ? "file is empty" : "not a regular file"};
  }
  size_t size = static_cast<size_t>(status.st_size);
  void *data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  if (data == MAP_FAILED)
    return Error{std::string("cannot map: ") + std::strerror(errno)};
  return MappedFile(static_cast<const char *>(data), size);
}

MappedFile::MappedFile(MappedFile &&other) noexcept : data(other.data), size(other.size) { other.data = nullptr; }

MappedFile::~MappedFile() {
  if (data)
    munmap(const_cast<char *>(data), size);
}

/// A file below the model's folder, and not by a link, unless that leads to where the model itself lies.
static Result<std::filesystem::path> pathOf(const std::string &location, const std::string &modelPath) {
  std::filesystem::path relative(location);
  std::filesystem::path folder = std::filesystem::path(modelPath).parent_path();
  if (folder.empty())
    folder = ".";
  if (location.empty() || relative.is_absolute())
    return Error{"external data location '" + location + "' must be a path relative to the model"};
  for (const auto &part : relative)
    if (part == "..")
      return Error{"external data location '" + location + "' leaves the model's folder"};
  std::filesystem::path path = folder / relative;
  std::error_code failure;
  if (!std::filesystem::exists(path, failure))
    return Error{"external data file '" + path.string() + "' does not exist"};
  if (!liesBelow(path, folder) && !liesBesideModel(path, modelPath))
    return Error{"external data location '" + location +
                 "' leaves the model's folder through a link, and not to where "
                 "the model is a link to"};
  return path;
}

Result<std::string_view> ExternalData::map(const std::string &location) {
  auto known = files.find(location);
  if (known != files.end())
    return known->second.bytes();
  Result<std::filesystem::path> path = pathOf(location, modelPath);
  if (!path)
    return path.takeError();
  Result<MappedFile> file = MappedFile::open(path->string());
  if (!file)
    return Error{"external data file '" + path->string() + "': " + file.error()};
  return files.emplace(location, std::move(*file)).first->second.bytes();
}

/// Without a length the tensor's own size is meant. The bound is compared without a sum, since offset and length come
/// from the file and may overflow together.
Result<std::string_view> ExternalData::find(const onnx::TensorProto &tensor, int64_t wanted) {
  std::string location;
  int64_t offset = 0, length = wanted;
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length")
      continue;
    Result<int64_t> number = parseNumber(entry.key(), entry.value());
    if (!number)
      return number.takeError();
    (entry.key() == "offset" ? offset : length) = *number;
  }
  if (length != wanted)
    return Error{"external data length is " + std::to_string(length) + " bytes but the shape needs " +
                 std::to_string(wanted)};
  Result<std::string_view> bytes = map(location);
  if (!bytes)
    return bytes;
  int64_t size = static_cast<int64_t>(bytes->size());
  if (offset > size || length > size - offset)
    return Error{"external data spans bytes " + std::to_string(offset) + " to " + std::to_string(offset) + "+" +
                 std::to_string(length) + " but '" + location + "' has " + std::to_string(size)};
  return bytes->substr(offset, length);
}

} // namespace sluice
