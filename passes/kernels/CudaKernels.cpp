// SPDX-License-Identifier: Apache-2.0
// The arguments of a kernel's constructor go to the same arithmetic that the runtime's constructors use.
#include "passes/kernels/CudaKernels.h"

#include "ir/KernelCall.h"
#include "passes/kernels/HostKernels.h"
#include "runtime/CtcLoss.h"
#include "runtime/cuda/Cut.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace sluice;
using sched::CallAttr;

/// Bytes that a call needs of at most `limit`.
using Workspace = int64_t (*)(Operation *op, CallAttr call, int64_t limit);

static int64_t convolution(Operation *op, CallAttr call, int64_t limit) {
  return cuda::convolutionScratch(limit, argument<ConvPass>(op, call, 0), argument<Shape>(op, call, 1),
                                  argument<Shape>(op, call, 2), argument<Shape>(op, call, 3),
                                  argument<bool>(op, call, 6), argumentOr(DataType::F32, op, call, 8));
}
static int64_t convNorm(Operation *op, CallAttr call, int64_t limit) {
  return cuda::convNormScratch(limit, argument<ConvPass>(op, call, 0), argument<Shape>(op, call, 1),
                               argument<Shape>(op, call, 2), argument<Shape>(op, call, 3));
}
static int64_t product(Operation *op, CallAttr call, int64_t limit) {
  return cuda::matmulScratch(limit, argument<Shape>(op, call, 0), argument<Shape>(op, call, 1),
                             argument<Shape>(op, call, 2));
}
static int64_t attention(Operation *op, CallAttr call, int64_t limit) {
  auto view = [&](unsigned i) { return argumentOr(Shape(), op, call, i); };
  const AttentionGeometry geometry("", argument<Shape>(op, call, 1), argument<Shape>(op, call, 2),
                                   argument<Shape>(op, call, 3), argument<Shape>(op, call, 4),
                                   argument<Shape>(op, call, 5), {view(12), view(13), view(14), view(15)});
  return cuda::attentionScratch(limit, argument<AttentionPass>(op, call, 0), geometry, argumentOr(0.0f, op, call, 8),
                                argumentOr(DataType::F32, op, call, 10));
}
static int64_t statistics(Operation *op, CallAttr call, int64_t) {
  return cuda::statisticsScratch(argument<Shape>(op, call, 0));
}
static int64_t sumTo(Operation *op, CallAttr call, int64_t) {
  return SumCut("", argument<Tensor>(op, call, 0), argument<Tensor>(op, call, 1)).scratch();
}
static int64_t loss(Operation *, CallAttr call, int64_t) { return cuda::lossScratch(call.getArguments().size() > 2); }
static int64_t embedding(Operation *op, CallAttr call, int64_t) {
  return static_cast<int64_t>(sizeof(int64_t)) * argument<Shape>(op, call, 1).elements();
}
static int64_t recurrence(Operation *op, CallAttr call, int64_t) {
  return cuda::recurrenceScratch(
      recurrenceGeometry("", argument<RecurrentCell>(op, call, 0), argument<Shape>(op, call, 1), false));
}
static int64_t ctcLoss(Operation *op, CallAttr call, int64_t) {
  return ctcScratch(ctcGeometry("", argument<Shape>(op, call, 0), argument<int64_t>(op, call, 1),
                                argument<int64_t>(op, call, 2), argument<bool>(op, call, 3), Loss::none));
}
static int64_t lamb(Operation *, CallAttr, int64_t) { return cuda::lambScratch; }
static int64_t gradientNorm(Operation *, CallAttr, int64_t) { return cuda::normScratch; }
static int64_t nothing(Operation *, CallAttr, int64_t) { return 0; } // the host's kernels take scratch

static int64_t fusedWorkspace(train::FusedOp region) {
  if (region.getSums() == 0)
    return 0;
  const FusedGeometry geometry = geometryOf(region);
  return sumScratch(Cut(geometry.rows, geometry.rowExtent, Cut::sumTasks), static_cast<int>(region.getSums()));
}

/// What computes the scratch of a kernel's object; null for one that the cuda runtime does not have.
static Workspace workspaceFunction(StringRef kernel) {
  return llvm::StringSwitch<Workspace>(kernel)
      .Case("Conv", convolution)
      .Case("ConvNorm", convNorm)
      .Case("Matmul", product)
      .Case("BatchNormStatistics", statistics)
      .Case("SumTo", sumTo)
      .Case("Loss", loss)
      .Case("CtcLoss", ctcLoss)
      .Case("Embedding", embedding)
      .Case("Lamb", lamb)
      .Case("GradientNorm", gradientNorm)
      .Case("Recurrence", recurrence)
      .Case("Attention", attention)
      .Cases({"MaxPool", "AveragePool", "Lrn"}, nothing)
      .Default(nullptr);
}

static FailureOr<int64_t> workspaceOf(Operation *op, int64_t limit) {
  if (auto fused = dyn_cast<train::FusedOp>(op))
    return fusedWorkspace(fused);
  FailureOr<CallAttr> call = callWithScratch(op);
  if (failed(call))
    return failure();
  if (!*call)
    return 0;
  const Workspace workspace = workspaceFunction(call->getKernel());
  if (!workspace)
    return op->emitOpError() << "calls " << call->getKernel() << ", of whose scratch the cuda runtime says nothing";
  try {
    return workspace(op, *call, limit);
  } catch (const std::exception &refusal) { // by the arithmetic that the runtime's constructors use
    return op->emitError() << refusal.what();
  }
}

FailureOr<std::vector<KernelAlgorithm>> sluice::cudaAlgorithms(Operation *op, int64_t limit) {
  // Engines without any workspace are the exception; one that the smallest cut fits has a few MiB.
  constexpr int64_t little = int64_t(4) << 20;
  FailureOr<int64_t> most = workspaceOf(op, limit), small = failed(most) ? most : workspaceOf(op, little);
  if (failed(small))
    return failure();
  std::vector<KernelAlgorithm> offered(1);
  offered[0].workspace = *most;
  if (*small < *most) {
    offered.push_back(offered[0]);
    // Without a workspace no engine runs attention, and our own kernels multiply without tensor cores.
    offered[1].granted = little, offered[1].workspace = *small, offered[1].slowness = *small ? 1.5 : 10;
  }
  return offered;
}
