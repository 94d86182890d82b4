// SPDX-License-Identifier: Apache-2.0
// See MatmulProduct.h and MatmulEngine.h. Leading dimensions of the left factor are folded into its rows where the
// right one has none: one large product instead of many small ones.
#include "runtime/host/MatmulProduct.h"

#include "runtime/host/ElementTypes.h"
#include "runtime/host/Processor.h"
#include "runtime/host/TileForm.h"

#include <algorithm>

namespace sluice {

using dnnl::memory;

namespace {

/// Extents and strides of op(m) with `rank` dimensions; missing leading ones have extent 1. Rows begin `step` elements
/// apart, 0: one after another.
memory::desc operand(const Shape &shape, bool transpose, int rank, DataType type, int64_t step = 0) {
  memory::dims dims(static_cast<size_t>(rank), 1), strides(static_cast<size_t>(rank), 1);
  int64_t next = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    const auto to = static_cast<size_t>(rank - shape.rank + i);
    dims[to] = shape[i];
    strides[to] = next;
    next *= i == shape.rank - 1 && step ? step : shape[i];
  }
  for (int i = rank - shape.rank - 1; i >= 0; --i)
    strides[static_cast<size_t>(i)] = next;
  if (transpose) {
    std::swap(dims[static_cast<size_t>(rank - 1)], dims[static_cast<size_t>(rank - 2)]);
    std::swap(strides[static_cast<size_t>(rank - 1)], strides[static_cast<size_t>(rank - 2)]);
  }
  return {dims, dnnlType(type), strides};
}

/// [B.., M, K] as [B*M, K].
Shape folded(const Shape &shape) { return {shape.elements() / shape[shape.rank - 1], shape[shape.rank - 1]}; }

/// The product as oneDNN takes it.
struct Description {
  memory::desc a, b, c, bias;
  dnnl::primitive_attr attributes;

  Description(const MatmulGeometry &g, const MatmulShape &shape, int64_t step) : attributes(userScratchpad()) {
    Shape left = g.a, right = g.b, result = g.c;
    if (!g.options.transposeA && right.elements() == right[right.rank - 1] * right[right.rank - 2]) {
      left = folded(left), result = folded(result);
      right = {right[right.rank - 2], right[right.rank - 1]};
    }
    const int rank = std::max(std::max(left.rank, right.rank), result.rank);
    a = operand(left, g.options.transposeA, rank, g.options.factors);
    b = operand(right, g.options.transposeB, rank, g.options.factors);
    c = operand(result, false, rank, g.options.result, step);
    if (g.options.alpha != 1)
      attributes.set_output_scales(0, {g.options.alpha});
    if (shape.adds) {
      dnnl::post_ops sum;
      sum.append_sum(1);
      attributes.set_post_ops(sum);
    }
    if (shape.rowBias && g.options.alpha == 1)
      bias = operand({1, shape.n}, false, rank, g.options.result);
  }
  /// The first implementation of that name, or of any; one that allocates on its own does not count.
  bool find(const char *name, dnnl::matmul::primitive_desc &found) const {
    const dnnl::matmul::desc desc = bias.is_zero() ? dnnl::matmul::desc(a, b, c) : dnnl::matmul::desc(a, b, bias, c);
    dnnl::matmul::primitive_desc pd(desc, attributes, dnnlEngine(), /*allow_empty=*/true);
    if (!pd)
      return false;
    do {
      const std::string own = pd.impl_info_str();
      const bool allocates = own.find("gemm") != std::string::npos, slow = own.find("ref") != std::string::npos;
      if (!allocates && !slow && (!*name || own == name)) {
        found = pd;
        return true;
      }
    } while (pd.next_impl());
    return false;
  }
};

} // namespace

/// Whether the rate of products of bf16 is what counts: those with a thin side wait for memory.
static bool computesInHalves(const MatmulGeometry &g, const MatmulShape &shape) {
  return isHalf(g.options.factors) && std::min({shape.m, shape.n, shape.k}) >= 64;
}

MatmulShape shapeOf(const char *node, const MatmulGeometry &g) {
  const MatmulOptions &options = g.options;
  MatmulShape shape(node, g.a, g.b, g.c, options.transposeA, options.transposeB, options.beta, options.bias);
  shape.addToMatrix(options.alpha, options.result);
  return shape;
}

std::vector<MatmulCandidate> matmulCandidates(const MatmulGeometry &g) {
  const MatmulShape shape = shapeOf("", g);
  std::vector<MatmulCandidate> candidates;
  dnnl::matmul::primitive_desc found;
  if (tile::asksVendor() && Description(g, shape, 0).find("", found))
    candidates.push_back({found.impl_info_str(), found.scratchpad_desc().get_size(), 1});
  const BlockedMatmul own(shape, g.options.transposeA, g.options.transposeB, g.options.factors, g.options.result);
  candidates.push_back({blockedMatmul, own.workspaceBytes(), candidates.empty() ? 1.2 : 1.6});
  if (candidates.size() > 1 && computesInHalves(g, shape)) {
    candidates[0].slowness = slownessOfHalves(candidates[0].name.c_str());
    candidates[1].slowness = 1.2; // beside floats, as measured with AVX-512
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const MatmulCandidate &a, const MatmulCandidate &b) { return a.slowness < b.slowness; });
  return candidates;
}

MatmulProduct::MatmulProduct(Node node, const MatmulGeometry &g, int64_t step) : alpha(g.options.alpha) {
  refuseF16(node, g.options.factors);
  refuseF16(node, g.options.result);
  const std::string name = g.options.algorithm.name;
  const MatmulShape shape = shapeOf(node, g);
  describe(node, "matrix product", [&] {
    const Description description(g, shape, step);
    dnnl::matmul::primitive_desc pd;
    if (name != blockedMatmul && description.find(name.c_str(), pd)) {
      a = description.a, b = description.b, c = description.c, bias = description.bias;
      row = !description.bias.is_zero();
      product = Primitive([pd] { return dnnl::matmul(pd); }, pd.scratchpad_desc());
    } else if (!name.empty() && name != blockedMatmul) {
      throw MemoryNotAvailable(std::string("'") + node + "': this processor does not offer the algorithm '" + name +
                               "'; compile the model again on it");
    }
  });
  if (product)
    return;
  row = shape.rowBias && isHalf(g.options.factors);
  own = BlockedMatmul(shape, g.options.transposeA, g.options.transposeB, g.options.factors, g.options.result, step);
}

size_t MatmulProduct::workspaceBytes() const { return product ? product.scratchpadBytes() : own.workspaceBytes(); }

void MatmulProduct::run(const void *pa, const void *pb, const void *pBias, void *pc, void *pad) const {
  if (!product)
    own.run(pa, pb, alpha, row ? pBias : nullptr, pc, pad);
  else if (row)
    product.execute(
        {{DNNL_ARG_SRC, &a, pa}, {DNNL_ARG_WEIGHTS, &b, pb}, {DNNL_ARG_BIAS, &bias, pBias}, {DNNL_ARG_DST, &c, pc}},
        pad);
  else
    product.execute({{DNNL_ARG_SRC, &a, pa}, {DNNL_ARG_WEIGHTS, &b, pb}, {DNNL_ARG_DST, &c, pc}}, pad);
}

} // namespace sluice
