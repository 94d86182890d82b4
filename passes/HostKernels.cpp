// SPDX-License-Identifier: Apache-2.0
// Asks the kernels of ir/KernelTable.h for their workspaces and algorithms.
#include "passes/HostKernels.h"

#include "runtime/Fused.h"
#include "runtime/host/ConvEngine.h"
#include "runtime/host/MatmulEngine.h"
#include "runtime/host/Processor.h"
#include "runtime/host/TileForm.h"

using namespace sluice;

namespace {

Shape runtimeArgument(const ShapeArgument &argument) { return argument.shape; }
Tensor runtimeArgument(const TensorArgument &argument) { return argument.tensor; }
template <typename T> T runtimeArgument(T argument) { return argument; }

template <typename K> struct Class {};

/// Collects what makeKernels() names. Only ops of one kernel have a choice.
struct Offers {
  const char *node;
  bool ask = true; ///< the runtime for what it offers; else only for the geometry
  std::vector<KernelAlgorithm> offered = {};
  std::optional<HostTrialCase> convolution = {};

  template <typename K, typename... Arguments>
  void kernel(const char *, const std::string &, const KernelCall &, const Arguments &...arguments) {
    of(Class<K>(), runtimeArgument(arguments)...);
  }
  template <typename... Arguments>
  void simple(const char *, const std::string &, const KernelCall &, const Arguments &...) {}

private:
  void of(Class<Conv>, ConvPass pass, Shape x, Shape w, Shape y, Window window, int64_t groups, bool bias, Algorithm,
          DataType type = DataType::F32) {
    if (type != DataType::F32)
      throw std::invalid_argument(std::string("'") + node + "': the host computes convolutions in f32 only");
    checkConvolution(node, x, w, y, window, groups);
    convolution = {{pass, x, w, y, window, groups}, bias && pass != ConvPass::BackwardData, "", 1};
    for (const ConvCandidate &c :
         ask ? convCandidates(convolution->geometry, convolution->bias) : std::vector<ConvCandidate>())
      offered.push_back({c.name, c.parts, 0, c.slowness, static_cast<int64_t>(c.workspace)});
  }
  void of(Class<Matmul>, Shape a, Shape b, Shape c, bool transposeA, bool transposeB, float alpha = 1, float beta = 1,
          Shape bias = {}, Algorithm = {}, DataType = DataType::F32, DataType = DataType::F32) {
    for (const MatmulCandidate &m :
         ask ? matmulCandidates({a, b, c, transposeA, transposeB, alpha, beta, bias}) : std::vector<MatmulCandidate>())
      offered.push_back({m.name, 1, 0, m.slowness, static_cast<int64_t>(m.workspace)});
  }
  template <typename K, typename... Arguments> void of(Class<K>, const Arguments &...arguments) {
    if (!ask)
      return;
    if (offered.empty())
      offered.emplace_back();
    offered.front().workspace =
        std::max(offered.front().workspace, static_cast<int64_t>(K(node, arguments...).workspaceBytes()));
  }
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

static int levelOfPrograms = 0;

std::vector<KernelAlgorithm> sluice::hostAlgorithms(mlir::Operation *trainOp) {
  const tile::PlannedFor planned(levelOfPrograms);
  const KernelOp op = kernelOf(trainOp);
  Offers offers{op.node.c_str()};
  makeKernels(op, offers);
  if (offers.offered.empty())
    offers.offered.emplace_back();
  if (op.kernel == "fused")
    offers.offered.front().workspace = static_cast<int64_t>(geometryOf(op, fusedOperands(op)).workspaceBytes());
  return offers.offered;
}

std::optional<HostTrialCase> sluice::trialOf(mlir::Operation *op, const KernelAlgorithm &algorithm) {
  if (algorithm.name.empty() || algorithm.name == "blocked")
    return std::nullopt;
  const KernelOp kernel = kernelOf(op);
  Offers offers{kernel.node.c_str(), false};
  makeKernels(kernel, offers);
  if (offers.convolution)
    offers.convolution->name = algorithm.name, offers.convolution->parts = algorithm.parts;
  return offers.convolution;
}

bool HostTrialCase::operator<(const HostTrialCase &other) const {
  auto key = [](const HostTrialCase &t) {
    const ConvGeometry &g = t.geometry;
    std::vector<int64_t> numbers{static_cast<int64_t>(g.pass), g.groups, t.bias, t.parts, threads()};
    for (const Shape *shape : {&g.x, &g.w, &g.y})
      numbers.insert(numbers.end(), shape->dims, shape->dims + 4);
    for (int i = 0; i < 2; ++i)
      numbers.insert(numbers.end(),
                     {g.window.strides[i], g.window.dilations[i], g.window.pads[i], g.window.pads[i + 2]});
    return std::make_pair(std::move(numbers), t.name);
  };
  return key(*this) < key(other);
}

bool sluice::works(const HostTrialCase &trial) {
  try {
    return convolutionWorks(trial.geometry, trial.bias, {trial.name.c_str(), trial.parts});
  } catch (const std::exception &) {
    return false;
  }
}

void sluice::planForMachine(int threads, int level) {
  setThreads(threads);
  limitInstructions(reachableLevel(level));
  levelOfPrograms = level;
}

int sluice::reachableLevel(int level) { return std::min(level, processorLevel()); }
