// SPDX-License-Identifier: Apache-2.0
// Import and backward graph, and the counts of a model that has both.
#include "tools/Check.h"

#include "frontend/OnnxGraph.h"
#include "frontend/Refusals.h"
#include "ir/Train.h"
#include "onnx/onnx_pb.h"
#include "runtime/Printable.h"
#include "tools/Compilation.h"
#include "tools/Failure.h"

#include <iostream>
#include <set>

using namespace mlir;

namespace sluice {

/// "68 nodes, 9 ops": what the first output needs, functions inlined.
static std::string nodesOf(const OnnxGraph &graph) {
  std::set<std::string> ops;
  for (const onnx::NodeProto *node : graph.nodes)
    ops.insert(node->op_type());
  return counted(graph.nodes.size(), "node") + ", " + counted(ops.size(), "op");
}

static std::string parametersOf(ModuleOp module) {
  int64_t parameters = 0, elements = 0, states = 0;
  for (auto variable : module.getOps<train::VariableOp>()) {
    const bool trained = variable.getRole() == train::Role::Parameter;
    parameters += trained;
    elements += trained ? cast<RankedTensorType>(variable.getType()).getNumElements() : 0;
    states += variable.getRole() == train::Role::State;
  }
  return counted(parameters, "parameter") + " of " + counted(elements, "element") + ", " + counted(states, "state");
}

/// Open dimensions are assumed, since most models have some and a check should need no flags. The training graph is
/// built as well: an op without a gradient is only met there.
int checkModel(const DriverOptions &options, OnnxFile &file) {
  Compilation compilation;
  TrainingSpec spec = options.spec;
  spec.assumesOpen = true;
  // What was assumed may be why a model is refused.
  const auto notes = [&] {
    std::vector<std::string> lines = compilation.notes();
    for (const std::string &remark : compilation.remarks())
      lines.push_back(remark);
    return lines;
  };
  if (Status imported = compilation.import(file, spec, options.buckets); !imported)
    return fail("sluicec", 1, imported.error(), notes());
  const std::string parameters = parametersOf(compilation.module());
  if (!compilation.run(Level::Training, options.pipeline))
    return fail("sluicec", compilation.exitStatus(), options.model + ": " + compilation.error(), notes());
  const Result<OnnxGraph> graph = OnnxGraph::build(file, spec);
  if (!graph) // the import has built it, too
    return fail("sluicec", 4, options.model + ": " + graph.error());
  printNotes("sluicec", compilation.remarks());
  std::cout << printable(options.model) << ": " << nodesOf(*graph) << ", all supported; " << parameters << "\n";
  return 0;
}

} // namespace sluice
