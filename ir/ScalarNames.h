// SPDX-License-Identifier: Apache-2.0
// What generated kernels call the scalars of a fused region: operands and results as their ops declare them, and what a
// rule names itself. A name lies in the scalar's location, so that it changes neither what is computed nor what is
// equal.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"

namespace sluice::train {

/// `loc` with a name. Nothing else makes locations of this kind, so that no name of a model is taken for one.
inline mlir::Location withScalarName(mlir::Location loc, llvm::StringRef name) {
  mlir::MLIRContext *context = loc.getContext();
  return mlir::FusedLoc::get(context, {loc}, mlir::StringAttr::get(context, name));
}

/// Empty when there is none.
inline llvm::StringRef scalarName(mlir::Location loc) {
  auto named = mlir::dyn_cast<mlir::FusedLocWith<mlir::StringAttr>>(loc);
  return named ? named.getMetadata().getValue() : llvm::StringRef();
}

inline mlir::Location withoutScalarName(mlir::Location loc) {
  return scalarName(loc).empty() ? loc : mlir::cast<mlir::FusedLoc>(loc).getLocations().front();
}

} // namespace sluice::train
