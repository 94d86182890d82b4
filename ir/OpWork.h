// SPDX-License-Identifier: Apache-2.0
// What an op does in the terms in which kernels are measured: profiles hold the rates of such kernels by size.
#pragma once

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <variant>

namespace sluice {

enum class ConvPass; // runtime/Kernels.h

/// Kernels that wait for memory.
struct MemoryWork {
  enum Kind { Elementwise, Norm, Pool, PoolBackward };
  Kind kind = Elementwise;
};

/// A product of [rows,inner] and [inner,columns], or several such.
struct ProductWork {
  int64_t rows = 0, inner = 0, columns = 0;
};

/// A pass of attention: each member has so many rows and keys of so many numbers.
struct AttentionWork {
  bool backward;
  int64_t rows = 0, keys = 0, depth = 0;
};

/// A pass of a convolution: weights [O,C/groups,k...], y [N,O,d...], and the strides of its two or three dimensions.
struct ConvWork {
  ConvPass pass;
  llvm::SmallVector<int64_t, 5> weights, y, strides;
  int64_t groups = 1;
};

using OpWork = std::variant<MemoryWork, ProductWork, AttentionWork, ConvWork>;

} // namespace sluice
