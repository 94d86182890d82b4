// SPDX-License-Identifier: Apache-2.0
// Products with cuBLASLt's epilogues of Gelu. Where it has no algorithm for one, a product that stores what it gives
// and the regions that fuse makes of train.gelu and train.gelu_backward, whose bits are those of --epilogues=none; a
// bias's gradient, summed in float, is rounded as the epilogue's is.
#include "runtime/MatmulGelu.h"

#include "runtime/Fused.h"
#include "runtime/cuda/ProductPlan.h"
#include "runtime/cuda/SharedEngine.h"

#include <stdexcept>

namespace sluice {

namespace {

SLUICE_KERNEL float shareBelow(float x) { return logistic(1.5957691216f * (x + 0.044715f * (x * (x * x)))); }
SLUICE_KERNEL float slopeAt(float x) {
  const float below = shareBelow(x);
  const float density = 2.0f * below * (1.0f - below) * (0.7978845608f * (1.0f + 0.134145f * (x * x)));
  return below + x * density;
}

template <DataType Half> struct Gelu {
  static constexpr int inputs = 1, outputs = 1, sums = 0;
  static constexpr DataType types[] = {Half, Half};
  SLUICE_KERNEL Values<1> operator()(float x) const { return {{x * shareBelow(x)}}; }
};
template <DataType Half> struct GeluGradient {
  static constexpr int inputs = 2, outputs = 1, sums = 0;
  static constexpr DataType types[] = {Half, Half, Half};
  SLUICE_KERNEL Values<1> operator()(float dy, float x) const { return {{dy * slopeAt(x)}}; }
};
template <DataType Half> struct GeluGradientWithSum {
  static constexpr int inputs = 2, outputs = 1, sums = 1;
  static constexpr DataType types[] = {Half, Half, Half};
  SLUICE_KERNEL Values<2> operator()(float dy, float x) const {
    const float dx = dy * slopeAt(x);
    return {{dx, dx}};
  }
};

/// What runs after a product that has no epilogue.
struct After {
  virtual ~After() = default;
  /// y = gelu(x)
  virtual void forward(Stream &stream, const Tensor &x, const Tensor &y) const = 0;
  /// dx *= slope at x; `sum`: of its columns, none where the kernel has none
  virtual void backward(Stream &stream, const Tensor &x, const Tensor &dx, const Tensor &sum,
                        const Tensor &scratch) const = 0;
};

template <DataType Half> struct AfterOf : After {
  AfterOf(Node node, const Shape &c, bool bias)
      : gelu(node, c, Layout::RowMajor, {of(c)}, {of(c)}, {}),
        gradient(node, c, Layout::RowMajor, {of(c), of(c)}, {of(c)}, {}),
        gradientWithSum(node, c, Layout::RowMajor, {of(c), of(c)}, {of(c)}, {device(0, {c[1]})}), bias(bias) {}

  void forward(Stream &stream, const Tensor &x, const Tensor &y) const override {
    gelu.run(stream, {x}, {y}, {}, none);
  }
  void backward(Stream &stream, const Tensor &x, const Tensor &dx, const Tensor &sum,
                const Tensor &scratch) const override {
    if (bias)
      gradientWithSum.run(stream, {dx, x}, {dx}, {sum}, scratch);
    else
      gradient.run(stream, {dx, x}, {dx}, {}, none);
  }

  static Tensor of(const Shape &shape) { return device(0, shape, Layout::RowMajor, Half); }
  Fused<Gelu<Half>> gelu;
  Fused<GeluGradient<Half>> gradient;
  Fused<GeluGradientWithSum<Half>> gradientWithSum;
  bool bias;
};

void checkAligned(const char *node, const Shape &a, const Shape &b, const Shape &c, DataType type) {
  bool whole = isHalf(type);
  for (const Shape *shape : {&a, &b, &c})
    whole = whole && shape->rank == 2 && (*shape)[0] > 1 && (*shape)[1] % 8 == 0;
  if (!whole)
    throw std::invalid_argument(std::string("matrix product '") + node +
                                "' with Gelu: matrices are not of 16 bits, or have rows of no whole 16 bytes");
}

} // namespace

/// The plan with the epilogue, and what stands in for it.
struct MatmulGelu::Impl : Buildable {
  Impl(Node node, const Shape &a, const Shape &b, const Shape &c, const MatmulGeluOptions &options)
      : node(node), a(a), b(b), c(c), options(options) {
    const int64_t limit = grantedWorkspace(options.algorithm);
    scratch = cuda::matmulGeluScratch(limit, a, b, c, options.gradient && options.bias);
    ProductTask task;
    task.shape = MatmulShape(node, a, b, c, options.transposeA, options.transposeB, 1,
                             options.bias && !options.gradient ? Shape{c[1]} : Shape{});
    task.transposeA = options.transposeA, task.transposeB = options.transposeB;
    task.precision = precision();
    task.factors = task.result = options.type;
    task.workspace = static_cast<size_t>(cuda::matmulScratch(limit, a, b, c));
    task.epilogue = options.gradient
                        ? (options.bias ? ProductEpilogue::GeluGradientAndBias : ProductEpilogue::GeluGradient)
                        : (options.bias ? ProductEpilogue::GeluOfBias : ProductEpilogue::Gelu);
    const std::string name = node.name;
    shared = SharedEngine<ProductPlan>::of(task.text(), node,
                                           "leaves Gelu to a kernel of its own: ", [task, name](std::string &reason) {
                                             return ProductPlan::choose(name.c_str(), task, reason);
                                           });
  }

