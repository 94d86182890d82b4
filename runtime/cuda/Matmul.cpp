// SPDX-License-Identifier: Apache-2.0
// Matrix products through cuBLASLt, which thinks in columns: a row-major c = a b is its c' = b' a'. The bias is
// cuBLASLt's epilogue where it is one row, its matrix to add to where it is one of floats like the result, else a
// kernel of ours. Leading dimensions become one strided batch where both factors walk them evenly; what remains is a
// loop. Sums of halves are f32 and stored as halves or as they are; the epilogue's bias has the result's type. The
// algorithm is the first of cuBLASLt's own ranking that fits the workspace and adds in a fixed order.
#include "runtime/cuda/Cut.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Reduce.h"
#include "runtime/kernels/MatmulShape.h"

#include <cublasLt.h>

namespace sluice {

namespace {

void check(cublasStatus_t status, const char *node, const char *what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError(std::string("CUDA cuBLASLt cannot ") + what + " '" + node +
                      "': " + cublasLtGetStatusString(status));
}

cudaDataType typeOf(DataType type) {
  return type == DataType::BF16 ? CUDA_R_16BF : type == DataType::F16 ? CUDA_R_16F : CUDA_R_32F;
}

/// A description that ends with its scope.
template <typename Handle, cublasStatus_t (*Destroy)(Handle)> struct Owned {
  Handle handle = nullptr;
  Owned() = default;
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;
  ~Owned() {
    if (handle)
      Destroy(handle);
  }
};
using Layout_ = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

} // namespace

struct Matmul::Impl {
  /// Owned by the kernel and by the list of what is to be built.
  struct Plan : Buildable {
    void build() override;
    void describe(Layout_ &layout, DataType type, int64_t rows, int64_t columns, int64_t batchStride) const;
    /// Of products with an extent of one PyTorch found cuBLASLt's ranking to fail once there is a bias.
    bool epilogue() const { return shape.rowBias && std::min({shape.m, shape.n, shape.k}) > 1; }
    void choose();

    const char *node = nullptr;
    MatmulShape shape;
    bool transposeA = false, transposeB = false, built = false;
    size_t workspace = 0;
    Precision precision = Precision::FP32;
    DataType factors = DataType::F32, result = DataType::F32;
    Operation operation;
    Layout_ a, b, c;
    cublasLtMatmulAlgo_t algorithm{};
  };
  std::shared_ptr<Plan> plan;
  float alpha = 1;
};

void Matmul::Impl::Plan::describe(Layout_ &layout, DataType type, int64_t rows, int64_t columns,
                                  int64_t batchStride) const {
  check(cublasLtMatrixLayoutCreate(&layout.handle, typeOf(type), static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), rows),
        node, "describe");
  const auto count = static_cast<int32_t>(shape.batch);
  check(cublasLtMatrixLayoutSetAttribute(layout.handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), node,
        "describe");
  check(cublasLtMatrixLayoutSetAttribute(layout.handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batchStride,
                                         sizeof batchStride),
        node, "describe");
}

void Matmul::Impl::Plan::build() {
  if (built)
    return;
  const auto compute = precision == Precision::TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(cublasLtMatmulDescCreate(&operation.handle, compute, CUDA_R_32F), node, "describe");
  auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto &value) {
    check(cublasLtMatmulDescSetAttribute(operation.handle, attribute, &value, sizeof value), node, "describe");
  };
  // In columns: b is the left factor and a the right one.
  set(CUBLASLT_MATMUL_DESC_TRANSA, transposeB ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, transposeA ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (epilogue()) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    // Calls set their own; the ranking only looks at its alignment.
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void *>(size_t(64)));
  }
  describe(b, factors, transposeB ? shape.k : shape.n, transposeB ? shape.n : shape.k, shape.strideB);
  describe(a, factors, transposeA ? shape.m : shape.k, transposeA ? shape.k : shape.m, shape.strideA);
  describe(c, result, shape.n, shape.m, shape.m * shape.n);
  choose();
  built = true;
}

