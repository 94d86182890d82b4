// SPDX-License-Identifier: Apache-2.0
// One table of ONNX element types.
#include "frontend/ElementTypes.h"
#include "frontend/OnnxFile.h"
#include "onnx/onnx_pb.h"

namespace sluice {
namespace {

struct ElementType {
  int32_t code;
  const char *name;
  int64_t size;
};

constexpr ElementType types[] = {
    {onnx::TensorProto::FLOAT, "float32", 4},
    {onnx::TensorProto::UINT8, "uint8", 1},
    {onnx::TensorProto::INT8, "int8", 1},
    {onnx::TensorProto::UINT16, "uint16", 2},
    {onnx::TensorProto::INT16, "int16", 2},
    {onnx::TensorProto::INT32, "int32", 4},
    {onnx::TensorProto::INT64, "int64", 8},
    {onnx::TensorProto::STRING, "string", 0},
    {onnx::TensorProto::BOOL, "bool", 1},
    {onnx::TensorProto::FLOAT16, "float16", 2},
    {onnx::TensorProto::DOUBLE, "float64", 8},
    {onnx::TensorProto::UINT32, "uint32", 4},
    {onnx::TensorProto::UINT64, "uint64", 8},
    {onnx::TensorProto::COMPLEX64, "complex64", 8},
    {onnx::TensorProto::COMPLEX128, "complex128", 16},
    {onnx::TensorProto::BFLOAT16, "bfloat16", 2},
    {onnx::TensorProto::UINT4, "uint4", 0},
    {onnx::TensorProto::INT4, "int4", 0},
};

const ElementType *find(int32_t code) {
  for (const ElementType &type : types)
    if (type.code == code)
      return &type;
  return nullptr;
}

} // namespace

std::string elementTypeName(int32_t elementType) {
  const ElementType *type = find(elementType);
  return type ? type->name : "element type " + std::to_string(elementType);
}

int64_t elementSize(int32_t elementType) {
  const ElementType *type = find(elementType);
  return type ? type->size : 0;
}

bool isFloatType(int64_t elementType) {
  return elementType == onnx::TensorProto::FLOAT || elementType == onnx::TensorProto::DOUBLE ||
         elementType == onnx::TensorProto::FLOAT16 || elementType == onnx::TensorProto::BFLOAT16;
}

bool isHalfByte(int32_t elementType) {
  return elementType == onnx::TensorProto::INT4 || elementType == onnx::TensorProto::UINT4;
}

bool tensorBytes(int32_t elementType, const std::vector<int64_t> &shape, int64_t &bytes) {
  const bool halves = isHalfByte(elementType);
  bytes = halves ? 1 : elementSize(elementType);
  if (bytes == 0)
    return false;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
      return false;
  bytes = halves ? bytes / 2 + bytes % 2 : bytes;
  return true;
}

} // namespace sluice
