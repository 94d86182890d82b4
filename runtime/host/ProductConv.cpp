// SPDX-License-Identifier: Apache-2.0
// See ProductConv.h.
#include "runtime/host/ProductConv.h"

#include "runtime/host/Dnnl.h"
#include "runtime/host/Parallel.h"

#include <algorithm>

namespace sluice {

using dnnl::memory;

namespace {

bool isPixelwise(const ConvGeometry &g, bool bias) {
  bool pixelwise = isHalf(g.type) && g.groups == 1 && g.pass != ConvPass::Forward && !bias;
  for (int i = 0, spatial = g.x.rank - 2; i < spatial; ++i)
    pixelwise = pixelwise && g.w[2 + i] == 1 && g.window.pads[i] == 0 && g.window.pads[spatial + i] == 0;
  return pixelwise;
}

/// The matrices of the product, and what oneDNN has for it.
struct Product {
  memory::desc left, right, result;
  dnnl::matmul::primitive_desc found;

  explicit Product(const ConvGeometry &g) {
    const memory::dim pixels = g.y.elements() / g.y[1], outs = g.w[0], ins = g.w[1];
    const auto type = dnnlType(g.type);
    if (g.pass == ConvPass::BackwardData) {
      left = {{pixels, outs}, type, memory::dims{outs, 1}};
      right = {{outs, ins}, type, memory::dims{ins, 1}};
      result = {{pixels, ins}, type, memory::dims{ins, 1}};
    } else {
      left = {{outs, pixels}, type, memory::dims{1, outs}};
      right = {{pixels, ins}, type, memory::dims{ins, 1}};
      result = {{outs, ins}, memory::data_type::f32, memory::dims{ins, 1}};
    }
    found = {dnnl::matmul::desc(left, right, result), userScratchpad(), dnnlEngine(), /*allow_empty=*/true};
  }
  std::string name() const {
    const std::string own = found ? found.impl_info_str() : "";
    return own.find("amx") != std::string::npos ? own : "";
  }
};

/// Pixels that windows see, of one image after the other as a volume.
class SeenPixels {
public:
  explicit SeenPixels(const ConvGeometry &whole) : g(whole.asVolume()) {
    for (int i = 0; i < 3; ++i)
      all = all && g.window.strides[i] == 1;
  }
  bool areAll() const { return all; }

  void gather(const uint16_t *x, uint16_t *to) const {
    eachLine([&](int64_t line, int64_t first) {
      for (int64_t at = 0; at < g.y[4]; ++at)
        std::copy_n(x + (first + at * g.window.strides[2]) * g.x[1], g.x[1], to + (line * g.y[4] + at) * g.x[1]);
    });
  }
  /// The others become zeros.
  void scatter(const uint16_t *from, uint16_t *x) const {
    const int64_t grain = 1 << 16;
    parallelRanges(g.x.elements(), grain, [&](int64_t begin, int64_t end) { std::fill(x + begin, x + end, 0); });
    eachLine([&](int64_t line, int64_t first) {
      for (int64_t at = 0; at < g.y[4]; ++at)
        std::copy_n(from + (line * g.y[4] + at) * g.x[1], g.x[1], x + (first + at * g.window.strides[2]) * g.x[1]);
    });
  }

private:
  /// Calls visit(line of y, pixel of x that its first one sees).
  template <typename Visit> void eachLine(Visit &&visit) const {
    parallelFor(g.y[0] * g.y[2] * g.y[3], [&](int64_t line) {
      const int64_t row = line % g.y[3] * g.window.strides[1], slice = line / g.y[3] % g.y[2] * g.window.strides[0];
      visit(line, ((line / g.y[3] / g.y[2] * g.x[2] + slice) * g.x[3] + row) * g.x[4]);
    });
  }

  ConvGeometry g;
  bool all = true;
};

class ProductConv : public ConvEngine {
public:
  ProductConv(const ConvGeometry &g, const Product &p)
      : forData(g.pass == ConvPass::BackwardData), seen(g), left(p.left), right(p.right), result(p.result),
        product([pd = p.found] { return dnnl::matmul(pd); }, p.found.scratchpad_desc()),
        gathered(seen.areAll() ? 0 : (forData ? result : right).get_size()) {}

  size_t workspaceBytes() const override { return scratchPart(gathered) + product.scratchpadBytes(); }

  void run(const void *dy, const void *second, void *to, float *, char *scratch) const override {
    auto *pixels = reinterpret_cast<uint16_t *>(scratch);
    if (!seen.areAll() && !forData)
      seen.gather(static_cast<const uint16_t *>(second), pixels);
    product.execute({{DNNL_ARG_SRC, &left, dy},
                     {DNNL_ARG_WEIGHTS, &right, seen.areAll() || forData ? second : scratch},
                     {DNNL_ARG_DST, &result, seen.areAll() || !forData ? to : scratch}},
                    scratch + scratchPart(gathered));
    if (!seen.areAll() && forData)
      seen.scatter(pixels, static_cast<uint16_t *>(to));
  }

private:
  bool forData;
  SeenPixels seen;
  memory::desc left, right, result;
  Primitive product;
  size_t gathered; ///< bytes
};

} // namespace

ProductConvOffer productConvOffer(const ConvGeometry &g, bool bias) {
  if (!isPixelwise(g, bias))
    return {};
  try {
    const Product product(g);
    const std::string name = product.name();
    return {name, name.empty() ? 0 : ProductConv(g, product).workspaceBytes()};
  } catch (const dnnl::error &) { // it has none at all
    return {};
  }
}

std::unique_ptr<ConvEngine> makeProductConv(const ConvGeometry &g, bool bias, const std::string &name) {
  if (!isPixelwise(g, bias))
    return nullptr;
  const Product product(g);
  return !name.empty() && product.name() == name ? std::make_unique<ProductConv>(g, product) : nullptr;
}

} // namespace sluice
