// SPDX-License-Identifier: Apache-2.0
// train.fused ops taken apart and put together. None of it changes what is computed of an element.
#pragma once

#include "ir/Train.h"

namespace sluice {

/// Whether `consumer` has a shape to run over once it computes itself what it reads of `producer`, from the latter's
/// `inputs`: what sums alone runs over that of an operand.
bool keepsDomain(train::FusedOp producer, mlir::ValueRange inputs, train::FusedOp consumer);

/// Whether one order of elements suits both: sums are taken with channels last, and what lies along several dimensions
/// of an image without having its rank is row-major.
bool shareOrder(train::FusedOp producer, train::FusedOp consumer);

/// Replaces both ops by one in the consumer's place, which keeps its domain, that computes what either did. Nothing but
/// the consumer may read the producer's results before that place; results that others read stay.
train::FusedOp mergeRegions(train::FusedOp producer, train::FusedOp consumer);

/// Sets train.rule to the names of the rules that scalars of the region come from, in order; a scalar's location is a
/// NameLoc of its rule around that of the op that it was made for.
void nameRules(train::FusedOp op);

/// What result `result` is computed from: full results of `op` that are `known`, where the way leads through them, and
/// operands.
llvm::SmallVector<mlir::Value> valuesBehind(train::FusedOp op, unsigned result, llvm::ArrayRef<unsigned> known);

/// Whether a random draw or the mean of a row is between these and the result.
bool tiedToPlace(train::FusedOp op, unsigned result, llvm::ArrayRef<unsigned> known);

/// A second op, at the builder's place, that computes these results of `op` alone, in this order (sums last), from
/// valuesBehind() them. Null where all of them are sums and no operand is left that has the shape that they are taken
/// over.
train::FusedOp cloneFor(mlir::OpBuilder &builder, train::FusedOp op, llvm::ArrayRef<unsigned> results,
                        llvm::ArrayRef<unsigned> known = {});

} // namespace sluice
