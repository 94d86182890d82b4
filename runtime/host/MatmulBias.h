// SPDX-License-Identifier: Apache-2.0
// The bias of a matrix product where no engine adds it on its way.
#pragma once

#include "runtime/kernels/MatmulShape.h"

namespace sluice {

/// A product is added to a matrix like the result, which may be its bytes, by the engine; to anything else by a loop.
class MatmulBias {
public:
  MatmulBias() = default;
  /// `row`: the engine adds a bias of one row.
  MatmulBias(const MatmulShape &shape, DataType result, bool row)
      : shape(shape), result(result), own(shape.ownBias || (shape.rowBias && !row)) {}

  /// Before the product: brings to c what it is added to, unless it is there already.
  void begin(const void *bias, void *c) const;
  /// Behind it: adds what the engine did not.
  void finish(const void *bias, void *c) const;

private:
  MatmulShape shape;
  DataType result = DataType::F32;
  bool own = false;
};

} // namespace sluice
