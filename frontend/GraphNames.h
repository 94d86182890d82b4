// SPDX-License-Identifier: Apache-2.0
// Names in a graph: what ONNX's checker leaves to be looked at. No MLIR in here.
#ifndef SLUICE_FRONTEND_GRAPH_NAMES_H
#define SLUICE_FRONTEND_GRAPH_NAMES_H

#include "runtime/Result.h"

namespace onnx {
class GraphProto;
}

namespace sluice {

/// That nothing is defined twice, and that something defines each output.
Status checkNames(const onnx::GraphProto &graph);
/// That names are text which files of tensors hold.
Status checkText(const onnx::GraphProto &graph);

} // namespace sluice

#endif
