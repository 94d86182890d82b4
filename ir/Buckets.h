// SPDX-License-Identifier: Apache-2.0
// Buckets of shapes: a module may hold a step and an evaluation for each of several sets of extents of the model's
// inputs. They have the variables in common, and the arenas. The module attribute `train.buckets` lists them.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace sluice::train {

/// One set of extents. Both functions, and the programs that they become, bear these names.
struct Bucket {
  std::string name; ///< "tokens=128", for messages and reports; empty where there is only one
  std::string step, evaluate;
};

/// From the smallest to the largest, whose functions are @step and @evaluate. Without the attribute there is one.
std::vector<Bucket> bucketsOf(mlir::ModuleOp module);

void setBuckets(mlir::ModuleOp module, llvm::ArrayRef<Bucket> buckets);

/// The training steps that the module still has as functions, the largest first.
llvm::SmallVector<mlir::func::FuncOp> stepsOf(mlir::ModuleOp module);

/// " of bucket 'tokens=128'", for messages about a function; empty where there is only one bucket.
std::string ofBucket(mlir::ModuleOp module, llvm::StringRef function);

} // namespace sluice::train
