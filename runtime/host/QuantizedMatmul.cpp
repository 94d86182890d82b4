// SPDX-License-Identifier: Apache-2.0
// Products by weights in fewer bits: the floats of so many columns of the right factor as stay in a cache are made in
// scratch, and multiplied by there.
#include "runtime/host/MatmulBias.h"
#include "runtime/host/MatmulProduct.h"
#include "runtime/host/RestoredRows.h"

namespace sluice {

namespace {

constexpr int64_t blockBytes = 4 << 20, threadBytes = 1 << 20; ///< for all threads, and as much for each of many
constexpr int64_t columnStep = 192;                            ///< two blocks of BlockedMatmul

MatmulGeometry geometryOf(const Shape &a, const Shape &b, const MatmulOptions &options) {
  Shape c = a;
  c.dims[c.rank - 1] = b[options.transposeB ? 0 : 1];
  return {a, b, c, options};
}

/// How a product is cut: equal blocks of columns, and what is left.
struct Cut {
  int64_t depth, columns, each;
  MatmulGeometry whole;
  bool addsRow, addsMatrix;

  explicit Cut(const char *node, const MatmulGeometry &g) : whole(g) {
    const MatmulShape shape = shapeOf(node, g);
    depth = shape.k, columns = shape.n;
    const int64_t bytes = std::max(blockBytes, threads() * threadBytes),
                  fit = bytes / (depth * static_cast<int64_t>(byteWidth(g.options.factors)));
    each = std::min(columns, std::max<int64_t>(1, fit / columnStep) * columnStep);
    addsRow = shape.rowBias, addsMatrix = shape.adds;
    whole.a = {shape.rows, depth};
  }
  int64_t rest() const { return columns % each; }
  MatmulProduct restProduct(Node node) const {
    return rest() ? MatmulProduct(node, block(rest()), columns) : MatmulProduct();
  }
  size_t blockSize() const { return scratchPart(static_cast<size_t>(depth * each) * byteWidth(whole.options.factors)); }
  /// The product by so many columns.
  MatmulGeometry block(int64_t count) const {
    MatmulGeometry g = whole;
    g.b = whole.options.transposeB ? Shape{count, depth} : Shape{depth, count};
    g.c = {whole.a[0], count};
    g.options.bias = addsRow ? Shape{count} : addsMatrix ? g.c : Shape{};
    if (count != each && std::string(whole.options.algorithm.name) != blockedMatmul)
      g.options.algorithm.name = ""; // oneDNN may know another one for other extents
    return g;
  }
};

} // namespace

std::vector<MatmulCandidate> quantizedMatmulCandidates(const Shape &a, const Shape &b, const MatmulOptions &options) {
  Cut cut("", geometryOf(a, b, options));
  std::vector<MatmulCandidate> candidates = matmulCandidates(cut.block(cut.each));
  for (MatmulCandidate &candidate : candidates) {
    cut.whole.options.algorithm.name = candidate.name.c_str();
    candidate.workspace = cut.blockSize() + std::max(candidate.workspace, cut.restProduct("").workspaceBytes());
  }
  return candidates;
}

struct QuantizedMatmul::Impl {
  Quantization form;
  Cut cut;
  MatmulProduct equal, last;
  MatmulBias bias;

  template <typename T> void restore(const char *from, int64_t column, int64_t count, T *to) const {
    if (cut.whole.options.transposeB)
      restoreRows(form, from, count, [column](int64_t i) { return column + i; }, 0, form.columns, to);
    else
      restoreRows(form, from, form.rows, [](int64_t i) { return i; }, column, column + count, to);
  }
  template <typename T> void run(const void *a, const char *from, const char *row, char *c, char *pad) const {
    const auto wide = static_cast<int64_t>(byteWidth(cut.whole.options.result));
    for (int64_t column = 0; column < cut.columns; column += cut.each) {
      const int64_t count = std::min(cut.each, cut.columns - column);
      restore(from, column, count, reinterpret_cast<T *>(pad));
      (count == cut.each ? equal : last)
          .run(a, pad, row ? row + column * wide : nullptr, c + column * wide, pad + cut.blockSize());
    }
  }
};

QuantizedMatmul::QuantizedMatmul(Node node, Shape a, Shape b, int64_t bits, int64_t group, int64_t dimension,
                                 Coding coding, QuantizedMatmulOptions options)
    : Kernel(node) {
  if (options.transposeA)
    throw std::invalid_argument(std::string("'") + node + "': the left factor of a weight in fewer bits is transposed");
  const Quantization form = formOf(node, b, bits, group, dimension, coding);
  const MatmulGeometry geometry = geometryOf(a, b, options);
  const Cut cut(node, geometry);
  impl = std::make_unique<Impl>(
      Impl{form, cut, MatmulProduct(node, cut.block(cut.each), cut.columns), cut.restProduct(node), {}});
  impl->bias = MatmulBias(shapeOf(node, geometry), options.result, impl->equal.addsRow());
  workspace = cut.blockSize() + std::max(impl->equal.workspaceBytes(), impl->last.workspaceBytes());
}

QuantizedMatmul::~QuantizedMatmul() = default;
QuantizedMatmul::QuantizedMatmul(QuantizedMatmul &&) = default;

void QuantizedMatmul::run(Stream &stream, const Tensor &a, const Tensor &form, const Tensor &bias, const Tensor &c,
                          const Tensor &scratch) const {
  const void *pa = stream.address(a);
  const char *from = static_cast<const char *>(stream.address(form)),
             *pBias = static_cast<const char *>(stream.address(bias));
  char *pc = static_cast<char *>(stream.address(c)), *pad = static_cast<char *>(stream.address(scratch));
  stream.launch(node, "quantized_matmul", [impl = impl.get(), pa, from, pBias, pc, pad] {
    impl->bias.begin(pBias, pc);
    if (impl->cut.whole.options.factors == DataType::BF16)
      impl->run<BFloat16>(pa, from, impl->equal.addsRow() ? pBias : nullptr, pc, pad);
    else
      impl->run<float>(pa, from, impl->equal.addsRow() ? pBias : nullptr, pc, pad);
    impl->bias.finish(pBias, pc);
  });
}

} // namespace sluice
