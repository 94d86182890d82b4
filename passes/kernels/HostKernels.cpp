// SPDX-License-Identifier: Apache-2.0
// Asks the runtime's kernels for their workspaces and algorithms.
#include "passes/kernels/HostKernels.h"

#include "ir/KernelCall.h"
#include "runtime/Attention.h"
#include "runtime/CtcLoss.h"
#include "runtime/Embedding.h"
#include "runtime/Recurrence.h"
#include "runtime/Update.h"
#include "runtime/host/ConvEngine.h"
#include "runtime/host/MatmulEngine.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Processor.h"
#include "runtime/host/TileForm.h"

#include "llvm/ADT/StringSwitch.h"

#include <thread>

using namespace mlir;
using namespace sluice;
using sched::CallAttr;

namespace {

using Offered = std::vector<KernelAlgorithm>;
/// What one call offers, `node` and `op` being those whose call it is.
using Offers = Offered (*)(Operation *op, CallAttr call, const char *node);

/// Without a choice: what the very object needs that the generated program will build.
template <typename K, typename... Arguments, unsigned... I>
Offered constructed(Operation *op, CallAttr call, const char *node, std::integer_sequence<unsigned, I...>) {
  KernelAlgorithm only;
  only.workspace = static_cast<int64_t>(K(node, argument<Arguments>(op, call, I)...).workspaceBytes());
  return {only};
}
template <typename K, typename... Arguments> Offered workspaceOf(Operation *op, CallAttr call, const char *node) {
  return constructed<K, Arguments...>(op, call, node, std::make_integer_sequence<unsigned, sizeof...(Arguments)>());
}

HostTrialCase convolutionOf(Operation *op, CallAttr call, const char *node) {
  const auto pass = argument<ConvPass>(op, call, 0);
  const auto x = argument<Shape>(op, call, 1), w = argument<Shape>(op, call, 2), y = argument<Shape>(op, call, 3);
  const auto window = argument<Window>(op, call, 4);
  const auto groups = argument<int64_t>(op, call, 5);
  const bool bias = argument<bool>(op, call, 6);
  if (argumentOr(DataType::F32, op, call, 8) != DataType::F32)
    throw std::invalid_argument(std::string("'") + node + "': the host computes convolutions in f32 only");
  checkConvolution(node, x, w, y, window, groups);
  return {{pass, x, w, y, window, groups}, bias && pass != ConvPass::BackwardData, "", 1};
}

Offered convolution(Operation *op, CallAttr call, const char *node) {
  Offered offered;
  const HostTrialCase trial = convolutionOf(op, call, node);
  for (const ConvCandidate &c : convCandidates(trial.geometry, trial.bias))
    offered.push_back({c.name, c.parts, 0, c.slowness, static_cast<int64_t>(c.workspace)});
  return offered;
}

Offered product(Operation *op, CallAttr call, const char *) {
  MatmulGeometry geometry{argument<Shape>(op, call, 0),  argument<Shape>(op, call, 1),    argument<Shape>(op, call, 2),
                          argument<bool>(op, call, 3),   argument<bool>(op, call, 4),     argumentOr(1.0f, op, call, 5),
                          argumentOr(1.0f, op, call, 6), argumentOr(Shape(), op, call, 7)};
  Offered offered;
  for (const MatmulCandidate &m : matmulCandidates(geometry))
    offered.push_back({m.name, 1, 0, m.slowness, static_cast<int64_t>(m.workspace)});
  return offered;
}

/// By class, for those whose methods take scratch.
Offers offersOf(StringRef kernel) {
  return llvm::StringSwitch<Offers>(kernel)
      .Case("Conv", convolution)
      .Case("Matmul", product)
      .Case("MaxPool", workspaceOf<MaxPool, Shape, Shape, Window>)
      .Case("AveragePool", workspaceOf<AveragePool, Shape, Shape, Window, bool>)
      .Case("BatchNormStatistics", workspaceOf<BatchNormStatistics, Shape, float>)
      .Case("Lrn", workspaceOf<Lrn, Shape, int64_t, float, float, float>)
      .Case("Loss", workspaceOf<Loss, LossKind, Shape>)
      .Case("CtcLoss", workspaceOf<CtcLoss, Shape, int64_t, int64_t, bool>)
      .Case("Attention", workspaceOf<Attention, AttentionPass, Shape, Shape, Shape, Shape, Shape, float>)
      .Case("Embedding", workspaceOf<Embedding, Shape, Shape>)
      .Case("Recurrence", workspaceOf<Recurrence, RecurrentCell, Shape, bool>)
      .Case("Lamb", workspaceOf<Lamb, Shape>)
      .Case("GradientNorm", workspaceOf<GradientNorm, Shape>)
      .Case("SumTo", workspaceOf<SumTo, Tensor, Tensor, float>)
      .Default(nullptr);
}

} // namespace

