// SPDX-License-Identifier: Apache-2.0
// The arguments of a kernel's constructor go to the same arithmetic that the runtime's constructors use.
#include "passes/kernels/CudaKernels.h"

#include "ir/KernelCall.h"
#include "passes/kernels/HostKernels.h"
#include "runtime/Collective.h"
#include "runtime/CtcLoss.h"
#include "runtime/cuda/Cut.h"

using namespace mlir;
using namespace sluice;
using sched::CallAttr;

// Bytes that a call of an object that takes scratch needs, of at most `limit`. Without a rule: none, the host's kernels
// take it.
template <typename A> static int64_t scratchOf(const A &, int64_t) { return 0; }
static int64_t scratchOf(const arguments::Conv &c, int64_t limit) {
  return cuda::convolutionScratch(limit, c.pass, c.x, c.w, c.y, c.bias, c.type);
}
static int64_t scratchOf(const arguments::ConvNorm &c, int64_t limit) {
  return cuda::convNormScratch(limit, c.pass, c.x, c.w, c.y);
}
static int64_t scratchOf(const arguments::Matmul &m, int64_t limit) {
  return cuda::matmulScratch(limit, m.a, m.b, m.c);
}
static int64_t scratchOf(const arguments::MatmulGelu &m, int64_t limit) {
  return cuda::matmulGeluScratch(limit, m.a, m.b, m.c, m.gradient && m.bias);
}
static int64_t scratchOf(const arguments::Attention &a, int64_t limit) {
  const AttentionGeometry geometry("", a.q, a.k, a.v, a.mask, a.kept, {a.qView, a.kView, a.vView, a.yView});
  return cuda::attentionScratch(limit, a.pass, geometry, a.ratio, a.type);
}
static int64_t scratchOf(const arguments::BatchNormStatistics &b, int64_t) { return cuda::statisticsScratch(b.x); }
static int64_t scratchOf(const arguments::SumTo &s, int64_t) { return SumCut("", s.x.tensor, s.y.tensor).scratch(); }
static int64_t scratchOf(const arguments::Loss &l, int64_t) { return cuda::lossScratch(l.ignoreIndex != Loss::none); }
static int64_t scratchOf(const arguments::LossAndGradient &l, int64_t) {
  return cuda::lossScratch(l.ignoreIndex != Loss::none);
}
static int64_t scratchOf(const arguments::Embedding &e, int64_t) { return cuda::idScratch(e.ids.elements()); }
static int64_t scratchOf(const arguments::Recurrence &r, int64_t) {
  return cuda::recurrenceScratch(recurrenceGeometry("", r.cell, r.gates, false));
}
static int64_t scratchOf(const arguments::CtcLoss &c, int64_t) {
  return ctcScratch(ctcGeometry("", c.x, c.labels, c.blank, c.zeroInfinity, c.ignoreIndex));
}
static int64_t scratchOf(const arguments::SynchronizedNorm &s, int64_t) {
  return synchronizedScratch(s.channels, s.ranks);
}
static int64_t scratchOf(const arguments::Lamb &, int64_t) { return cuda::lambScratch; }
static int64_t scratchOf(const arguments::GradientNorm &, int64_t) { return cuda::normScratch; }
static int64_t scratchOf(const arguments::SharesNorm &, int64_t) { return cuda::normScratch; }

static int64_t fusedWorkspace(train::FusedOp region) {
  if (region.getSums() == 0)
    return 0;
  const FusedGeometry geometry = geometryOf(region);
  const Cut cut = region.hasRowMeans() ? Cut::ofWholeRows(geometry.rows, geometry.rowExtent)
                                       : Cut(geometry.rows, geometry.rowExtent, Cut::sumTasks);
  return sumScratch(cut, static_cast<int>(region.getSums()));
}

/// Of the one call that takes scratch; what the runtime's constructors would refuse is an error at the op here.
static FailureOr<int64_t> workspaceOf(Operation *op, int64_t limit) {
  if (auto fused = dyn_cast<train::FusedOp>(op))
    return fusedWorkspace(fused);
  FailureOr<CallAttr> call = callWithScratch(op);
  if (failed(call))
    return failure();
  if (!*call)
    return 0;
  int64_t bytes = 0;
  try {
    if (!visitArguments(op, *call, [&](const auto &kernel) { bytes = scratchOf(kernel, limit); }))
      return op->emitOpError() << "gives scratch to " << call->getMethod() << ", a function, which takes none";
    return bytes;
  } catch (const std::exception &refusal) { // by the arithmetic that the runtime's constructors use
    return op->emitError() << refusal.what();
  }
}

// The library has many engines, but which of them run is known on the GPU alone; what plans can choose is how much they
// are granted. Engines without any workspace are the exception; one that the smallest cut fits has a few MiB. The
// gradient of an attention has one engine, which computes as many heads at once as the workspace holds matrices of
// scores for; with dropout so has the attention.
FailureOr<std::vector<KernelAlgorithm>> sluice::cudaAlgorithms(Operation *op, int64_t limit, bool given) {
  constexpr int64_t little = int64_t(4) << 20, generous = int64_t(1) << 30;
  SmallVector<std::pair<int64_t, double>> grants{{limit, 1}, {little, 1.5}};
  if (limit / 4 > little)
    grants.insert(grants.begin() + 1, {limit / 4, 1.2});
  auto attention = dyn_cast<train::AttentionOp>(op);
  const bool scores = isa<train::AttentionBackwardOp>(op) || (attention && attention.getRatio().convertToFloat() > 0);
  if (scores && !given)
    grants = {{generous, 1}, {limit, 1.8}, {little, 1.8 * 1.5}};
  std::vector<KernelAlgorithm> offered;
  for (auto [granted, slowness] : grants) {
    FailureOr<int64_t> workspace = workspaceOf(op, granted);
    if (failed(workspace))
      return failure();
    const int64_t ownGrant = granted == limit ? 0 : granted; // 0: what every kernel of the program may have
    if (!offered.empty() && *workspace >= offered.back().workspace) {
      offered.back().granted = std::min(offered.back().granted, ownGrant);
      continue;
    }
    KernelAlgorithm way;
    way.granted = ownGrant, way.workspace = *workspace;
    // Without a workspace no engine runs attention, and our own kernels multiply without tensor cores.
    way.slowness = offered.empty() ? 1 : *workspace ? slowness : 10;
    offered.push_back(way);
  }
  return offered;
}