void Matmul::Impl::Plan::choose() {
  Preference preference;
  check(cublasLtMatmulPreferenceCreate(&preference.handle), node, "plan");
  auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto &value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference.handle, attribute, &value, sizeof value), node, "plan");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(workspace));
  // Parts of a sum may be added in f32, and not where other parts add.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_MASK & ~CUBLASLT_REDUCTION_SCHEME_INPLACE &
                            ~(isHalf(result) ? CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE : 0)));
  // Slots begin at multiples of 64 bytes, matrices of a batch wherever the one before ends.
  auto alignment = [&](DataType type, int64_t elements) {
    const auto width = static_cast<int64_t>(byteWidth(type));
    return static_cast<uint32_t>(shape.batch * shape.loops == 1 ? 64 : elements * width % 16 == 0 ? 16 : width);
  };
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(factors, shape.k * shape.n));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(factors, shape.m * shape.k));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(result, shape.m * shape.n));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(result, shape.m * shape.n));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(Device::get().blas, operation.handle, b.handle, a.handle, c.handle, c.handle,
                                     preference.handle, 1, &found, &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0)
    throw MemoryNotAvailable(std::string("CUDA cuBLASLt has no algorithm for '") + node + "' (" +
                             std::to_string(shape.m) + "x" + std::to_string(shape.k) + "x" + std::to_string(shape.n) +
                             ") within a workspace of " + std::to_string(workspace) +
                             " bytes; compile with a larger --workspace-limit");
  algorithm = found.algo;
}

Matmul::Matmul(Node node, Shape a, Shape b, Shape c, MatmulOptions options)
    : Kernel(node), impl(std::make_unique<Impl>()) {
  auto plan = std::make_shared<Impl::Plan>();
  plan->node = node;
  plan->shape = MatmulShape(node, a, b, c, options.transposeA, options.transposeB, options.beta, options.bias);
  plan->shape.addToMatrix(options.alpha, options.result);
  plan->transposeA = options.transposeA, plan->transposeB = options.transposeB;
  plan->precision = precision();
  plan->factors = options.factors, plan->result = options.result;
  workspace = static_cast<size_t>(cuda::matmulScratch(grantedWorkspace(options.algorithm), a, b, c));
  plan->workspace = workspace;
  impl->plan = plan;
  impl->alpha = options.alpha;
  buildLater(plan);
}

Matmul::~Matmul() = default;
Matmul::Matmul(Matmul &&) = default;

void Matmul::run(Stream &stream, const Tensor &a, const Tensor &b, const Tensor &bias, const Tensor &c,
                 const Tensor &scratch) const {
  const char *pa = stream.data<char>(a), *pb = stream.data<char>(b);
  const void *pBias = stream.address(bias);
  char *pc = stream.data<char>(c);
  void *pad = stream.address(scratch);
  Impl::Plan &plan = *impl->plan;
  const MatmulShape &shape = plan.shape;
  assert((!shape.rowBias || bias.type == plan.result) && "a row has the result's type");
  const auto width = static_cast<int64_t>(byteWidth(plan.factors)),
             resultWidth = static_cast<int64_t>(byteWidth(plan.result));
  const float added = shape.adds ? 1 : 0;
  stream.launch(node, "matmul", [&] {
    plan.build();
    if (plan.epilogue())
      check(cublasLtMatmulDescSetAttribute(plan.operation.handle, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pBias,
                                           sizeof pBias),
            node, "run");
    for (int64_t i = 0; i < shape.loops; ++i) {
      char *to = pc + i * shape.batch * shape.m * shape.n * resultWidth;
      check(cublasLtMatmul(Device::get().blas, plan.operation.handle, &impl->alpha, pb + shape.offsetB(i) * width,
                           plan.b.handle, pa + shape.offsetA(i) * width, plan.a.handle, &added, shape.adds ? pBias : to,
                           plan.c.handle, to, plan.c.handle, &plan.algorithm, pad, plan.workspace, native(stream)),
            node, "run");
    }
    if (shape.ownBias || (shape.rowBias && !plan.epilogue()))
      addBias(native(stream), plan.result, pc, shape.rows, shape.n,
              {shape.rowBias ? plan.result : DataType::F32, pBias, shape.biasRows, shape.biasRowStep,
               shape.biasColumnStep, shape.beta});
  });
}

} // namespace sluice
