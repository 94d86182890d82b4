// SPDX-License-Identifier: Apache-2.0
// The part of cuBLASLt that runtime/cuda uses: products of column-major matrices by three loops in double. Of bf16
// factors it takes what the real one takes: two of them, a result of either type, a bias of the result's type where no
// extent is one; and a workspace at a multiple of 256 bytes.
#pragma once

#include "cuda_runtime.h"
#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/Float16.h"

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32 };
enum cudaDataType { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasLtEpilogue_t { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4 };
enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_TRANSA,
  CUBLASLT_MATMUL_DESC_TRANSB,
  CUBLASLT_MATMUL_DESC_EPILOGUE,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER
};
enum cublasLtMatrixLayoutAttribute_t {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
};
enum cublasLtMatmulPreferenceAttributes_t {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
};
constexpr unsigned CUBLASLT_REDUCTION_SCHEME_MASK = 7, CUBLASLT_REDUCTION_SCHEME_INPLACE = 1,
                   CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4;

struct EmulatedProduct {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
};
struct EmulatedMatrix {
  cudaDataType type;
  int64_t rows, columns, leading, stride = 0;
  int32_t count = 1;

  double at(const void *data, int64_t i) const {
    return static_cast<double>(type == CUDA_R_16BF  ? sluice::widened(static_cast<const sluice::BFloat16 *>(data)[i])
                               : type == CUDA_R_16F ? sluice::widened(static_cast<const sluice::Float16 *>(data)[i])
                                                    : static_cast<const float *>(data)[i]);
  }
  void put(void *data, int64_t i, float value) const {
    if (type == CUDA_R_16BF)
      static_cast<sluice::BFloat16 *>(data)[i] = sluice::bfloat16Of(value);
    else if (type == CUDA_R_16F)
      static_cast<sluice::Float16 *>(data)[i] = sluice::float16Of(value);
    else
      static_cast<float *>(data)[i] = value;
  }
};
using cublasLtHandle_t = struct cublasLtContext *;
using cublasLtMatmulDesc_t = EmulatedProduct *;
using cublasLtMatrixLayout_t = EmulatedMatrix *;
using cublasLtMatmulPreference_t = int *;
struct cublasLtMatmulAlgo_t {};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
};

inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *) { return CUBLAS_STATUS_SUCCESS; }
inline const char *cublasLtGetStatusString(cublasStatus_t) { return ""; }
inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *to, cublasComputeType_t, cudaDataType) {
  return *to = new EmulatedProduct, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t of) { return delete of, CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of, cublasLtMatmulDescAttributes_t attribute,
                                                     const void *value, size_t bytes) {
  void *const places[] = {&of->a, &of->b, &of->epilogue, &of->bias};
  memcpy(places[attribute], value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *to, cudaDataType type, uint64_t rows,
                                                 uint64_t columns, int64_t leading) {
  *to = new EmulatedMatrix{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t of) {
  return delete of, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t of,
                                                       cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                       size_t bytes) {
  memcpy(attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? static_cast<void *>(&of->count) : &of->stride, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *to) {
  return *to = nullptr, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                           cublasLtMatmulPreferenceAttributes_t, const void *, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                                                     cublasLtMatmulHeuristicResult_t *, int *count) {
  return *count = 1, CUBLAS_STATUS_SUCCESS;
}

/// d = alpha op(a) op(b) + beta c + bias, each product of a batch in turn.
inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void *alpha, const void *a,
                                     cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb,
                                     const void *beta, const void *c, cublasLtMatrixLayout_t, void *d,
                                     cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *, void *workspace, size_t,
                                     cudaStream_t stream) {
  if (reinterpret_cast<size_t>(workspace) % 256)
    abort();
  const float factor = *static_cast<const float *>(alpha), added = *static_cast<const float *>(beta);
  emulator::enqueue(stream, [=, p = *product, la = *la, lb = *lb, ld = *ld] {
    const bool turnA = p.a == CUBLAS_OP_T, turnB = p.b == CUBLAS_OP_T;
    const int64_t inner = turnA ? la.rows : la.columns;
    if (inner != (turnB ? lb.columns : lb.rows) || ld.rows != (turnA ? la.columns : la.rows) ||
        ld.columns != (turnB ? lb.rows : lb.columns))
      abort();
    if (la.type != lb.type || (la.type == CUDA_R_32F && ld.type != CUDA_R_32F) ||
        (p.epilogue == CUBLASLT_EPILOGUE_BIAS && (ld.rows == 1 || ld.columns == 1 || inner == 1)))
      abort();
    for (int32_t i = 0; i < ld.count; ++i)
      for (int64_t column = 0; column < ld.columns; ++column)
        for (int64_t row = 0; row < ld.rows; ++row) {
          double sum = 0;
          for (int64_t k = 0; k < inner; ++k)
            sum += la.at(a, i * la.stride + (turnA ? k + row * la.leading : row + k * la.leading)) *
                   lb.at(b, i * lb.stride + (turnB ? column + k * lb.leading : k + column * lb.leading));
          const double bias = p.epilogue == CUBLASLT_EPILOGUE_BIAS ? ld.at(p.bias, row) : 0;
          const int64_t place = i * ld.stride + row + column * ld.leading;
          const double before = added == 0 ? 0 : static_cast<double>(added) * ld.at(c, place);
          ld.put(d, place, static_cast<float>(static_cast<double>(factor) * sum + before + bias));
        }
  });
  return CUBLAS_STATUS_SUCCESS;
}
