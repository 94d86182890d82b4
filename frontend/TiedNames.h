// SPDX-License-Identifier: Apache-2.0
// Names that PyTorch's state_dict has for one tensor: modules may share a parameter (`transformer.wte.weight` is
// `lm_head.weight`, too), of which a file keeps one name. No MLIR in here.
#ifndef SLUICE_FRONTEND_TIED_NAMES_H
#define SLUICE_FRONTEND_TIED_NAMES_H

#include <map>
#include <string>
#include <vector>

namespace onnx {
class GraphProto;
}

namespace sluice {

struct OnnxGraph;

/// The other names of initializers, by their own, in the order in which the graph's live nodes read them. They follow
/// from who reads a parameter: a node of a layer of torch.nn that has such a parameter (torch.export says which module
/// and class a node is of), or a module without modules in it whose nodes are a layer's (PyTorch's legacy exporter says
/// the module in the node's name). A name that is a tensor's own is none. What nobody reads under its other name, as
/// some biases, the file does not tell.
std::map<std::string, std::vector<std::string>> tiedNames(const onnx::GraphProto &proto, const OnnxGraph &graph);

} // namespace sluice

#endif
