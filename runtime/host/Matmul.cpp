// SPDX-License-Identifier: Apache-2.0
// Matrix products through oneDNN's matmul, or through ours ("blocked") where oneDNN has only its gemm, which allocates
// memory of its own, or none. Leading dimensions of the left factor are folded into its rows where the right one has
// none: one large product instead of many small ones. The bias is added by oneDNN where it is one row; a product is
// added to a bias that is a matrix like the result, which may be its bytes; any other bias is added by a loop of ours.
#include "runtime/host/MatmulEngine.h"

#include "runtime/host/BlockedMatmul.h"
#include "runtime/host/Dnnl.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Processor.h"
#include "runtime/host/TileForm.h"

#include <algorithm>

namespace sluice {

using dnnl::memory;

struct Matmul::Impl {
  memory::desc a, b, c, bias;
  Primitive product; ///< absent: ours
  BlockedMatmul own;
  bool fusedBias = false, ownBias = false;
  MatmulShape shape;
  float alpha = 1;
  DataType result = DataType::F32;

  template <typename C, typename B> void addBias(C *c, const B *bias) const {
    const int64_t columns = shape.n;
    parallelRanges(shape.rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, columns)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       const B *from = bias + row % shape.biasRows * shape.biasRowStep;
                       C *to = c + row * columns;
                       for (int64_t i = 0; i < columns; ++i)
                         store(to + i, widened(to[i]) + shape.beta * widened(from[i * shape.biasColumnStep]));
                     }
                   });
  }
  /// A row has the result's type, any other bias is of floats.
  void addBias(void *c, const void *bias) const {
    if (result == DataType::F32)
      addBias(static_cast<float *>(c), static_cast<const float *>(bias));
    else if (shape.rowBias)
      addBias(static_cast<BFloat16 *>(c), static_cast<const BFloat16 *>(bias));
    else
      addBias(static_cast<BFloat16 *>(c), static_cast<const float *>(bias));
  }
  /// What the product is added to is in c, where it often is already.
  void begin(const void *pBias, void *pc) const {
    if (!shape.adds || pBias == pc)
      return;
    const auto *from = static_cast<const float *>(pBias);
    auto *to = static_cast<float *>(pc);
    parallelRanges(shape.rows * shape.n, 16384,
                   [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
  }
  void run(const void *pa, const void *pb, const void *pBias, void *pc, void *pad) const {
    begin(pBias, pc);
    if (!product)
      own.run(pa, pb, alpha, fusedBias ? pBias : nullptr, pc, pad);
    else if (fusedBias)
      product.execute(
          {{DNNL_ARG_SRC, &a, pa}, {DNNL_ARG_WEIGHTS, &b, pb}, {DNNL_ARG_BIAS, &bias, pBias}, {DNNL_ARG_DST, &c, pc}},
          pad);
    else
      product.execute({{DNNL_ARG_SRC, &a, pa}, {DNNL_ARG_WEIGHTS, &b, pb}, {DNNL_ARG_DST, &c, pc}}, pad);
    if (ownBias)
      addBias(pc, pBias);
  }
};

namespace {

/// Extents and strides of op(m) with `rank` dimensions; missing leading ones have extent 1.
memory::desc operand(const Shape &shape, bool transpose, int rank, DataType type) {
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
  return {dims, dnnlType(type), strides};
}

/// [B.., M, K] as [B*M, K].
Shape folded(const Shape &shape) { return {shape.elements() / shape[shape.rank - 1], shape[shape.rank - 1]}; }

/// The product as oneDNN takes it.
struct Description {
  memory::desc a, b, c, bias;
  dnnl::primitive_attr attributes;

  Description(const MatmulGeometry &g, const MatmulShape &shape) : attributes(userScratchpad()) {
    Shape left = g.a, right = g.b, result = g.c;
    if (!g.options.transposeA && right.elements() == right[right.rank - 1] * right[right.rank - 2]) {
      left = folded(left), result = folded(result);
      right = {right[right.rank - 2], right[right.rank - 1]};
    }
    const int rank = std::max(std::max(left.rank, right.rank), result.rank);
    a = operand(left, g.options.transposeA, rank, g.options.factors);
    b = operand(right, g.options.transposeB, rank, g.options.factors);
    c = operand(result, false, rank, g.options.result);
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

static MatmulShape shapeOf(const char *node, const MatmulGeometry &g) {
  const MatmulOptions &options = g.options;
  MatmulShape shape(node, g.a, g.b, g.c, options.transposeA, options.transposeB, options.beta, options.bias);
  shape.addToMatrix(options.alpha, options.result);
  return shape;
}

std::vector<MatmulCandidate> matmulCandidates(const MatmulGeometry &g) {
  const MatmulShape shape = shapeOf("", g);
  std::vector<MatmulCandidate> candidates;
  dnnl::matmul::primitive_desc found;
  if (tile::asksVendor() && Description(g, shape).find("", found))
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

Matmul::Matmul(Node node, Shape a, Shape b, Shape c, MatmulOptions options)
    : Kernel(node), impl(std::make_unique<Impl>()) {
  refuseF16(node, options.factors);
  refuseF16(node, options.result);
  const std::string name = options.algorithm.name;
  const MatmulShape shape = impl->shape = shapeOf(node, {a, b, c, options});
  impl->alpha = options.alpha, impl->result = options.result;
  impl->ownBias = shape.ownBias || shape.rowBias;
  describe(node, "matrix product", [&] {
    const Description description({a, b, c, options}, shape);
    dnnl::matmul::primitive_desc pd;
    if (name != blockedMatmul && description.find(name.c_str(), pd)) {
      impl->a = description.a, impl->b = description.b, impl->c = description.c, impl->bias = description.bias;
      impl->fusedBias = !description.bias.is_zero();
      impl->ownBias = impl->ownBias && !impl->fusedBias;
      impl->product = Primitive([pd] { return dnnl::matmul(pd); }, pd.scratchpad_desc());
    } else if (!name.empty() && name != blockedMatmul) {
      throw MemoryNotAvailable(std::string("'") + node + "': this processor does not offer the algorithm '" + name +
                               "'; compile the model again on it");
    }
  });
  if (!impl->product) {
    impl->fusedBias = shape.rowBias && isHalf(options.factors);
    impl->ownBias = impl->ownBias && !impl->fusedBias;
    impl->own = BlockedMatmul(shape, options.transposeA, options.transposeB, options.factors, options.result);
  }
  workspace = impl->product ? impl->product.scratchpadBytes() : impl->own.workspaceBytes();
}

Matmul::~Matmul() = default;
Matmul::Matmul(Matmul &&) = default;

void Matmul::run(Stream &stream, const Tensor &a, const Tensor &b, const Tensor &bias, const Tensor &c,
                 const Tensor &scratch) const {
  const void *pa = stream.address(a), *pb = stream.address(b), *pBias = stream.address(bias);
  void *pc = stream.address(c), *pad = stream.address(scratch);
  stream.launch(node, "matmul", [impl = impl.get(), pa, pb, pBias, pc, pad] { impl->run(pa, pb, pBias, pc, pad); });
}

} // namespace sluice
