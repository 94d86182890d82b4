// SPDX-License-Identifier: Apache-2.0
// The arguments of ir/KernelTable.h go to the same arithmetic that the runtime's constructors use.
#include "passes/CudaKernels.h"

#include "passes/HostKernels.h"
#include "runtime/cuda/Cut.h"

using namespace sluice;

namespace {

template <typename K> struct Class {};

struct CudaWorkspace {
  int64_t limit, bytes = 0;

  template <typename K, typename... Arguments>
  void kernel(const char *, const std::string &, const KernelCall &, const Arguments &...arguments) {
    bytes = std::max(bytes, of(Class<K>(), arguments...));
  }
  template <typename... Arguments>
  void simple(const char *, const std::string &, const KernelCall &, const Arguments &...) {}

private:
  int64_t of(Class<Conv>, ConvPass pass, const ShapeArgument &x, const ShapeArgument &w, const ShapeArgument &y,
             const Window &, int64_t, bool bias, const Algorithm &, DataType type = DataType::F32) {
    return cuda::convolutionScratch(limit, pass, x.shape, w.shape, y.shape, bias, type);
  }
  template <typename... Rest>
  int64_t of(Class<Matmul>, const ShapeArgument &a, const ShapeArgument &b, const ShapeArgument &c, const Rest &...) {
    return cuda::matmulScratch(limit, a.shape, b.shape, c.shape);
  }
  int64_t of(Class<BatchNormStatistics>, const ShapeArgument &x, float) { return cuda::statisticsScratch(x.shape); }
  int64_t of(Class<Loss>, LossKind, const ShapeArgument &) { return cuda::lossScratch; }
  int64_t of(Class<SumTo>, const TensorArgument &x, const TensorArgument &y, float) {
    return SumCut("", x.tensor, y.tensor).scratch();
  }
  template <typename K, typename... Arguments> int64_t of(Class<K>, const Arguments &...) { return 0; }
};

int64_t fusedWorkspace(const KernelOp &op) {
  const FusedOperands operands = fusedOperands(op);
  if (operands.sums == 0)
    return 0;
  const FusedGeometry geometry = geometryOf(op, operands);
  return sumScratch(Cut(geometry.rows, geometry.rowExtent, Cut::sumTasks), static_cast<int>(operands.sums));
}

} // namespace

static int64_t workspaceOf(const KernelOp &op, int64_t limit) {
  if (op.kernel == "fused")
    return fusedWorkspace(op);
  CudaWorkspace maker{limit};
  makeKernels(op, maker);
  return maker.bytes;
}

int64_t sluice::defaultCudaWorkspace(llvm::StringRef precision) {
  return int64_t(precision == "fp32" ? 256 : 64) << 20;
}

std::vector<KernelAlgorithm> sluice::cudaAlgorithms(mlir::Operation *trainOp, int64_t limit) {
  const KernelOp op = kernelOf(trainOp);
  std::vector<KernelAlgorithm> offered(1);
  offered[0].workspace = workspaceOf(op, limit);
  // Engines without any workspace are the exception; one that the smallest cut fits has a few MiB.
  constexpr int64_t little = int64_t(4) << 20;
  if (const int64_t small = workspaceOf(op, little); small < offered[0].workspace) {
    offered.push_back(offered[0]);
    offered[1].granted = little, offered[1].workspace = small, offered[1].slowness = 1.5;
  }
  return offered;
}
