// SPDX-License-Identifier: Apache-2.0
// Matrix products through oneDNN's matmul. Leading dimensions of the left factor are folded into its rows where the
// right one has none: one large product instead of many small ones. The bias is added by oneDNN where it is one row,
// else by a loop of ours.
#include "runtime/Kernels.h"
#include "runtime/common/MatmulShape.h"
#include "runtime/host/Dnnl.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"

namespace sluice {

using dnnl::memory;

struct Matmul::Impl {
  memory::desc a, b, c, bias;
  Primitive product;
  bool fusedBias = false, ownBias = false;
  MatmulShape shape;

  void addBias(float *c, const float *bias) const {
    const int64_t columns = shape.n;
    parallelRanges(shape.rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, columns)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       const float *from = bias + row % shape.biasRows * shape.biasRowStep;
                       float *to = c + row * columns;
                       for (int64_t i = 0; i < columns; ++i)
                         to[i] += shape.beta * from[i * shape.biasColumnStep];
                     }
                   });
  }
};

namespace {

/// Extents and strides of op(m) with `rank` dimensions; missing leading ones have extent 1.
memory::desc operand(const Shape &shape, bool transpose, int rank) {
  memory::dims dims(static_cast<size_t>(rank), 1), strides(static_cast<size_t>(rank), 1);
  int64_t step = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    const auto to = static_cast<size_t>(rank - shape.rank + i);
    dims[to] = shape[i];
    strides[to] = step;
    step *= shape[i];
  }
  for (int i = rank - shape.rank - 1; i >= 0; --i)
    strides[static_cast<size_t>(i)] = step;
  if (transpose) {
    std::swap(dims[static_cast<size_t>(rank - 1)], dims[static_cast<size_t>(rank - 2)]);
    std::swap(strides[static_cast<size_t>(rank - 1)], strides[static_cast<size_t>(rank - 2)]);
  }
  return {dims, memory::data_type::f32, strides};
}

/// [B.., M, K] as [B*M, K].
Shape folded(const Shape &shape) { return {shape.elements() / shape[shape.rank - 1], shape[shape.rank - 1]}; }

} // namespace

Matmul::Matmul(const char *node, Shape a, Shape b, Shape c, bool transposeA, bool transposeB, float alpha, float beta,
               Shape bias, DataType factors, DataType result)
    : Kernel(node), impl(std::make_unique<Impl>()) {
  requireF32(node, factors);
  requireF32(node, result);
  impl->shape = MatmulShape(node, a, b, c, transposeA, transposeB, beta, bias);
  const bool fusedBias = impl->fusedBias = impl->shape.rowBias && alpha == 1;
  impl->ownBias = impl->shape.ownBias || (impl->shape.rowBias && !fusedBias);
  if (!transposeA && b.elements() == b[b.rank - 1] * b[b.rank - 2]) {
    a = folded(a), c = folded(c);
    b = {b[b.rank - 2], b[b.rank - 1]};
  }
  const int rank = std::max(std::max(a.rank, b.rank), c.rank);
  impl->a = operand(a, transposeA, rank);
  impl->b = operand(b, transposeB, rank);
  impl->c = operand(c, false, rank);
  dnnl::primitive_attr attributes = userScratchpad();
  if (alpha != 1)
    attributes.set_output_scales(0, {alpha});
  describe(node, "matrix product", [&] {
    if (fusedBias)
      impl->bias = operand({1, impl->shape.n}, false, rank);
    const dnnl::matmul::desc desc = fusedBias ? dnnl::matmul::desc(impl->a, impl->b, impl->bias, impl->c)
                                                    : dnnl::matmul::desc(impl->a, impl->b, impl->c);
    const dnnl::matmul::primitive_desc pd(desc, attributes, dnnlEngine());
    impl->product = Primitive([pd] { return dnnl::matmul(pd); }, pd.scratchpad_desc());
  });
  workspace = impl->product.scratchpadBytes();
}

Matmul::~Matmul() = default;
Matmul::Matmul(Matmul &&) = default;

void Matmul::run(Stream &stream, const Tensor &a, const Tensor &b, const Tensor &bias, const Tensor &c,
                 const Tensor &scratch) const {
  const float *pa = stream.data<float>(a), *pb = stream.data<float>(b), *pBias = stream.data<float>(bias);
  float *pc = stream.data<float>(c);
  void *pad = stream.address(scratch);
  stream.launch(node, "matmul", [impl = impl.get(), pa, pb, pBias, pc, pad] {
    if (impl->fusedBias)
      impl->product.execute({{DNNL_ARG_SRC, &impl->a, pa},
                             {DNNL_ARG_WEIGHTS, &impl->b, pb},
                             {DNNL_ARG_BIAS, &impl->bias, pBias},
                             {DNNL_ARG_DST, &impl->c, pc}},
                            pad);
    else
      impl->product.execute(
          {{DNNL_ARG_SRC, &impl->a, pa}, {DNNL_ARG_WEIGHTS, &impl->b, pb}, {DNNL_ARG_DST, &impl->c, pc}}, pad);
    if (impl->ownBias)
      impl->addBias(pc, pBias);
  });
}

} // namespace sluice
