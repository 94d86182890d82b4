// SPDX-License-Identifier: Apache-2.0
// Asks the runtime's kernels for their workspaces and algorithms.
#include "passes/kernels/HostKernels.h"

#include "ir/KernelCall.h"
#include "runtime/CpuTable.h"
#include "runtime/host/AttentionEngine.h"
#include "runtime/host/ConvEngine.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/MatmulEngine.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Processor.h"
#include "runtime/host/TileForm.h"

#include <thread>

using namespace mlir;
using namespace sluice;
using sched::CallAttr;

namespace {

using Offered = std::vector<KernelAlgorithm>;

const Tensor &given(const TensorArgument &argument) { return argument.tensor; }
template <typename T> const T &given(const T &argument) { return argument; }

/// What a call's object offers. Without a choice: what the very object needs that the generated program will build.
template <typename A> Offered offersOf(const A &arguments, const char *node) {
  const auto workspace = [&](const auto &...each) -> size_t {
    if constexpr (hasOptions<A>)
      return typename A::Kernel(node, given(each)..., arguments).workspaceBytes();
    else if constexpr (std::is_constructible_v<typename A::Kernel, Node, decltype(given(each))...>)
      return typename A::Kernel(node, given(each)...).workspaceBytes();
    return 0;
  };
  KernelAlgorithm only;
  only.workspace = static_cast<int64_t>(std::apply(workspace, arguments.members()));
  return {only};
}

Offered offersOf(const arguments::ConvNorm &, const char *node) {
  throw std::invalid_argument(std::string("'") + node + "': the host runtime has no class ConvNorm");
}
Offered offersOf(const arguments::LossAndGradient &, const char *node) {
  throw std::invalid_argument(std::string("'") + node + "': the host runtime has no class LossAndGradient");
}
Offered offersOf(const arguments::MatmulGelu &, const char *node) {
  throw std::invalid_argument(std::string("'") + node + "': the host runtime has no class MatmulGelu");
}

HostTrialCase trialOf(const arguments::Conv &conv, const char *node) {
  refuseF16(node, conv.type);
  checkConvolution(node, conv.x, conv.w, conv.y, conv.window, conv.groups);
  return {{conv.pass, conv.x, conv.w, conv.y, conv.window, conv.groups, conv.type},
          conv.bias && conv.pass != ConvPass::BackwardData,
          "",
          1};
}

Offered offersOf(const arguments::Conv &conv, const char *node) {
  Offered offered;
  const HostTrialCase trial = trialOf(conv, node);
  for (const ConvCandidate &c : convCandidates(trial.geometry, trial.bias))
    offered.push_back({c.name, c.parts, 0, c.slowness, static_cast<int64_t>(c.workspace)});
  return offered;
}

Offered offersOf(const arguments::Matmul &m, const char *node) {
  refuseF16(node, m.factors);
  Offered offered;
  for (const MatmulCandidate &c : matmulCandidates({m.a, m.b, m.c, m}))
    offered.push_back({c.name, 1, 0, c.slowness, static_cast<int64_t>(c.workspace)});
  return offered;
}

Offered offersOf(const arguments::QuantizedMatmul &m, const char *node) {
  refuseF16(node, m.factors);
  Offered offered;
  for (const MatmulCandidate &c : quantizedMatmulCandidates(m.a, m.b, m))
    offered.push_back({c.name, 1, 0, c.slowness, static_cast<int64_t>(c.workspace)});
  return offered;
}

Offered offersOf(const arguments::Attention &a, const char *node) {
  refuseF16(node, a.type);
  Offered offered;
  const AttentionGeometry geometry(node, a.q, a.k, a.v, a.mask, a.kept, a.views());
  for (const AttentionCandidate &c : attentionCandidates(a.pass, geometry, a.type))
    offered.push_back({c.name, 1, 0, c.slowness, static_cast<int64_t>(c.workspace)});
  return offered;
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

/// The same object as the program constructs, so that its workspace and its work are what the kernel has.
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

/// Throws what the runtime's constructors throw.
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
  const std::string node = train::nodeName(op->getLoc());
  Offered offered;
  if (!visitArguments(op, *call, [&](const auto &arguments) { offered = offersOf(arguments, node.c_str()); }))
    return op->emitOpError() << "gives scratch to " << call->getMethod() << ", a function, which takes none";
  return offered;
}

/// The runtime's own choice of candidates, as the program would make it, and its refusals as errors of the op.
FailureOr<Offered> sluice::hostAlgorithms(Operation *op, const HostMachine &machine) {
  const tile::PlannedFor planned(machine.level);
  try {
    return offeredFor(op);
  } catch (const std::exception &refusal) { // by the runtime's constructors, as in a program
    return op->emitError() << refusal.what();
  }
}

/// Nothing for our own kernels, which work on every machine.
std::optional<HostTrialCase> sluice::trialOf(Operation *op, const KernelAlgorithm &algorithm) {
  if (algorithm.name.empty() || algorithm.name == "blocked")
    return std::nullopt;
  FailureOr<CallAttr> call = callWithScratch(op);
  const std::optional<arguments::Conv> conv =
      failed(call) || !*call ? std::nullopt : argumentsOf<arguments::Conv>(op, *call);
  if (!conv)
    return std::nullopt;
  HostTrialCase trial = ::trialOf(*conv, train::nodeName(op->getLoc()).c_str());
  trial.name = algorithm.name, trial.parts = algorithm.parts;
  return trial;
}

// Threads are part of the key: a trial with others says nothing of these.
bool HostTrialCase::operator<(const HostTrialCase &other) const {
  auto key = [](const HostTrialCase &t) {
    const ConvGeometry &g = t.geometry;
    std::vector<int64_t> numbers{
        static_cast<int64_t>(g.pass), static_cast<int64_t>(g.type), g.groups, t.bias, t.parts, threads()};
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

/// The compiler asks kernels what they need and constructs vendor primitives to that end: with another number of
/// threads or other instructions they would answer for another machine.
void sluice::adoptMachine(const HostMachine &machine) {
  const int wanted = machine.threads > 0 ? machine.threads : std::max(1u, std::thread::hardware_concurrency());
  if (threads() != wanted) // else none are started that nobody needs
    setThreads(wanted);
  else // whatever OMP_NUM_THREADS says, which the programs take no notice of, too
    adoptThreadCount();
  setKernelPolicy(0, machine.precision);
  limitInstructions(reachableLevel(machine.level));
}

/// On ARM, too, programs for ARM know no such limit: one source, wherever it was written.
int sluice::reachableLevel(int level) {
  return isArm(level) || isForeign(level) ? 0 : std::min(level, processorLevel());
}
