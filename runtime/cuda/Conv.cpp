// SPDX-License-Identifier: Apache-2.0
// Convolutions through cuDNN's graph API, the only file that includes its frontend. Activations are NHWC and weights
// [O,H,W,I], to which each call turns them inside scratch: [turned weights | the engine's workspace]. In BF16 they come in
// that order, and the weight gradient leaves the engine in bf16, as PyTorch has it: engines that store f32 from bf16
// factors are few and not promised, while a kernel must turn, and so can widen, the gradient anyway; sums are f32 within
// the engine. Convolutions of one geometry share one plan. The engine is the first of cuDNN's own ranking that is deterministic, has the precision asked
// for and fits the workspace, so that it depends on geometry and workspace alone. Those that use tensor cores pad an
// image's three channels in the workspace, for the whole batch: where only slower ones fit, or none, the batch is cut into
// halves, quarters and so on. Where there is none at all our own direct kernels run.
#include "runtime/common/Windows.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/DirectConv.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Reduce.h"

#include <cudnn_frontend.h>
#include <limits>
#include <map>
#include <vector>

namespace sluice {

namespace fe = cudnn_frontend;

namespace {

std::vector<int64_t> dims(const Shape &shape) { return {shape.dims, shape.dims + 4}; }
/// Strides of [N,C,H,W] in NHWC order, and of [O,I,H,W] in OHWI order.
std::vector<int64_t> channelsLast(const Shape &s) { return {s[1] * s[2] * s[3], 1, s[1] * s[3], s[1]}; }

enum Uid : int64_t { First = 1, Second, Result };

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

fe::DataType_t typeOf(const ConvGeometry &g) {
  return g.type == DataType::BF16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::FLOAT;
}

fe::graph::Tensor_attributes tensor(const ConvGeometry &g, const char *name, const Shape &shape, Uid uid) {
  return fe::graph::Tensor_attributes()
      .set_name(name)
      .set_dim(dims(shape))
      .set_stride(channelsLast(shape))
      .set_uid(uid)
      .set_data_type(typeOf(g));
}

template <typename Attributes> Attributes windowed(const Window &w) {
  return Attributes()
      .set_pre_padding({w.pads[0], w.pads[1]})
      .set_post_padding({w.pads[2], w.pads[3]})
      .set_stride({w.strides[0], w.strides[1]})
      .set_dilation({w.dilations[0], w.dilations[1]});
}

} // namespace

/// What all convolutions of one geometry share.
struct Conv::Impl : Buildable {
  Impl(const char *node, const ConvGeometry &geometry, int64_t engineBytes, Precision precision)
      : node(node), geometry(geometry), engineBytes(engineBytes), precision(precision) {}

  void build() override;
  bool takes(std::string &reason) const;
  bool splitsInto(int64_t parts) const;
  /// The first engine for one of `parts` equal parts of the batch that takes `bytes` at most; null where there is none.
  std::unique_ptr<fe::graph::Graph> choose(int64_t parts, int64_t bytes, bool tensorCores) const;
  /// The engine where the best one for the whole batch does not fit; sets `parts`.
  std::unique_ptr<fe::graph::Graph> chooseSmaller();
  void describe(fe::graph::Graph &graph, int64_t parts) const;
  /// Engines that may run: no atomics, sums in f32, inputs as they are (tensor cores drop digits of f32, others turn it
  /// into f16, which overflows); with FP32 no tensor cores.
  void restrict(fe::graph::Graph &graph, bool tensorCores) const;
  void run(cudaStream_t stream, const void *first, const void *second, void *result, char *scratch) const;