  void build() override {
    if (shared->get() || product)
      return;
    product = std::make_unique<Matmul>(node, a, b, c,
                                       MatmulOptions()
                                           .withTransposeA(options.transposeA)
                                           .withTransposeB(options.transposeB)
                                           .withBias(options.bias && !options.gradient ? Shape{c[1]} : Shape{})
                                           .withAlgorithm(options.algorithm)
                                           .withFactors(options.type)
                                           .withResult(options.type));
    if (options.type == DataType::F16)
      after = std::make_unique<AfterOf<DataType::F16>>(node, c, options.bias);
    else
      after = std::make_unique<AfterOf<DataType::BF16>>(node, c, options.bias);
    rounding = std::make_unique<Reorder>(node, device(0, {c[1]}), device(0, {c[1]}, Layout::RowMajor, options.type),
                                         std::initializer_list<int>());
  }
  /// Null where there is none; also of objects that buildPrimitives() never saw.
  const ProductPlan *plan() {
    build();
    return shared->get();
  }

  Node node;
  Shape a, b, c;
  MatmulGeluOptions options;
  int64_t scratch = 0;
  std::shared_ptr<SharedEngine<ProductPlan>> shared;
  std::unique_ptr<Matmul> product; ///< null: the plan, as what comes after it
  std::unique_ptr<After> after;
  std::unique_ptr<Reorder> rounding;
};

MatmulGelu::MatmulGelu(Node node, Shape a, Shape b, Shape c, MatmulGeluOptions options) : Kernel(node) {
  checkAligned(node, a, b, c, options.type);
  impl = std::make_shared<Impl>(node, a, b, c, options);
  workspace = static_cast<size_t>(impl->scratch);
  buildLater(impl);
}

MatmulGelu::~MatmulGelu() = default;
MatmulGelu::MatmulGelu(MatmulGelu &&) = default;

void MatmulGelu::forward(Stream &stream, const Tensor &a, const Tensor &b, const Tensor &bias, const Tensor &y,
                         const Tensor &x, const Tensor &scratch) const {
  const ProductPlan *plan = impl->plan();
  if (!plan) {
    impl->product->run(stream, a, b, bias, x, scratch);
    return impl->after->forward(stream, x, y);
  }
  ProductTensors at{stream.address(a), stream.address(b), stream.address(y), stream.address(scratch)};
  at.vector = stream.address(bias), at.x = stream.address(x);
  stream.launch(node, "matmul_gelu", [&] { plan->run(node, native(stream), 1, at); });
}

void MatmulGelu::backward(Stream &stream, const Tensor &a, const Tensor &b, const Tensor &x, const Tensor &dx,
                          const Tensor &dbias, const Tensor &scratch) const {
  const ProductPlan *plan = impl->plan();
  if (!plan) {
    impl->product->run(stream, a, b, none, dx, scratch);
    const Tensor sum = as(piece(scratch, static_cast<size_t>(cuda::matmulGeluPartials(impl->c))), {impl->c[1]});
    impl->after->backward(stream, x, dx, sum, scratch);
    if (impl->options.bias)
      impl->rounding->run(stream, sum, dbias);
    return;
  }
  ProductTensors at{stream.address(a), stream.address(b), stream.address(dx), stream.address(scratch)};
  at.vector = stream.address(dbias), at.x = stream.address(x);
  stream.launch(node, "matmul_gelu_backward", [&] { plan->run(node, native(stream), 1, at); });
}

} // namespace sluice
