// SPDX-License-Identifier: Apache-2.0
// The JSON header of a safetensors file, as it stands there: types and ranges are not yet looked at.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sluice {

struct SafetensorsHeader {
  struct Tensor {
    std::string type;
    std::vector<int64_t> dims;
    int64_t begin, end; ///< 0 <= begin <= end
  };
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// No file has more: the largest models have some ten thousand in all their files.
inline constexpr size_t mostSafetensors = size_t{1} << 18;

/// Takes time and memory in proportion to the header. Throws DataError that begins with `path` unless it is one flat
/// object of entries without duplicate keys, each with dtype, shape and data_offsets alone, but for __metadata__, an
/// object of strings.
SafetensorsHeader readSafetensorsHeader(const std::string &header, const std::string &path);

} // namespace sluice
