// SPDX-License-Identifier: Apache-2.0
// Convolutions by the algorithm that the program names, see ConvEngine.h. Layers of one shape share one engine (and its
// compiled code).
#include "runtime/host/ConvEngine.h"
#include "runtime/host/Dnnl.h"
#include "runtime/host/ElementTypes.h"

#include <map>
#include <mutex>

namespace sluice {

/// What all convolutions of one geometry and algorithm share.
struct Conv::Impl {
  std::unique_ptr<ConvEngine> engine;
};

namespace {

using Key = std::pair<std::vector<int64_t>, std::string>;

Key keyOf(const ConvGeometry &g, bool bias, const Algorithm &algorithm) {
  std::vector<int64_t> key{
      static_cast<int64_t>(g.pass), static_cast<int64_t>(g.type), g.groups, bias, threads(), algorithm.parts};
  for (const Shape *shape : {&g.x, &g.w, &g.y})
    key.insert(key.end(), shape->dims, shape->dims + shape->rank);
  for (int i = 0, spatial = g.x.rank - 2; i < spatial; ++i)
    key.insert(key.end(), {g.window.strides[i], g.window.dilations[i], g.window.pads[i], g.window.pads[i + spatial]});
  return {std::move(key), algorithm.name};
}

/// Without a name: the fastest, whatever workspace it needs.
std::shared_ptr<Conv::Impl> describeConvolution(const ConvGeometry &g, bool bias, const Algorithm &algorithm) {
  static std::mutex mutex;
  static std::map<Key, std::shared_ptr<Conv::Impl>> known;
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Conv::Impl> &impl = known[keyOf(g, bias, algorithm)];
  if (impl)
    return impl;
  auto fresh = std::make_shared<Conv::Impl>();
  fresh->engine = *algorithm.name ? makeConvEngine(g, bias, algorithm)
                                  : makeConvEngine(g, bias, convCandidates(g, bias).front().algorithm());
  return impl = fresh;
}

} // namespace

Conv::Conv(Node node, ConvPass pass, Shape x, Shape w, Shape y, Window window, ConvOptions options) : Kernel(node) {
  refuseF16(node, options.type);
  checkConvolution(node, x, w, y, window, options.groups);
  const ConvGeometry geometry{pass, x, w, y, window, options.groups, options.type};
  const bool bias = options.bias && pass != ConvPass::BackwardData;
  impl = describe(node, "convolution", [&] { return describeConvolution(geometry, bias, options.algorithm); });
  workspace = impl->engine->workspaceBytes();
}

Conv::~Conv() = default;
Conv::Conv(Conv &&) = default;

void Conv::forward(Stream &stream, const Tensor &x, const Tensor &w, const Tensor &bias, const Tensor &y,
                   const Tensor &scratch) const {
  const void *px = stream.address(x), *pw = stream.address(w);
  void *py = stream.address(y);
  float *pb = stream.data<float>(bias);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv", [impl = impl.get(), px, pw, pb, py, part] { impl->engine->run(px, pw, py, pb, part); });
}

void Conv::backwardData(Stream &stream, const Tensor &dy, const Tensor &w, const Tensor &dx,
                        const Tensor &scratch) const {
  const void *pdy = stream.address(dy), *pw = stream.address(w);
  void *pdx = stream.address(dx);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv_backward_data",
                [impl = impl.get(), pdy, pw, pdx, part] { impl->engine->run(pdy, pw, pdx, nullptr, part); });
}

void Conv::backwardWeight(Stream &stream, const Tensor &dy, const Tensor &x, const Tensor &dw, const Tensor &dbias,
                          const Tensor &scratch) const {
  const void *pdy = stream.address(dy), *px = stream.address(x);
  float *pdw = stream.data<float>(dw), *pdb = stream.data<float>(dbias);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv_backward_weight",
                [impl = impl.get(), pdy, px, pdw, pdb, part] { impl->engine->run(pdy, px, pdw, pdb, part); });
}

} // namespace sluice
