// SPDX-License-Identifier: Apache-2.0
// A matrix product as cuBLASLt runs it, which thinks in columns: a row-major c = a b is its c' = b' a'. The algorithm
// is the first of cuBLASLt's own ranking that fits the workspace and adds in a fixed order.
#pragma once

#include "runtime/Kernels.h"
#include "runtime/kernels/MatmulShape.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <memory>

namespace sluice {

/// What is done to the sums of a product before they are stored. Gelu is the one by tanh; of x, the sums and the bias
/// before they are rounded, it stores x beside its result. GeluGradient multiplies by its slope at such an x; and adds
/// up each column of the result.
enum class ProductEpilogue { None, Bias, Gelu, GeluOfBias, GeluGradient, GeluGradientAndBias };

struct ProductTask {
  MatmulShape shape;
  bool transposeA = false, transposeB = false;
  Precision precision = Precision::FP32;
  DataType factors = DataType::F32, result = DataType::F32; ///< vectors and x have the result's type
  ProductEpilogue epilogue = ProductEpilogue::None;
  size_t workspace = 0;

  /// Says it all: products of one text are alike.
  std::string text() const;
};

/// Where a product's tensors lie.
struct ProductTensors {
  const void *a, *b;
  void *c, *scratch;
  const void *addend = nullptr; ///< of c's shape; c itself will do
  const void *vector = nullptr; ///< the bias, or where its gradient goes
  const void *x = nullptr;      ///< what Gelu is taken of, written or read
};

class ProductPlan {
public:
  /// Null, with a reason, where cuBLASLt has no algorithm for the task within its workspace. Throws DeviceError.
  static std::unique_ptr<ProductPlan> choose(const char *node, const ProductTask &task, std::string &reason);

  /// The `batch` products at these addresses.
  void run(const char *node, cudaStream_t stream, float alpha, const ProductTensors &at) const;

private:
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
  using Matrix = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
  using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
  using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

  explicit ProductPlan(const ProductTask &task) : task(task) {}
  void describe(const char *node);
  void describe(const char *node, Matrix &matrix, DataType type, int64_t rows, int64_t columns, int64_t step) const;
  void describeEpilogue(const char *node);
  void prefer(const char *node, Preference &preference) const;

  ProductTask task;
  Operation operation;
  Matrix a, b, c;
  cublasLtMatmulAlgo_t algorithm{};
};

} // namespace sluice
