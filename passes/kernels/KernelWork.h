// SPDX-License-Identifier: Apache-2.0
// What a profile with samples knows an op's kernel by.
#pragma once

#include "passes/planner/Profile.h"

#include "mlir/IR/Operation.h"

#include <string>

namespace sluice {

/// The op's arithmetic and traffic, and the kind and sizes of the samples that are like it (those of
/// tools/Calibrate.cpp), in a step that touches so many bytes.
planner::Work workOf(mlir::Operation *op, int64_t touched);

} // namespace sluice
