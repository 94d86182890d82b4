// SPDX-License-Identifier: Apache-2.0
// Types in the runtime's terms, see RuntimeTypes.h; what codecs make of them is in Memory.cpp.
#include "ir/RuntimeTypes.h"

using namespace mlir;
using namespace sluice;

Shape sluice::shapeOf(RankedTensorType type) {
  assert(type.getRank() <= Shape::maxRank && "no verified op has such a type");
  Shape shape;
  for (int64_t extent : type.getShape())
    shape.append(extent);
  return shape;
}

// Shape, type and layout without an address: kernels are asked about such tensors while compiling.
Tensor sluice::tensorOf(RankedTensorType type) {
  Type element = type.getElementType();
  DataType data = element.isInteger(64)   ? DataType::I64
                  : element.isInteger(32) ? DataType::I32
                  : element.isInteger(8)  ? DataType::U8
                  : element.isInteger(1)  ? DataType::Bit
                  : element.isBF16()      ? DataType::BF16
                  : element.isF16()       ? DataType::F16
                                          : DataType::F32;
  Layout layout = train::layoutOf(type) == train::LayoutKind::NHWC ? Layout::NHWC : Layout::RowMajor;
  return device(0, shapeOf(type), layout, data);
}
