// SPDX-License-Identifier: Apache-2.0
// Construction of host tensors, from the file's bytes among others, and shape helpers.
#include "frontend/HostTensor.h"
#include "onnx/onnx_pb.h"
#include <algorithm>
#include <cstring>
#include <limits>

namespace sluice {
namespace {

template <typename T, typename Values> void copyBytes(std::string_view bytes, Values &values) {
  values.reserve(bytes.size() / sizeof(T));
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    values.push_back(static_cast<typename Values::value_type>(value));
  }
}

} // namespace

HostTensor HostTensor::vector(std::vector<int64_t> values) {
  HostTensor tensor;
  tensor.shape = {static_cast<int64_t>(values.size())};
  tensor.ints = std::move(values);
  return tensor;
}

HostTensor HostTensor::scalar(int64_t value) {
  HostTensor tensor;
  tensor.ints = {value};
  return tensor;
}

bool HostTensor::fits(const std::vector<int64_t> &shape) {
  int64_t product = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || extent > maximumElements)
      return false;
    product *= std::max<int64_t>(extent, 1);
    if (product > maximumElements)
      return false;
  }
  return shape.size() <= maximumRank;
}

std::optional<HostTensor> HostTensor::zeros(std::vector<int64_t> shape, bool integral) {
  if (!fits(shape))
    return std::nullopt;
  int64_t count = *elementCount(shape);
  HostTensor tensor;
  tensor.shape = std::move(shape);
  tensor.integral = integral;
  if (integral)
    tensor.ints.assign(count, 0);
  else
    tensor.floats.assign(count, 0);
  return tensor;
}

std::optional<HostTensor> HostTensor::from(const FileTensor &tensor) {
  if (tensor.stored || !fits(tensor.shape))
    return std::nullopt;
  HostTensor copy;
  copy.shape = tensor.shape;
  switch (tensor.elementType) {
  case onnx::TensorProto::INT64:
    copyBytes<int64_t>(tensor.bytes, copy.ints);
    return copy;
  case onnx::TensorProto::INT32:
    copyBytes<int32_t>(tensor.bytes, copy.ints);
    return copy;
  case onnx::TensorProto::BOOL:
  case onnx::TensorProto::UINT8:
    copyBytes<uint8_t>(tensor.bytes, copy.ints);
    return copy;
  case onnx::TensorProto::INT8:
    copyBytes<int8_t>(tensor.bytes, copy.ints);
    return copy;
  case onnx::TensorProto::INT16:
    copyBytes<int16_t>(tensor.bytes, copy.ints);
    return copy;
  case onnx::TensorProto::UINT16:
    copyBytes<uint16_t>(tensor.bytes, copy.ints);
    return copy;
  case onnx::TensorProto::FLOAT:
    copy.integral = false;
    copyBytes<float>(tensor.bytes, copy.floats);
    return copy;
  case onnx::TensorProto::DOUBLE:
    copy.integral = false;
    copyBytes<double>(tensor.bytes, copy.floats);
    return copy;
  default:
    return std::nullopt;
  }
}

int64_t toInteger(double number) {
  constexpr double limit = 9223372036854775808.0; // 2^63
  if (!(number >= -limit))
    return std::numeric_limits<int64_t>::min();
  return number < limit ? static_cast<int64_t>(number) : std::numeric_limits<int64_t>::max();
}

void HostTensor::set(int64_t i, const HostTensor &from, int64_t j) {
  if (integral)
    ints[i] = from.integral ? from.ints[j] : toInteger(from.floats[j]);
  else
    floats[i] = from.number(j);
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<int64_t> elementCount(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
      return std::nullopt;
  return count;
}

std::optional<std::vector<int64_t>> broadcastShapes(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
  std::vector<int64_t> shape(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return std::nullopt;
    shape[shape.size() - 1 - i] = x == 1 ? y : x;
  }
  return shape;
}

/// From the last dimension on, as numpy aligns shapes; extents of 1 are read again and again.
int64_t broadcastIndex(int64_t at, const std::vector<int64_t> &full, const std::vector<int64_t> &shape) {
  int64_t index = 0, stride = 1;
  for (size_t i = 0; i < full.size(); ++i) {
    int64_t extent = full[full.size() - 1 - i], position = at % extent;
    at /= extent;
    if (i >= shape.size())
      continue;
    int64_t own = shape[shape.size() - 1 - i];
    index += own == 1 ? 0 : position * stride;
    stride *= own;
  }
  return index;
}

} // namespace sluice
