// SPDX-License-Identifier: Apache-2.0
// Builds the kernel objects of ir/KernelTable.h and asks for their workspaces.
#include "passes/HostKernels.h"

#include "runtime/Fused.h"

using namespace sluice;

namespace {

Shape runtimeArgument(const ShapeArgument &argument) { return argument.shape; }
Tensor runtimeArgument(const TensorArgument &argument) { return argument.tensor; }
template <typename T> T runtimeArgument(T argument) { return argument; }

struct LargestWorkspace {
  const char *node;
  int64_t bytes = 0;

  template <typename K, typename... Arguments>
  void kernel(const char *, const std::string &, const KernelCall &, const Arguments &...arguments) {
    bytes = std::max(bytes, static_cast<int64_t>(K(node, runtimeArgument(arguments)...).workspaceBytes()));
  }
  template <typename... Arguments>
  void simple(const char *, const std::string &, const KernelCall &, const Arguments &...) {}
};

} // namespace

FusedGeometry sluice::geometryOf(const KernelOp &region, const FusedOperands &operands) {
  bool steps[FusedGeometry::maxOperands] = {};
  std::copy(operands.steps.begin(), operands.steps.end(), steps);
  std::vector<Tensor> sums;
  for (size_t i = operands.outputs; i < region.outs.size(); ++i)
    sums.push_back(tensorOf(region.outs[i]));
  TensorList inputs(operands.inputs.data(), operands.inputs.size()), sumList(sums.data(), sums.size());
  return FusedGeometry(region.node.c_str(), operands.shape, operands.layout, inputs, steps, {}, sumList);
}

int64_t sluice::workspaceBytes(mlir::Operation *trainOp) {
  KernelOp op = kernelOf(trainOp);
  if (op.kernel == "fused")
    return static_cast<int64_t>(geometryOf(op, fusedOperands(op)).workspaceBytes());
  LargestWorkspace maker{op.node.c_str()};
  makeKernels(op, maker);
  return maker.bytes;
}

void sluice::planForThreads(int threads) { setThreads(threads); }
