// SPDX-License-Identifier: Apache-2.0
// A tensor as generated programs name it: element type, physical layout, logical shape and a fixed place in one of the
// arenas. Plain constants; nothing here owns memory. Logical shapes are ONNX's (NCHW for images) whatever the layout.
#pragma once

// GCC before 12.3 fills whole 512-bit registers from constants like {1, 1, 0, 0, 0, 0, 0, 0} and so gives windows pads
// that nobody wrote. 256-bit vectors avoid that code, and measure as fast in kernels that wait for memory.
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__) && __GNUC__ * 100 + __GNUC_MINOR__ < 1203
#pragma GCC target("prefer-vector-width=256")
#endif

#include "runtime/StreamTable.h"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace sluice {

/// BF16: the upper half of a float, F16: IEEE's half, on cuda only; of activations. Bit: eight to a byte, the
/// element that is first in memory lowest, in whole 64-bit words; masks only.
enum class DataType : uint8_t { F32, BF16, F16, I64, I32, U8, Bit };

constexpr bool isHalf(DataType type) { return type == DataType::BF16 || type == DataType::F16; }

/// Bytes of one element. Not for Bit, whose elements have no byte of their own, and for which this is 4: ask
/// Tensor::bytes().
constexpr size_t byteWidth(DataType type) {
  return type == DataType::I64 ? 8 : isHalf(type) ? 2 : type == DataType::U8 ? 1 : 4;
}

/// RowMajor: last logical dimension fastest. NHWC: channels last; logical N,C,H,W stored as N,H,W,C, with one or three
/// spatial dimensions alike.
enum class Layout : uint8_t { RowMajor, NHWC };

/// The logical dimension at a place in memory, place 0 outermost.
constexpr int dimensionAt(int place, int rank, Layout layout) {
  if (layout == Layout::RowMajor || rank < 3 || place == 0)
    return place;
  return place == rank - 1 ? 1 : place + 1;
}

/// Up to six logical dimensions; rank 0 is a scalar.
struct Shape {
  static constexpr int maxRank = 6;
  int rank = 0;
  int64_t dims[maxRank] = {};

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> list) {
    for (int64_t d : list)
      append(d);
  }
  constexpr void append(int64_t extent) {
    assert(rank < maxRank && "a tensor has more dimensions than Shape holds");
    dims[rank++] = extent;
  }
  constexpr int64_t operator[](int i) const { return dims[i]; }
  constexpr int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i)
      n *= dims[i];
    return n;
  }
  constexpr bool operator==(const Shape &o) const {
    if (rank != o.rank)
      return false;
    for (int i = 0; i < rank; ++i)
      if (dims[i] != o.dims[i])
        return false;
    return true;
  }
};

/// Names bytes and owns none. Whether they lie within the arena is seen when Stream::address() is asked.
struct Tensor {
  size_t offset = 0; ///< bytes from the start of the arena
  Shape shape;
  DataType type = DataType::F32;
  Layout layout = Layout::RowMajor;
  Space space = Space::Device;
  bool present = false; ///< false: an optional operand that is not there, see `none`

  constexpr size_t bytes() const {
    const auto elements = static_cast<size_t>(shape.elements());
    return type == DataType::Bit ? (elements + 63) / 64 * 8 : elements * byteWidth(type);
  }
};

/// An absent optional operand (no bias).
constexpr Tensor none{};

constexpr Tensor slotIn(Space space, size_t offset, Shape shape, Layout layout = Layout::RowMajor,
                        DataType type = DataType::F32) {
  return {offset, shape, type, layout, space, true};
}
constexpr Tensor device(size_t offset, Shape shape, Layout layout = Layout::RowMajor, DataType type = DataType::F32) {
  return slotIn(Space::Device, offset, shape, layout, type);
}
constexpr Tensor host(size_t offset, Shape shape, Layout layout = Layout::RowMajor, DataType type = DataType::F32) {
  return slotIn(Space::Host, offset, shape, layout, type);
}
/// Scratch bytes of one kernel call.
constexpr Tensor scratch(size_t offset, int64_t bytes) {
  return {offset, {bytes}, DataType::U8, Layout::RowMajor, Space::Device, true};
}

/// The same bytes under another shape, layout or type.
constexpr Tensor as(Tensor tensor, Shape shape, Layout layout = Layout::RowMajor, DataType type = DataType::F32) {
  tensor.shape = shape, tensor.layout = layout, tensor.type = type;
  return tensor;
}

/// Every slot begins at a multiple of it in its arena, and what kernels take as a piece of a slot does so in the slot.
constexpr int64_t slotAlignment = 256;

/// What begins `first` bytes, a multiple of slotAlignment, into the tensor's; as() says what is there.
constexpr Tensor piece(Tensor tensor, size_t first) {
  tensor.offset += first;
  return tensor;
}

/// Tensors named one after the other, or held elsewhere; valid while what it was made from is.
struct TensorList {
  const Tensor *first = nullptr;
  size_t count = 0;
  TensorList(std::initializer_list<Tensor> list) : count(list.size()) { first = list.begin(); }
  TensorList(const Tensor *first, size_t count) : first(first), count(count) {}
  const Tensor *begin() const { return first; }
  const Tensor *end() const { return first + count; }
};

} // namespace sluice
