// SPDX-License-Identifier: Apache-2.0
// ONNX element types: names for messages and sizes in bytes.
#ifndef SLUICE_FRONTEND_ELEMENT_TYPES_H
#define SLUICE_FRONTEND_ELEMENT_TYPES_H

#include <cstdint>
#include <string>

namespace sluice {

/// Name of an onnx::TensorProto::DataType as PyTorch and ONNX users write it, e.g. "float32".
std::string elementTypeName(int32_t elementType);
/// Bytes of one element; 0 for types without a fixed whole number of bytes (strings, 4-bit integers).
int64_t elementSize(int32_t elementType);
/// int4 and uint4, of which two lie in a byte, the first in its lower half.
bool isHalfByte(int32_t elementType);
/// Real numbers of any precision, which are float32 here.
bool isFloatType(int64_t elementType);

} // namespace sluice

#endif
