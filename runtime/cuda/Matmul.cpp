// SPDX-License-Identifier: Apache-2.0
// Matrix products through cuBLASLt (ProductPlan.h). The bias is its epilogue where it is one row, its matrix to add to
// where it is one of floats like the result, else a kernel of ours. Leading dimensions become one strided batch where
// both factors walk them evenly; what remains is a loop. Sums of halves are f32 and stored as halves or as they are;
// the epilogue's bias has the result's type.
#include "runtime/cuda/Cut.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/ProductPlan.h"
#include "runtime/cuda/Reduce.h"

namespace sluice {

struct Matmul::Impl {
  /// Owned by the kernel and by the list of what is to be built.
  struct Plan : Buildable {
    void build() override;
    bool epilogue() const { return task.epilogue == ProductEpilogue::Bias; }

    const char *node = nullptr;
    ProductTask task;
    std::unique_ptr<ProductPlan> product;
  };
  std::shared_ptr<Plan> plan;
  float alpha = 1;
};

void Matmul::Impl::Plan::build() {
  if (product)
    return;
  std::string reason;
  product = ProductPlan::choose(node, task, reason);
  if (!product)
    throw MemoryNotAvailable(std::string("CUDA cuBLASLt has no algorithm for '") + node + "' (" +
                             std::to_string(task.shape.m) + "x" + std::to_string(task.shape.k) + "x" +
                             std::to_string(task.shape.n) + ") within a workspace of " +
                             std::to_string(task.workspace) + " bytes; compile with a larger --workspace-limit");
}

Matmul::Matmul(Node node, Shape a, Shape b, Shape c, MatmulOptions options)
    : Kernel(node), impl(std::make_unique<Impl>()) {
  auto plan = std::make_shared<Impl::Plan>();
  plan->node = node;
  ProductTask &task = plan->task;
  task.shape = MatmulShape(node, a, b, c, options.transposeA, options.transposeB, options.beta, options.bias);
  task.shape.addToMatrix(options.alpha, options.result);
  task.transposeA = options.transposeA, task.transposeB = options.transposeB;
  task.precision = precision();
  task.factors = options.factors, task.result = options.result;
  // Of products with an extent of one PyTorch found cuBLASLt's ranking to fail once there is a bias.
  if (task.shape.rowBias && std::min({task.shape.m, task.shape.n, task.shape.k}) > 1)
    task.epilogue = ProductEpilogue::Bias;
  workspace = static_cast<size_t>(cuda::matmulScratch(grantedWorkspace(options.algorithm), a, b, c));
  task.workspace = workspace;
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
  const ProductTask &task = plan.task;
  const MatmulShape &shape = task.shape;
  assert((!shape.rowBias || bias.type == task.result) && "a row has the result's type");
  const auto width = static_cast<int64_t>(byteWidth(task.factors)),
             resultWidth = static_cast<int64_t>(byteWidth(task.result));
  stream.launch(node, "matmul", [&] {
    plan.build();
    for (int64_t i = 0; i < shape.loops; ++i) {
      ProductTensors at{pa + shape.offsetA(i) * width, pb + shape.offsetB(i) * width,
                        pc + i * shape.batch * shape.m * shape.n * resultWidth, pad};
      at.addend = shape.adds ? pBias : nullptr;
      at.vector = pBias;
      plan.product->run(node, native(stream), impl->alpha, at);
    }
    if (shape.ownBias || (shape.rowBias && !plan.epilogue()))
      addBias(native(stream), task.result, pc, shape.rows, shape.n,
              {shape.rowBias ? task.result : DataType::F32, pBias, shape.biasRows, shape.biasRowStep,
               shape.biasColumnStep, shape.beta});
  });
}

} // namespace sluice
