// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic as exporters write it, evaluated on small host tensors: Gather, Concat, Slice, Cast, Range, Where
// and their kin. Shape itself belongs to the importer, which knows the types.
#ifndef SLUICE_FRONTEND_CONSTANT_FOLDING_H
#define SLUICE_FRONTEND_CONSTANT_FOLDING_H

#include "frontend/HostTensor.h"
#include "runtime/Result.h"
#include <vector>

namespace onnx {
class NodeProto;
}

namespace sluice {

using HostInputs = std::vector<const HostTensor *>; // null: an optional input that is absent

/// Whether the op is among those that foldNode evaluates.
bool isFoldable(const std::string &opType);

/// The first output of `node` on known inputs. Only for foldable ops, with no null among the inputs that the op needs.
/// Of kind TooLarge where a result is too large to fold, which a step may compute nevertheless.
Result<HostTensor> foldNode(const onnx::NodeProto &node, int64_t opset, const HostInputs &inputs);

} // namespace sluice

#endif
