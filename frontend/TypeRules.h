// SPDX-License-Identifier: Apache-2.0
// ONNX's rules for the element types of operands, which its checker asks of inferred types alone.
#ifndef SLUICE_FRONTEND_TYPE_RULES_H
#define SLUICE_FRONTEND_TYPE_RULES_H

#include "runtime/Result.h"
#include <cstdint>

namespace onnx {
class ModelProto;
}

namespace sluice {

/// Refuses nodes, in bodies too, whose operands of one type variable have two element types, or that read integers,
/// truth values or strings where the op knows none. The error names the node, both operands and both types. Values of
/// functions and of other domains have unknown types, which fit everywhere.
Status checkElementTypes(const onnx::ModelProto &model, int64_t opset);

} // namespace sluice

#endif