FailureOr<CallAttr> sluice::callWithScratch(Operation *op) {
  CallAttr found;
  for (CallAttr call : cast<train::HasKernel>(op).kernelCalls())
    if (call.usesScratch()) {
      if (found)
        return op->emitOpError() << "calls " << found.getKernel() << " and " << call.getKernel() << " with one scratch";
      found = call;
    }
  return found;
}

FusedGeometry sluice::geometryOf(train::FusedOp region) {
  const RankedTensorType domain = region.domain();
  const Tensor whole = tensorOf(domain);
  std::vector<Tensor> inputs, sums;
  bool steps[FusedGeometry::maxOperands] = {};
  for (auto [i, value] : llvm::enumerate(region.getInputs())) {
    auto type = cast<RankedTensorType>(value.getType());
    Tensor operand = tensorOf(type);
    if (region.isChannel(i)) // [C,1,...], after an absent batch dimension
      for (int d = 1; d < whole.shape.rank - 1; ++d)
        operand.shape.append(1);
    inputs.push_back(operand);
    steps[i] = train::advancesInnermost(type, region.isChannel(i), domain);
  }
  for (Value sum : region.getOutputs().drop_front(region.fullResults()))
    sums.push_back(tensorOf(cast<RankedTensorType>(sum.getType())));
  return FusedGeometry(train::nodeName(region.getLoc()).c_str(), whole.shape, whole.layout,
                       TensorList(inputs.data(), inputs.size()), steps, {}, TensorList(sums.data(), sums.size()));
}

static FailureOr<Offered> offeredFor(Operation *op) {
  if (auto fused = dyn_cast<train::FusedOp>(op)) {
    KernelAlgorithm only;
    only.workspace = static_cast<int64_t>(geometryOf(fused).workspaceBytes());
    return Offered{only};
  }
  FailureOr<CallAttr> call = callWithScratch(op);
  if (failed(call))
    return failure();
  if (!*call)
    return Offered(1);
  Offers offers = offersOf(call->getKernel());
  if (!offers)
    return op->emitOpError() << "calls " << call->getKernel() << ", of whose scratch the host runtime says nothing";
  return offers(op, *call, train::nodeName(op->getLoc()).c_str());
}

FailureOr<Offered> sluice::hostAlgorithms(Operation *op, const HostMachine &machine) {
  const tile::PlannedFor planned(machine.level);
  try {
    return offeredFor(op);
  } catch (const std::exception &refusal) { // by the runtime's constructors, as in a program
    return op->emitError() << refusal.what();
  }
}

std::optional<HostTrialCase> sluice::trialOf(Operation *op, const KernelAlgorithm &algorithm) {
  if (algorithm.name.empty() || algorithm.name == "blocked")
    return std::nullopt;
  FailureOr<CallAttr> call = callWithScratch(op);
  if (failed(call) || !*call || call->getKernel() != "Conv")
    return std::nullopt;
  HostTrialCase trial = convolutionOf(op, *call, train::nodeName(op->getLoc()).c_str());
  trial.name = algorithm.name, trial.parts = algorithm.parts;
  return trial;
}

bool HostTrialCase::operator<(const HostTrialCase &other) const {
  auto key = [](const HostTrialCase &t) {
    const ConvGeometry &g = t.geometry;
    std::vector<int64_t> numbers{static_cast<int64_t>(g.pass), g.groups, t.bias, t.parts, threads()};
    for (const Shape *shape : {&g.x, &g.w, &g.y})
      numbers.insert(numbers.end(), shape->dims, shape->dims + shape->rank);
    for (int i = 0, spatial = g.x.rank - 2; i < spatial; ++i)
      numbers.insert(numbers.end(),
                     {g.window.strides[i], g.window.dilations[i], g.window.pads[i], g.window.pads[i + spatial]});
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

void sluice::adoptMachine(const HostMachine &machine) {
  const int wanted = machine.threads > 0 ? machine.threads : std::max(1u, std::thread::hardware_concurrency());
  if (threads() != wanted) // else none are started that nobody needs
    setThreads(wanted);
  else // whatever OMP_NUM_THREADS says, which the programs take no notice of, too
    adoptThreadCount();
  limitInstructions(reachableLevel(machine.level));
}

int sluice::reachableLevel(int level) { return std::min(level, processorLevel()); }
