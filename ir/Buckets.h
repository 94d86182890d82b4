// SPDX-License-Identifier: Apache-2.0
// Buckets: a module may hold several steps, each with its evaluation: one for each of several sets of extents of the
// model's inputs (module attribute `train.buckets`), or one for each of several turns, which differ in their losses and
// in the parameters that they train (`train.turns`). They have the variables in common, and the arenas.
#pragma once

#include "ir/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::train {

/// One set of extents, or one turn. Both functions, and the programs that they become, bear these names.
struct Bucket {
  std::string name; ///< "tokens=128", "generator", for messages and reports; empty where there is only one
  std::string step, evaluate;
  int64_t repeats = 0;                  ///< of a turn: its steps before the next turn's; 0: it is a set of extents
  mlir::ArrayAttr trains = {};          ///< of a turn: symbols of the parameters that its step changes, no others
  mlir::DictionaryAttr attributes = {}; ///< of a turn: what a module without turns says of its outputs and losses
};

/// From the smallest to the largest, or turns in their order. The last one's functions are @step and @evaluate, and the
/// module's own attributes of outputs and losses are those of the last turn. Without either attribute there is one.
std::vector<Bucket> bucketsOf(mlir::ModuleOp module);

/// Sets of extents or turns, not both.
void setBuckets(mlir::ModuleOp module, llvm::ArrayRef<Bucket> buckets);

bool hasTurns(mlir::ModuleOp module);

/// The list of a module's outputs, see outputsOf().
constexpr const char *outputsAttribute = "train.outputs";

/// An attribute of outputs or losses as it is for this bucket's functions; null: there is none.
mlir::Attribute attributeOf(mlir::ModuleOp module, const Bucket &bucket, llvm::StringRef name);

/// The decode step of a module (build-decode), a function that computes one token of each text of a batch.
struct DecodeStep {
  std::string function;
  int64_t output = 0; ///< the number among outputsOf() of the scores that it returns, and nothing else
};
/// None where the module has none.
std::optional<DecodeStep> decodeStepOf(mlir::ModuleOp module);
void setDecodeStep(mlir::ModuleOp module, const DecodeStep &step);
/// The variable that holds the place of each text's token, I64 [batch].
constexpr llvm::StringRef placesName = "train/places";

/// The training steps that the module still has as functions, the largest first, or the last turn's.
llvm::SmallVector<mlir::func::FuncOp> stepsOf(mlir::ModuleOp module);

/// Whether a step changes a variable: a parameter, and in a turn one of its own.
class TrainedBy {
public:
  TrainedBy(mlir::ModuleOp module, llvm::StringRef step);
  bool operator()(VariableOp variable) const;
  bool isOfTurn() const { return own.has_value(); }

private:
  std::optional<llvm::DenseSet<mlir::StringAttr>> own; ///< symbols; nothing: all parameters
};

/// " of bucket 'tokens=128'", " of turn 'generator'", for messages about a function; empty where there is only one.
std::string ofBucket(mlir::ModuleOp module, llvm::StringRef function);

} // namespace sluice::train
