// SPDX-License-Identifier: Apache-2.0
// Types of tensors in the runtime's terms.
#pragma once

#include "ir/Train.h"
#include "runtime/Attention.h"
#include "runtime/Codec.h"

#include <string>

namespace sluice {

/// A type in the runtime's terms; of an addressable one, see train::isAddressable().
Shape shapeOf(mlir::RankedTensorType type);
Tensor tensorOf(mlir::RankedTensorType type);

/// What a codec makes of a tensor: the mask of floats, or a vector of i8. Null without a codec and for pools' indices
/// and counters, of other elements than f32 for fp16 (halves are half as large already), and of vectors for all but
/// masks.
mlir::RankedTensorType packedType(mlir::RankedTensorType raw, Codec codec);

/// The codec of this name if copies can apply it, and the names of all such.
std::optional<Codec> codecOfCopies(llvm::StringRef name);
std::string codecsOfCopies();

} // namespace sluice
