// SPDX-License-Identifier: Apache-2.0
// Descriptions of a product for cuBLASLt, see ProductPlan.h. Calls set the addresses of what epilogues read and write.
#include "runtime/cuda/ProductPlan.h"

#include "runtime/cuda/Device.h"

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

struct EpilogueFacts {
  cublasLtEpilogue_t epilogue;
  bool vector, x;
  const char *name;
};
constexpr EpilogueFacts epilogues[] = {{CUBLASLT_EPILOGUE_DEFAULT, false, false, ""},
                                       {CUBLASLT_EPILOGUE_BIAS, true, false, ", bias"},
                                       {CUBLASLT_EPILOGUE_GELU_AUX, false, true, ", gelu"},
                                       {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, true, true, ", gelu of bias"},
                                       {CUBLASLT_EPILOGUE_DGELU, false, true, ", gradient of gelu"},
                                       {CUBLASLT_EPILOGUE_DGELU_BGRAD, true, true, ", gradients of gelu and bias"}};
const EpilogueFacts &factsOf(ProductEpilogue epilogue) { return epilogues[static_cast<int>(epilogue)]; }

} // namespace

std::string ProductTask::text() const {
  static constexpr const char *precisions[] = {"fp32", "tf32", "bf16", "fp16"}, *types[] = {"f32", "bf16", "f16"};
  const auto number = [](int64_t value) { return std::to_string(value); };
  const std::string batch =
      shape.batch == 1 ? ""
                       : ", " + number(shape.batch) + " by " + number(shape.strideA) + " and " + number(shape.strideB);
  return number(shape.m) + "x" + number(shape.k) + "x" + number(shape.n) + (transposeA ? ", a turned" : "") +
         (transposeB ? ", b turned" : "") + batch + ", " + precisions[static_cast<int>(precision)] + " of " +
         types[static_cast<int>(factors)] + " in " + types[static_cast<int>(result)] + factsOf(epilogue).name +
         " within " + number(static_cast<int64_t>(workspace));
}

void ProductPlan::describe(const char *node, Matrix &matrix, DataType type, int64_t rows, int64_t columns,
                           int64_t step) const {
  check(cublasLtMatrixLayoutCreate(&matrix.handle, typeOf(type), static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), rows),
        node, "describe");
  const auto count = static_cast<int32_t>(task.shape.batch);
  check(cublasLtMatrixLayoutSetAttribute(matrix.handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), node,
        "describe");
  check(
      cublasLtMatrixLayoutSetAttribute(matrix.handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step),
      node, "describe");
}

// The ranking looks at the addresses' alignment only.
void ProductPlan::describeEpilogue(const char *node) {
  auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto &value) {
    check(cublasLtMatmulDescSetAttribute(operation.handle, attribute, &value, sizeof value), node, "describe");
  };
  const EpilogueFacts &facts = factsOf(task.epilogue);
  const auto aligned = reinterpret_cast<const void *>(size_t(64));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, facts.epilogue);
  if (facts.vector)
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
  if (facts.x) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, task.shape.n);
  }
}

void ProductPlan::describe(const char *node) {
  const auto compute = task.precision == Precision::TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(cublasLtMatmulDescCreate(&operation.handle, compute, CUDA_R_32F), node, "describe");
  auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto &value) {
    check(cublasLtMatmulDescSetAttribute(operation.handle, attribute, &value, sizeof value), node, "describe");
  };
  // In columns: b is the left factor and a the right one.
  set(CUBLASLT_MATMUL_DESC_TRANSA, task.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, task.transposeA ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (task.epilogue != ProductEpilogue::None)
    describeEpilogue(node);
  const MatmulShape &s = task.shape;
  describe(node, b, task.factors, task.transposeB ? s.k : s.n, task.transposeB ? s.n : s.k, s.strideB);
  describe(node, a, task.factors, task.transposeA ? s.m : s.k, task.transposeA ? s.k : s.m, s.strideA);
  describe(node, c, task.result, s.n, s.m, s.m * s.n);
}

void ProductPlan::prefer(const char *node, Preference &preference) const {
  check(cublasLtMatmulPreferenceCreate(&preference.handle), node, "plan");
  auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto &value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference.handle, attribute, &value, sizeof value), node, "plan");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(task.workspace));
  // Parts of a sum may be added in f32, and not where other parts add.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_MASK & ~CUBLASLT_REDUCTION_SCHEME_INPLACE &
                            ~(isHalf(task.result) ? CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE : 0)));
  // Slots begin at multiples of 64 bytes, matrices of a batch wherever the one before ends.
  const MatmulShape &shape = task.shape;
  auto alignment = [&](DataType type, int64_t elements) {
    const auto width = static_cast<int64_t>(byteWidth(type));
    return static_cast<uint32_t>(shape.batch * shape.loops == 1 ? 64 : elements * width % 16 == 0 ? 16 : width);
  };
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(task.factors, shape.k * shape.n));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(task.factors, shape.m * shape.k));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(task.result, shape.m * shape.n));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(task.result, shape.m * shape.n));
}

std::unique_ptr<ProductPlan> ProductPlan::choose(const char *node, const ProductTask &task, std::string &reason) {
  std::unique_ptr<ProductPlan> plan(new ProductPlan(task));
  plan->describe(node);
  Preference preference;
  plan->prefer(node, preference);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(Device::get().blas, plan->operation.handle, plan->b.handle, plan->a.handle,
                                     plan->c.handle, plan->c.handle, preference.handle, 1, &found, &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
    reason = "cuBLASLt has no algorithm for " + task.text() + " bytes of workspace";
    return nullptr;
  }
  plan->algorithm = found.algo;
  return plan;
}

void ProductPlan::run(const char *node, cudaStream_t stream, float alpha, const ProductTensors &at) const {
  auto set = [&](cublasLtMatmulDescAttributes_t attribute, const void *address) {
    check(cublasLtMatmulDescSetAttribute(operation.handle, attribute, &address, sizeof address), node, "run");
  };
  const EpilogueFacts &facts = factsOf(task.epilogue);
  if (facts.vector)
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, at.vector);
  if (facts.x)
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, at.x);
  const float added = at.addend ? 1 : 0;
  check(cublasLtMatmul(Device::get().blas, operation.handle, &alpha, at.b, b.handle, at.a, a.handle, &added,
                       at.addend ? at.addend : at.c, c.handle, at.c, c.handle, &algorithm, at.scratch, task.workspace,
                       stream),
        node, "run");
}

} // namespace sluice
