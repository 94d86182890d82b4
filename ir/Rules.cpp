// SPDX-License-Identifier: Apache-2.0
// See Rules.h.
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

RankedTensorType sluice::train::like(RankedTensorType type, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, type.getElementType(),
                               static_cast<int64_t>(shape.size()) == type.getRank() ? type.getEncoding() : Attribute());
}

bool sluice::train::positive(ArrayRef<int64_t> list, size_t count) {
  return list.size() == count && llvm::all_of(list, [](int64_t v) { return v > 0; });
}

bool sluice::train::nonNegative(ArrayRef<int64_t> list, size_t count) {
  return list.size() == count && llvm::all_of(list, [](int64_t v) { return v >= 0; });
}

int64_t sluice::train::saturatedProduct(ArrayRef<int64_t> factors) {
  int64_t product = 1;
  for (int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product))
      return std::numeric_limits<int64_t>::max();
  return product;
}

int64_t sluice::train::windowExtent(int64_t in, int64_t kernel, int64_t stride, int64_t before, int64_t after,
                                    int64_t dilation, bool ceil) {
  int64_t span = (kernel - 1) * dilation + 1, room = in + before + after - span;
  if (room < (ceil ? 1 - stride : 0)) // ceil_mode takes a window that is only begun
    return -1;
  int64_t out = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
  // With ceil_mode the last window must start inside the image or its leading padding (ONNX and PyTorch).
  if (ceil && (out - 1) * stride >= in + before)
    --out;
  return out;
}

LogicalResult sluice::train::sameShapes(Operation *op, ValueRange values) {
  for (Value value : values)
    if (extents(value) != extents(values.front())) // C1
      return op->emitOpError() << "has tensors of unlike shapes: " << values.front().getType() << " and "
                               << value.getType();
  return success();
}

bool sluice::train::compatibleTypes(TypeRange a, TypeRange b) {
  if (a.size() != b.size())
    return false;
  for (auto [x, y] : llvm::zip(a, b)) {
    auto s = cast<RankedTensorType>(x), t = cast<RankedTensorType>(y);
    if (s.getShape() != t.getShape() || (s.getElementType() != t.getElementType() && !(isReal(s) && isReal(t))))
      return false;
  }
  return true;
}

bool sluice::train::broadcast(ArrayRef<int64_t> a, ArrayRef<int64_t> b, SmallVectorImpl<int64_t> &out) {
  out.assign(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return false;
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return true;
}
