// SPDX-License-Identifier: Apache-2.0
// Header rules checked here: at most 100 MB (the reference implementation's limit), known element widths, sizes without
// overflow, byte ranges that tile the data exactly. Its JSON is SafetensorsHeader's.

#include "runtime/files/Safetensors.h"

#include "runtime/Numbers.h"
#include "runtime/files/Npy.h"
#include "runtime/files/OutputFile.h"
#include "runtime/files/SafetensorsHeader.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace sluice {

using Json = nlohmann::json;

static const char *fileType(DataType type) {
  switch (type) {
  case DataType::F32:
    return "F32";
  case DataType::I64:
    return "I64";
  case DataType::I32:
    return "I32";
  case DataType::U8:
    return "U8";
  case DataType::BF16: // of frozen weights
    return "BF16";
  case DataType::F16:
  case DataType::Bit:
    break; // activations and masks never leave a step
  }
  return "?";
}

static uint64_t elementBytes(const std::string &type) {
  static const std::map<std::string, uint64_t> widths = {{"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"I16", 2}, {"U16", 2},
                                                         {"F16", 2},  {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},
                                                         {"F64", 8},  {"I64", 8},  {"U64", 8}};
  auto width = widths.find(type);
  return width == widths.end() ? 0 : width->second;
}

static constexpr char sumKey[] = "crc32c";

static std::vector<int64_t> dimsOf(const Shape &shape) { return {shape.dims, shape.dims + shape.rank}; }

/// Files of PyTorch: zip archives, and pickles of protocol 2 to 5 before it wrote such.
static void refuseTorch(const std::string &path, const unsigned char *begin) {
  const bool zip = std::memcmp(begin, "PK\x03\x04", 4) == 0,
             pickle = begin[0] == 0x80 && begin[1] >= 2 && begin[1] <= 5;
  if (zip || pickle)
    throw DataError(text(path, ": not a safetensors file but a ", zip ? "zip archive" : "pickle",
                         ", as torch.save writes it: save the state_dict by safetensors.torch.save_file("
                         "model.state_dict(), \"NAME.safetensors\")"));
}

SafetensorsFile::SafetensorsFile(const std::string &path) : file(path) {
  unsigned char start[8];
  if (file.size() < sizeof start)
    throw DataError(text(path, ": not a safetensors file: only ", file.size(), " bytes long"));
  file.readAt(0, start, sizeof start);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | start[i];
  if (length > 100000000 || length > file.size() - sizeof start) {
    refuseTorch(path, start);
    throw DataError(text(path, ": bad safetensors header: its length ", length, " is above 100000000 or the file's ",
                         file.size(), " bytes"));
  }
  std::string header(length, '\0');
  file.readAt(sizeof start, header.data(), length);
  parseHeader(header, sizeof start + length);
  readChecksums();
  checkCoverage(sizeof start + length);
}

void SafetensorsFile::parseHeader(const std::string &header, uint64_t dataBegin) {
  SafetensorsHeader parsed = readSafetensorsHeader(header, path());
  freeText = std::move(parsed.metadata);
  const uint64_t available = file.size() - dataBegin;
  for (auto &[name, tensor] : parsed.tensors) {
    auto fail = [&, &name = name](const std::string &what) {
      throw DataError(text(path(), ": tensor '", name, "': ", what));
    };
    Entry entry{std::move(tensor.type), std::move(tensor.dims), dataBegin + static_cast<uint64_t>(tensor.begin),
                static_cast<uint64_t>(tensor.end - tensor.begin)};
    uint64_t bytes = elementBytes(entry.type);
    if (bytes == 0)
      fail("element type '" + entry.type + "' is not known");
    for (int64_t dim : entry.dims)
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
        fail("shape " + numpyShape(entry.dims) + " is too large");
    if (entry.bytes != bytes)
      fail(text("shape ", numpyShape(entry.dims), " of ", entry.type, " takes ", bytes,
                " bytes, its data_offsets span ", entry.bytes));
    if (static_cast<uint64_t>(tensor.end) > available)
      fail(text("ends at byte ", tensor.end, " of the data, the file holds ", available));
    entries.emplace_hint(entries.end(), name, std::move(entry));
  }
}

void SafetensorsFile::checkCoverage(uint64_t dataBegin) const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto &[name, entry] : entries)
    ranges.emplace_back(entry.offset, entry.offset + entry.bytes);
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = dataBegin;
  for (const auto &[begin, end] : ranges) {
    if (begin != at)
      throw DataError(text(path(), ": a tensor's data begin at byte ", begin, ", the one before ends at ", at));
    at = end;
  }
  if (at != file.size())
    throw DataError(text(path(), ": the tensors end at byte ", at, ", the file at ", file.size()));
}

/// 8 hexadecimal digits.
static std::string hexOf(uint32_t sum) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%08x", sum);
  return digits;
}

