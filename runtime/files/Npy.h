// SPDX-License-Identifier: Apache-2.0
// NumPy .npy files, format versions 1 to 3: one array in row-major order. The header is untrusted: everything that the
// readers below rely on is checked when the file is opened.
#pragma once

#include "runtime/Tensor.h"
#include "runtime/files/File.h"

#include <vector>

namespace sluice {

class NpyFile {
public:
  /// Throws DataError unless the file is a complete little-endian float32, int64, int32, uint8 or bool array in C
  /// order.
  explicit NpyFile(const std::string &path);
  /// The same of bytes [begin, end) of a file; `name` is what messages call them.
  NpyFile(InputFile file, uint64_t begin, uint64_t end, const std::string &name);
  /// An array without a header, from byte `begin` on. The caller knows that the file has all of it.
  NpyFile(InputFile file, uint64_t begin, DataType type, const std::vector<int64_t> &shape, const std::string &name,
          bool booleans = false);

  /// Booleans are U8.
  DataType type() const { return dataType; }
  bool isBoolean() const { return booleans; }
  /// The type as NumPy calls it.
  const char *elementName() const;
  /// Any rank from 0 up; dims are >= 0.
  const std::vector<int64_t> &shape() const { return dims; }
  /// Bytes of one index of the first dimension.
  size_t sampleBytes() const { return oneSample; }
  /// Reads samples [first, first + count) as they lie in the file.
  void read(int64_t first, int64_t count, void *to) const;
  const std::string &path() const { return name; }

private:
  void parseHeader(const std::string &header);

  InputFile file;
  std::string name;
  uint64_t begin = 0, end = 0; ///< of the whole in the file
  DataType dataType = DataType::F32;
  bool booleans = false;
  std::vector<int64_t> dims;
  uint64_t dataOffset = 0;
  size_t oneSample = 0;
};

/// A one-dimensional array of whole numbers of any width, as a .npy file has it.
struct NpyIntegers {
  int width = 0; ///< bytes of one, low byte first
  bool isSigned = false;
  uint64_t begin = 0; ///< of the first, in the file
  int64_t count = 0;
};

/// Whether the file begins as a .npy file does.
bool isNpy(const InputFile &file);
/// Throws DataError unless the file is one of such an array, and whole.
NpyIntegers readNpyIntegers(const InputFile &file);

/// "float32", as NumPy writes it.
const char *typeName(DataType type);
/// "(16, 3, 32, 32)", as NumPy writes it.
std::string numpyShape(const std::vector<int64_t> &dims);

} // namespace sluice
