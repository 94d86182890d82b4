// SPDX-License-Identifier: Apache-2.0
// Turns the arguments that programs give into inputs as the model's nodes read them.
#ifndef SLUICE_FRONTEND_BOUND_INPUTS_H
#define SLUICE_FRONTEND_BOUND_INPUTS_H

#include "frontend/NodeImport.h"

namespace sluice {

/// Integers of all widths, and truth values, are int64 in a program.
bool isInteger(const GraphInput &input);

/// Notes an input as the nodes read it: truth values are numbers from the start, 1 whatever byte says true; so are
/// integers whose samples lie elsewhere, for kernels move floats alone. `argument`: of GraphInput::programShape.
void bindInput(FunctionImport &state, const GraphInput &input, mlir::Value argument);

} // namespace sluice

#endif