  std::string node; ///< the first of this geometry, for messages
  ConvGeometry geometry;
  int64_t engineBytes;
  Precision precision;
  bool built = false;
  int64_t parts = 1; ///< of the batch, one run of the engine each
  std::unique_ptr<fe::graph::Graph> graph; ///< null once built: our own kernels
};

void Conv::Impl::describe(fe::graph::Graph &described, int64_t parts) const {
  ConvGeometry g = geometry;
  g.x.dims[0] /= parts, g.y.dims[0] /= parts;
  described.set_io_data_type(typeOf(g))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  std::shared_ptr<fe::graph::Tensor_attributes> result;
  if (g.pass == ConvPass::Forward)
    result = described.conv_fprop(described.tensor(tensor(g, "x", g.x, First)), described.tensor(tensor(g, "w", g.w, Second)),
                                  windowed<fe::graph::Conv_fprop_attributes>(g.window));
  else if (g.pass == ConvPass::BackwardData)
    result =
        described.conv_dgrad(described.tensor(tensor(g, "dy", g.y, First)), described.tensor(tensor(g, "w", g.w, Second)),
                             windowed<fe::graph::Conv_dgrad_attributes>(g.window));
  else
    result =
        described.conv_wgrad(described.tensor(tensor(g, "dy", g.y, First)), described.tensor(tensor(g, "x", g.x, Second)),
                             windowed<fe::graph::Conv_wgrad_attributes>(g.window));
  const Shape &shape = g.pass == ConvPass::Forward ? g.y : g.pass == ConvPass::BackwardData ? g.x : g.w;
  result->set_output(true)
      .set_dim(dims(shape))
      .set_stride(channelsLast(shape))
      .set_uid(Result)
      .set_data_type(typeOf(g));
}

void Conv::Impl::restrict(fe::graph::Graph &chosen, bool tensorCores) const {
  std::vector<fe::NumericalNote_t> unwanted = {fe::NumericalNote_t::NONDETERMINISTIC,
                                               fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION,
                                               fe::NumericalNote_t::DOWN_CONVERT_INPUTS};
  if (precision == Precision::FP32)
    unwanted.push_back(fe::NumericalNote_t::TENSOR_CORE);
  chosen.deselect_numeric_notes(unwanted);
  if (tensorCores)
    chosen.select_numeric_notes({fe::NumericalNote_t::TENSOR_CORE});
}

/// Whether cuDNN knows such convolutions, whatever its engines need.
bool Conv::Impl::takes(std::string &reason) const {
  fe::graph::Graph whole;
  describe(whole, 1);
  auto taken = whole.validate();
  if (taken.is_good())
    taken = whole.build_operation_graph(Device::get().cudnn);
  reason = taken.is_bad() ? "cuDNN does not take it (" + taken.get_message() + ")"
                          : "cuDNN has no deterministic engine for it within " + std::to_string(engineBytes) +
                                " bytes of workspace; a larger --workspace-limit may help";
  return taken.is_good();
}

/// Every part begins where engines may expect it to, at a multiple of 16 bytes; parts of dw are added as they are turned.
bool Conv::Impl::splitsInto(int64_t parts) const {
  const ConvGeometry &g = geometry;
  for (const Shape *shape : {&g.x, &g.y})
    if ((*shape)[0] % parts || shape->elements() / parts * static_cast<int64_t>(byteWidth(g.type)) % 16)
      return false;
  return g.pass != ConvPass::BackwardWeight || cuda::turnedWeights(g.w, g.pass, g.type) > 0;
}

std::unique_ptr<fe::graph::Graph> Conv::Impl::choose(int64_t parts, int64_t bytes, bool tensorCores) const {
  cudnnHandle_t handle = Device::get().cudnn;
  auto candidate = std::make_unique<fe::graph::Graph>();
  describe(*candidate, parts);
  if (candidate->validate().is_bad() || candidate->build_operation_graph(handle).is_bad() ||
      candidate->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad())
    return nullptr;
  restrict(*candidate, tensorCores);
  candidate->deselect_workspace_greater_than(bytes);
  for (int64_t i = 0; i < candidate->get_execution_plan_count(); ++i)
    if (candidate->build_plan_at_index(handle, i).is_good() && candidate->get_workspace_size() <= bytes)
      return candidate;
  return nullptr;
}

// Grouped convolutions have good engines without tensor cores. Where there are none to use, the best engines turn their
// operands to NCHW in the workspace, and what is ranked last is slower than any number of parts.
std::unique_ptr<fe::graph::Graph> Conv::Impl::chooseSmaller() {
  auto split = [&](auto &&choice) {
    for (parts = 1;; parts *= 2)
      if (std::unique_ptr<fe::graph::Graph> found = choice(); found || !splitsInto(2 * parts))
        return found;
  };
  std::unique_ptr<fe::graph::Graph> found;
  if (precision != Precision::FP32 && geometry.groups == 1)
    found = split([&] { return choose(parts, engineBytes, true); });
  if (!found)
    found = split([&] {
      auto best = choose(parts, unlimited, false);
      return best && best->get_workspace_size() <= engineBytes ? std::move(best) : nullptr;
    });
  return found ? std::move(found) : split([&] { return choose(parts, engineBytes, false); });
}

void Conv::Impl::build() {
  if (built)
    return;
  built = true;
  std::string reason;
  if (takes(reason))
    graph = choose(parts, unlimited, false);
  if (graph && graph->get_workspace_size() > engineBytes)
    graph = chooseSmaller();
  if (!graph)
    noteFallback(node, reason);
}

void Conv::Impl::run(cudaStream_t stream, const void *first, const void *second, void *result, char *scratch) const {
  const ConvGeometry &g = geometry;
  if (!built)
    const_cast<Impl *>(this)->build();
  if (!graph)
    return directConvolution(stream, g, first, second, result);
  const int64_t turned = cuda::turnedWeights(g.w, g.pass, g.type), window = g.w[2] * g.w[3];
  const bool backwardWeight = g.pass == ConvPass::BackwardWeight;
  if (turned && !backwardWeight) {
    turnWeights(stream, g.type, second, reinterpret_cast<float *>(scratch), g.w[0], g.w[1], window, false);
    second = scratch;
  }
  char *target = turned && backwardWeight ? scratch : static_cast<char *>(result);
  cudnnHandle_t handle = Device::get().cudnn;
  if (cudnnSetStream(handle, stream) != CUDNN_STATUS_SUCCESS)
    throw DeviceError("CUDA cuDNN does not take the stream");
  const int64_t width = static_cast<int64_t>(byteWidth(g.type)), partX = g.x.elements() / parts * width,
                partY = g.y.elements() / parts * width;
  for (int64_t part = 0; part < parts; ++part) {
    auto at = [&](const void *data, int64_t bytes) { return static_cast<char *>(const_cast<void *>(data)) + part * bytes; };
    const bool forward = g.pass == ConvPass::Forward;
    std::unordered_map<int64_t, void *> pack = {{First, at(first, forward ? partX : partY)},
                                                {Second, at(second, backwardWeight ? partX : 0)},
                                                {Result, at(target, backwardWeight ? 0 : forward ? partY : partX)}};
    if (auto status = graph->execute(handle, pack, scratch + turned); status.is_bad())
      throw DeviceError("CUDA cuDNN cannot run a convolution: " + status.get_message());
    if (target != result)
      turnWeights(stream, g.type, scratch, static_cast<float *>(result), g.w[0], g.w[1], window, true, part > 0);
  }
}

namespace {

std::vector<int64_t> keyOf(const ConvGeometry &g, int64_t engineBytes, Precision precision) {
  std::vector<int64_t> key{static_cast<int64_t>(g.pass), g.groups, engineBytes, static_cast<int64_t>(precision), static_cast<int64_t>(g.type)};
  for (const Shape *shape : {&g.x, &g.w, &g.y})
    key.insert(key.end(), shape->dims, shape->dims + 4);
  for (int i = 0; i < 2; ++i)
    key.insert(key.end(), {g.window.strides[i], g.window.dilations[i], g.window.pads[i], g.window.pads[i + 2]});
  return key;
}

/// Never destroyed: from 9.10 on cuDNN may crash when plans are while the process ends, where CUDA has gone already.
std::shared_ptr<Conv::Impl> shared(const char *node, const ConvGeometry &geometry, int64_t engineBytes) {
  static auto &known = *new std::map<std::vector<int64_t>, std::shared_ptr<Conv::Impl>>;
  std::shared_ptr<Conv::Impl> &slot = known[keyOf(geometry, engineBytes, precision())];
  if (!slot) {
    slot = std::make_shared<Conv::Impl>(node, geometry, engineBytes, precision());
    buildLater(slot);
  }
  return slot;
}

} // namespace

Conv::Conv(const char *node, ConvPass pass, Shape x, Shape w, Shape y, Window window, int64_t groups, bool bias,
           DataType type)
    : Kernel(node) {
  checkConvolution(node, x, w, y, window, groups);
  const auto limit = static_cast<int64_t>(workspaceLimit());
  workspace = static_cast<size_t>(cuda::convolutionScratch(limit, pass, x, w, y, bias, type));
  impl = shared(node, {pass, x, w, y, window, groups, type},
                static_cast<int64_t>(workspace) - cuda::turnedWeights(w, pass, type));
}

Conv::~Conv() = default;
Conv::Conv(Conv &&) = default;

void Conv::forward(Stream &stream, const Tensor &x, const Tensor &w, const Tensor &bias, const Tensor &y,
                   const Tensor &scratch) const {
  const void *px = stream.address(x), *pw = stream.address(w);
  const float *pb = stream.data<float>(bias);
  void *py = stream.address(y);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv", [&] {
    impl->run(native(stream), px, pw, py, part);
    const Shape &shape = impl->geometry.y;
    if (pb)
      addBias(native(stream), y.type, py, pb, shape.elements() / shape[1], shape[1], 1, 0, 1, 1);
  });
}

void Conv::backwardData(Stream &stream, const Tensor &dy, const Tensor &w, const Tensor &dx,
                        const Tensor &scratch) const {
  const void *pdy = stream.address(dy), *pw = stream.address(w);
  void *pdx = stream.address(dx);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv_backward_data", [&] { impl->run(native(stream), pdy, pw, pdx, part); });
}

void Conv::backwardWeight(Stream &stream, const Tensor &dy, const Tensor &x, const Tensor &dw, const Tensor &dbias,
                          const Tensor &scratch) const {
  const void *pdy = stream.address(dy), *px = stream.address(x);
  float *pdw = stream.data<float>(dw), *pdb = stream.data<float>(dbias);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv_backward_weight", [&] {
    impl->run(native(stream), pdy, px, pdw, part);
    const Shape &shape = impl->geometry.y;
    if (pdb) // behind the engine, whose workspace it takes over
      columnSums(native(stream), shape.elements() / shape[1], shape[1], dy.type, pdy, reinterpret_cast<double *>(part),
                 pdb);
  });
}

} // namespace sluice
