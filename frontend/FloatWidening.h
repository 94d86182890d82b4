// SPDX-License-Identifier: Apache-2.0
// Models in half or double precision, as float32 models.
#ifndef SLUICE_FRONTEND_FLOAT_WIDENING_H
#define SLUICE_FRONTEND_FLOAT_WIDENING_H

#include "frontend/Limits.h"
#include "frontend/TensorIndex.h"

namespace onnx {
class ModelProto;
}

namespace sluice {

/// Whether the weights that widenFloats() would write anew fit the limit, each counted although several may be the same
/// bytes of a file; else an error that names the one that does not.
Status checkWidened(const onnx::ModelProto &model, const TensorIndex &tensors, const Limits &limits);

/// Makes every float16, bfloat16 and float64 of a model float32: inputs, outputs, weights, constants and what casts and
/// draws name, in subgraphs and functions too; models whose inputs and initializers have none of these types are left
/// alone. `tensors` knows the initializers; true when the model was changed, whose initializers must be looked up anew
/// then. Finite numbers beyond float32's become its largest ones.
bool widenFloats(onnx::ModelProto &model, const TensorIndex &tensors);

} // namespace sluice

#endif