/// Of all metadata but itself, as JSON in the order of the keys.
static std::string metadataSum(Metadata metadata) {
  metadata.erase(sumKey);
  const std::string text = Json(metadata).dump(-1, ' ', false, Json::error_handler_t::replace);
  Crc32c sum;
  sum.add(text.data(), text.size());
  return hexOf(sum.value());
}

void SafetensorsFile::readChecksums() {
  const auto whole = freeText.find(sumKey);
  const std::string prefix = std::string(sumKey) + ":";
  auto damaged = [&](const std::string &what) { throw DataError(text(path(), ": the file is damaged: ", what)); };
  if (whole != freeText.end() && whole->second != metadataSum(freeText))
    damaged(text("the checksum of its metadata is ", metadataSum(freeText), ", it says ", whole->second));
  for (const auto &[key, value] : freeText) {
    if (key.compare(0, prefix.size(), prefix) != 0)
      continue;
    const auto tensor = entries.find(key.substr(prefix.size()));
    uint32_t sum = 0;
    if (whole == freeText.end() || tensor == entries.end() || !parseNumber(value, sum, 16))
      damaged(text("'", key, "' is '", value, "'", whole == freeText.end() ? " and there is no 'crc32c'" : ""));
    tensor->second.checksum = sum;
  }
}

TensorReader::TensorReader(const SafetensorsFile &file, const std::string &name, DataType type, const Shape &shape)
    : file(file), name(name), entry(file.find(name, type, shape)) {}

void TensorReader::read(size_t first, void *to, size_t bytes) {
  if (first != done)
    throw std::logic_error(text("tensor '", name, "' is read from byte ", first, " after ", done));
  file.data().readAt(entry.offset + first, to, bytes);
  sum.add(to, bytes);
  done += bytes;
  if (done == entry.bytes && entry.checksum && *entry.checksum != sum.value())
    throw DataError(text(file.path(), ": the file is damaged: the checksum of tensor '", name, "' is ",
                         hexOf(sum.value()), ", the file says ", hexOf(*entry.checksum)));
}

const SafetensorsFile::Entry &SafetensorsFile::find(const std::string &name) const {
  auto found = entries.find(name);
  if (found == entries.end())
    throw DataError(text(path(), ": there is no tensor '", name, "'"));
  return found->second;
}

const SafetensorsFile::Entry &SafetensorsFile::find(const std::string &name, DataType type, const Shape &shape) const {
  const Entry &entry = find(name);
  if (entry.type != fileType(type) || entry.dims != dimsOf(shape))
    throw DataError(text(path(), ": tensor '", name, "' is ", entry.type, " ", numpyShape(entry.dims),
                         ", this program has ", fileType(type), " ", numpyShape(dimsOf(shape))));
  return entry;
}

/// Header as bytes, padded with spaces so that the data begin at a multiple of 8.
static std::string encodeHeader(const std::string &path, Metadata metadata, const std::vector<TensorToWrite> &tensors,
                                const std::vector<uint32_t> &sums) {
  Json json = Json::object();
  for (size_t i = 0; i < tensors.size(); ++i)
    metadata[text(sumKey, ":", tensors[i].name)] = hexOf(sums[i]);
  metadata[sumKey] = metadataSum(metadata);
  json["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const TensorToWrite &tensor : tensors) {
    uint64_t end = offset + static_cast<uint64_t>(tensor.shape.elements()) * byteWidth(tensor.type);
    if (json.contains(tensor.name))
      throw DataError(text(path, ": two tensors are named '", tensor.name, "'"));
    json[tensor.name] = {
        {"dtype", fileType(tensor.type)}, {"shape", dimsOf(tensor.shape)}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string header = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

void writeSafetensors(const std::string &path, const Metadata &metadata, const std::vector<TensorToWrite> &tensors) {
  OutputFile file(path);
  std::vector<uint32_t> sums(tensors.size(), 0);
  std::string header = encodeHeader(path, metadata, tensors, sums);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<unsigned char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  file.write(length, sizeof length);
  file.write(header.data(), header.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorToWrite &tensor = tensors[i];
    Crc32c sum;
    size_t left = static_cast<size_t>(tensor.shape.elements()) * byteWidth(tensor.type);
    tensor.produce([&](const void *data, size_t bytes) {
      if (bytes > left)
        throw std::logic_error(text("tensor '", tensor.name, "' produced more bytes than its shape has"));
      file.write(data, bytes);
      sum.add(data, bytes);
      left -= bytes;
    });
    if (left != 0)
      throw std::logic_error(text("tensor '", tensor.name, "' produced ", left, " bytes less than its shape has"));
    sums[i] = sum.value();
  }
  header = encodeHeader(path, metadata, tensors, sums); // as long as before: a checksum has eight digits
  file.writeAt(sizeof length, header.data(), header.size());
  file.commit();
}

} // namespace sluice
