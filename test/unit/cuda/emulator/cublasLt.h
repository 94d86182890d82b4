// SPDX-License-Identifier: Apache-2.0
// The part of cuBLASLt that runtime/cuda uses: products of column-major matrices by three loops in double. Of bf16
// factors it takes what the real one takes: two of them, a result of either type, a bias of the result's type where no
// extent is one, Gelu of halves where rows are whole multiples of 16 bytes; and a workspace at a multiple of 256 bytes.
#pragma once

#include "cuda_runtime.h"
#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/Float16.h"

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32 };
enum cudaDataType { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasLtEpilogue_t {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_GELU_AUX = 32 | 128,
  CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 32 | 128 | 4,
  CUBLASLT_EPILOGUE_DGELU = 64 | 128,
  CUBLASLT_EPILOGUE_DGELU_BGRAD = 64 | 128 | 16
};
enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_TRANSA,
  CUBLASLT_MATMUL_DESC_TRANSB,
  CUBLASLT_MATMUL_DESC_EPILOGUE,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD
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
  void *bias = nullptr, *aux = nullptr;
  int64_t auxLeading = 0;

  bool has(int bit) const { return (epilogue & bit) != 0; }
  bool isGelu() const { return has(32); }
  bool isSlope() const { return has(64); }
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
  void *const places[] = {&of->a, &of->b, &of->epilogue, &of->bias, &of->aux, &of->auxLeading};
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
/// EMULATED_EPILOGUES=0: there are none of Gelu.
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t *,
                                                     int *count) {
  *count = product->has(128) && emulated("EMULATED_EPILOGUES", 1) == 0 ? 0 : 1;
  return *count ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/// The products of a batch, each element's sum and what the epilogue makes of it.
struct EmulatedMatmul {
  EmulatedProduct p;
  EmulatedMatrix la, lb, ld;
  const void *a, *b, *c;
  void *d;
  double factor, added;
  int64_t inner = p.a == CUBLAS_OP_T ? la.rows : la.columns;

  void check() const {
    const bool turnA = p.a == CUBLAS_OP_T, turnB = p.b == CUBLAS_OP_T;
    if (inner != (turnB ? lb.columns : lb.rows) || ld.rows != (turnA ? la.columns : la.rows) ||
        ld.columns != (turnB ? lb.rows : lb.columns) || la.type != lb.type ||
        (la.type == CUDA_R_32F && ld.type != CUDA_R_32F))
      abort();
    if (p.epilogue != CUBLASLT_EPILOGUE_DEFAULT && (ld.rows == 1 || ld.columns == 1 || inner == 1))
      abort();
    const auto whole = [](const void *from, int64_t leading) {
      return reinterpret_cast<size_t>(from) % 16 == 0 && leading % 8 == 0;
    };
    if (p.has(128) &&
        (la.type == CUDA_R_32F || ld.type != la.type || ld.count != 1 || added != 0 || p.auxLeading < ld.rows ||
         !whole(p.aux, p.auxLeading) || !whole(a, la.leading) || !whole(b, lb.leading) || !whole(d, ld.leading)))
      abort();
  }
  double sum(int32_t i, int64_t row, int64_t column) const {
    double result = 0;
    for (int64_t k = 0; k < inner; ++k)
      result += la.at(a, i * la.stride + (p.a == CUBLAS_OP_T ? k + row * la.leading : row + k * la.leading)) *
                lb.at(b, i * lb.stride + (p.b == CUBLAS_OP_T ? column + k * lb.leading : k + column * lb.leading));
    return result;
  }
  /// Before it is stored.
  double element(int32_t i, int64_t row, int64_t column) const {
    const double bias = p.has(4) ? ld.at(p.bias, row) : 0;
    const double before = added == 0 ? 0 : added * ld.at(c, i * ld.stride + row + column * ld.leading);
    const double x = factor * sum(i, row, column) + before + bias;
    const int64_t place = row + column * p.auxLeading;
    if (p.isGelu())
      ld.put(p.aux, place, static_cast<float>(x));
    return p.isGelu() ? x * below(x) : p.isSlope() ? x * slope(ld.at(p.aux, place)) : x;
  }
  static double below(double x) { return 0.5 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
  static double slope(double x) {
    const double p = below(x);
    return p + x * 2 * p * (1 - p) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
  }

  void run() const {
    check();
    for (int32_t i = 0; i < ld.count; ++i)
      for (int64_t row = 0; row < ld.rows; ++row) {
        double total = 0;
        for (int64_t column = 0; column < ld.columns; ++column) {
          const double value = element(i, row, column);
          ld.put(d, i * ld.stride + row + column * ld.leading, static_cast<float>(value));
          total += value;
        }
        if (p.has(16))
          ld.put(p.bias, row, static_cast<float>(total));
      }
  }
};

/// d = alpha op(a) op(b) + beta c, and the epilogue.
inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void *alpha, const void *a,
                                     cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb,
                                     const void *beta, const void *c, cublasLtMatrixLayout_t, void *d,
                                     cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *, void *workspace, size_t,
                                     cudaStream_t stream) {
  if (reinterpret_cast<size_t>(workspace) % 256)
    abort();
  const EmulatedMatmul matmul{*product,
                              *la,
                              *lb,
                              *ld,
                              a,
                              b,
                              c,
                              d,
                              static_cast<double>(*static_cast<const float *>(alpha)),
                              static_cast<double>(*static_cast<const float *>(beta))};
  emulator::enqueue(stream, [matmul] { matmul.run(); });
  return CUBLAS_STATUS_SUCCESS;
}
