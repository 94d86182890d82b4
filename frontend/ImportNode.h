// SPDX-License-Identifier: Apache-2.0
// From a node to what imports it: constants and shapes, aliases, what folds, then the tables of the families.
#ifndef SLUICE_FRONTEND_IMPORT_NODE_H
#define SLUICE_FRONTEND_IMPORT_NODE_H

#include "frontend/NodeImport.h"

namespace sluice {

/// A tensor of the file as a source of variables; a constant where it is one of those that are held.
Source initializerSource(const std::string &name, const FileTensor &tensor, const std::map<std::string, Hold> &held);

/// Gives the node's results their values; after a failure the reason is in node.shared().error, if there is one. A
/// folded result that equals an earlier one shares its value: masks, which each layer of an export computes again, are
/// large.
mlir::LogicalResult importNode(NodeImport &node);

} // namespace sluice

#endif
