// SPDX-License-Identifier: Apache-2.0
// The safetensors format: 8 bytes header length, a JSON header with name, type, shape and byte range of every tensor,
// raw data. Weights, checkpoints and dumped gradients use it, so that Python reads and writes them too. Reading trusts
// nothing. Files that are written here carry checksums as metadata: "crc32c:NAME" of each tensor's bytes, "crc32c" of
// all other metadata; files without them are read unchecked.
#pragma once

#include "runtime/Tensor.h"
#include "runtime/files/Crc32c.h"
#include "runtime/files/File.h"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace sluice {

/// Free text in the header, keys and values.
using Metadata = std::map<std::string, std::string>;

class SafetensorsFile {
public:
  struct Entry {
    std::string type; ///< the file's word for it: "F32", "I64", ...
    std::vector<int64_t> dims;
    uint64_t offset, bytes; ///< in the file
    std::optional<uint32_t> checksum = std::nullopt;
  };

  /// Throws DataError unless header and byte ranges are consistent and cover the file without gap or overlap.
  explicit SafetensorsFile(const std::string &path);

  /// Throws DataError when there is no such tensor or its type or shape differ from what the program expects. The entry
  /// lives as long as the file.
  const Entry &find(const std::string &name, DataType type, const Shape &shape) const;
  /// Of any type and shape. Throws DataError when there is no such tensor.
  const Entry &find(const std::string &name) const;
  bool contains(const std::string &name) const { return entries.count(name) != 0; }
  const std::map<std::string, Entry> &tensors() const { return entries; }
  const Metadata &metadata() const { return freeText; }
  const std::string &path() const { return file.path(); }
  const InputFile &data() const { return file; }

private:
  void parseHeader(const std::string &header, uint64_t dataBegin);
  void checkCoverage(uint64_t dataBegin) const;
  void readChecksums();

  InputFile file;
  std::map<std::string, Entry> entries;
  Metadata freeText;
};

/// Reads one tensor from its first byte to its last, in pieces, and compares its checksum with the file's at the end.
class TensorReader {
public:
  /// Throws DataError as SafetensorsFile::find() does. The file must outlive this.
  TensorReader(const SafetensorsFile &file, const std::string &name, DataType type, const Shape &shape);

  /// The piece at byte `first`, which follows the one before. Throws DataError when the last one ends with a wrong
  /// checksum.
  void read(size_t first, void *to, size_t bytes);

private:
  const SafetensorsFile &file;
  const std::string name;
  const SafetensorsFile::Entry &entry;
  Crc32c sum;
  uint64_t done = 0;
};

/// The "format" in the metadata of a weights file that the compiler writes.
inline constexpr char weightsFormat[] = "sluice-weights-1";

/// One tensor to be written: `produce` is called once, in order, and hands its bytes (row-major) to `put` in pieces.
struct TensorToWrite {
  std::string name;
  DataType type;
  Shape shape;
  using Put = std::function<void(const void *data, size_t bytes)>;
  std::function<void(const Put &put)> produce;
};

/// Writes aside, syncs, renames: a former file of that name survives every failure. Throws DataError, and
/// std::logic_error where `produce` gives other bytes than its shape has.
void writeSafetensors(const std::string &path, const Metadata &metadata, const std::vector<TensorToWrite> &tensors);

} // namespace sluice
