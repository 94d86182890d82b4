// SPDX-License-Identifier: Apache-2.0
// Through cuDNN's graph API.
#include "runtime/cuda/ConvEngine.h"

#include "runtime/cuda/Cut.h"
#include "runtime/cuda/DescribedDevice.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace sluice {

namespace fe = cudnn_frontend;

namespace {

std::vector<int64_t> dims(const Shape &shape) { return {shape.dims, shape.dims + shape.rank}; }
/// Strides of [N,C,H,W] in NHWC order, and of [O,I,H,W] in OHWI order; of volumes alike.
std::vector<int64_t> channelsLast(const Shape &s) {
  std::vector<int64_t> strides = dims(s);
  int64_t step = 1;
  for (int place = s.rank - 1; place >= 0; --place) {
    const int d = dimensionAt(place, s.rank, Layout::NHWC);
    strides[static_cast<size_t>(d)] = step;
    step *= s[d];
  }
  return strides;
}

enum Uid : int64_t { First = 1, Second, Result, More };

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

fe::DataType_t typeOf(const ConvGeometry &g) {
  return g.type == DataType::BF16  ? fe::DataType_t::BFLOAT16
         : g.type == DataType::F16 ? fe::DataType_t::HALF
                                   : fe::DataType_t::FLOAT;
}

fe::graph::Tensor_attributes tensor(const ConvGeometry &g, const char *name, const Shape &shape, Uid uid) {
  return fe::graph::Tensor_attributes()
      .set_name(name)
      .set_dim(dims(shape))
      .set_stride(channelsLast(shape))
      .set_uid(uid)
      .set_data_type(typeOf(g));
}

template <typename Attributes> Attributes windowed(const ConvGeometry &g) {
  const Window &w = g.window;
  const int spatial = g.x.rank - 2;
  auto list = [spatial](const int64_t *from) { return std::vector<int64_t>(from, from + spatial); };
  return Attributes()
      .set_pre_padding(list(w.pads))
      .set_post_padding(list(w.pads + spatial))
      .set_stride(list(w.strides))
      .set_dilation(list(w.dilations));
}

using TensorPointer = std::shared_ptr<fe::graph::Tensor_attributes>;

/// Adds an epilogue to a graph whose convolution has the shape `image`.
class EpilogueGraph {
public:
  EpilogueGraph(fe::graph::Graph &graph, const ConvGeometry &geometry, const Shape &image)
      : graph(graph), geometry(geometry), image(image), channels{1, image[1], 1, 1} {}

  /// Sums of y and of its squares.
  void statistics(const TensorPointer &y) {
    sum(y);
    sum(both(fe::PointwiseMode_t::MUL, y, y));
  }
  /// The masked gradient, with its operands and sums in the order of Epilogue.
  TensorPointer gradient(TensorPointer dx, bool ofSum) {
    auto z = tensor(geometry, "z", image, next()), x = tensor(geometry, "x", image, next());
    const TensorPointer input = graph.tensor(x), mean = vector("mean"), rstd = vector("rstd"), sign = graph.tensor(z);
    const Uid dscale = next(), dbias = next();
    if (ofSum)
      dx = both(fe::PointwiseMode_t::ADD, virtualImage(dx), graph.tensor(tensor(geometry, "addend", image, next())));
    const TensorPointer dz = both(fe::PointwiseMode_t::RELU_BWD, virtualImage(dx), sign);
    const TensorPointer xhat = both(fe::PointwiseMode_t::MUL, both(fe::PointwiseMode_t::SUB, input, mean), rstd);
    sum(both(fe::PointwiseMode_t::MUL, dz, xhat), dscale);
    sum(dz, dbias);
    return dz;
  }

private:
  Uid next() { return static_cast<Uid>(More + used++); }
  TensorPointer virtualImage(const TensorPointer &t) const {
    t->set_dim(dims(image)).set_stride(channelsLast(image));
    return t;
  }
  TensorPointer both(fe::PointwiseMode_t mode, const TensorPointer &a, const TensorPointer &b) const {
    return virtualImage(graph.pointwise(a, b, fe::graph::Pointwise_attributes().set_mode(mode)));
  }
  TensorPointer vector(const char *name) {
    return graph.tensor(tensor(geometry, name, channels, next()).set_data_type(fe::DataType_t::FLOAT));
  }
  void sum(const TensorPointer &of, Uid uid) const {
    graph
        .reduction(of, fe::graph::Reduction_attributes().set_mode(fe::ReductionMode_t::ADD).set_is_deterministic(true))
        ->set_output(true)
        .set_dim(dims(channels))
        .set_stride(channelsLast(channels))
        .set_uid(uid)
        .set_data_type(fe::DataType_t::FLOAT);
  }
  void sum(const TensorPointer &of) { sum(of, next()); }

  fe::graph::Graph &graph;
  const ConvGeometry &geometry;
  const Shape image, channels;
  int64_t used = 0;
};

/// The search for one engine.
struct Choice {
  bool takes(std::string &reason) const;
  bool splitsInto(int64_t count) const;
  /// The first engine for one part of the batch that takes `bytes` at most; null where there is none.
  std::unique_ptr<fe::graph::Graph> choose(int64_t bytes, bool tensorCores) const;
  /// The engine where the best one for the whole batch does not fit; sets `parts`.
  std::unique_ptr<fe::graph::Graph> chooseSmaller();
  /// The convolution of one part, with its epilogue.
  void describe(fe::graph::Graph &graph) const;
  /// Engines that may run: no atomics, sums in f32, inputs as they are (tensor cores drop digits of f32, others turn it
  /// into f16, which overflows); with FP32 no tensor cores.
  void restrict(fe::graph::Graph &graph, bool tensorCores) const;

  const ConvGeometry &geometry;
  const int64_t granted; ///< bytes of workspace
  const Precision precision;
  const std::shared_ptr<fe::DeviceProperties> device; ///< null: the present one
  cudnnHandle_t handle;                               ///< null with a described device
  const Epilogue epilogue;
  int64_t parts = 1; ///< equal ones, of the batch
};

void Choice::describe(fe::graph::Graph &described) const {
  ConvGeometry g = geometry;
  if (device)
    described.set_device_properties(device);
  g.x.dims[0] /= parts, g.y.dims[0] /= parts;
  described.set_io_data_type(typeOf(g))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  std::shared_ptr<fe::graph::Tensor_attributes> result;
  if (g.pass == ConvPass::Forward)
    result = described.conv_fprop(described.tensor(tensor(g, "x", g.x, First)),
                                  described.tensor(tensor(g, "w", g.w, Second)),
                                  windowed<fe::graph::Conv_fprop_attributes>(g));
  else if (g.pass == ConvPass::BackwardData)
    result = described.conv_dgrad(described.tensor(tensor(g, "dy", g.y, First)),
                                  described.tensor(tensor(g, "w", g.w, Second)),
                                  windowed<fe::graph::Conv_dgrad_attributes>(g));
  else
    result = described.conv_wgrad(described.tensor(tensor(g, "dy", g.y, First)),
                                  described.tensor(tensor(g, "x", g.x, Second)),
                                  windowed<fe::graph::Conv_wgrad_attributes>(g));
  const Shape &shape = g.pass == ConvPass::Forward ? g.y : g.pass == ConvPass::BackwardData ? g.x : g.w;
  if (epilogue == Epilogue::Statistics)
    EpilogueGraph(described, g, shape).statistics(result);
  else if (epilogue != Epilogue::None)
    result = EpilogueGraph(described, g, shape).gradient(result, epilogue == Epilogue::GradientOfSum);
  result->set_output(true)
      .set_dim(dims(shape))
      .set_stride(channelsLast(shape))
      .set_uid(Result)
      .set_data_type(typeOf(g));
}

void Choice::restrict(fe::graph::Graph &chosen, bool tensorCores) const {
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
bool Choice::takes(std::string &reason) const {
  fe::graph::Graph whole;
  describe(whole);
  auto taken = whole.validate();
  if (taken.is_good())
    taken = whole.build_operation_graph(handle);
  reason = taken.is_bad() ? "cuDNN does not take it (" + taken.get_message() + ")"
                          : "cuDNN has no deterministic engine for it within " + std::to_string(granted) +
                                " bytes of workspace; a larger --workspace-limit may help";
  return taken.is_good();
}

/// Every part begins where engines may expect it to, at a multiple of 16 bytes; parts of dw are added as they are
/// rotated.
bool Choice::splitsInto(int64_t count) const {
  const ConvGeometry &g = geometry;
  for (const Shape *shape : {&g.x, &g.y})
    if ((*shape)[0] % count || shape->elements() / count * static_cast<int64_t>(byteWidth(g.type)) % 16)
      return false;
  return g.pass != ConvPass::BackwardWeight || cuda::rotatedWeights(g.w, g.pass, g.type) > 0;
}

std::unique_ptr<fe::graph::Graph> Choice::choose(int64_t bytes, bool tensorCores) const {
  auto candidate = std::make_unique<fe::graph::Graph>();
  describe(*candidate);
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
std::unique_ptr<fe::graph::Graph> Choice::chooseSmaller() {
  auto split = [&](auto &&choice) {
    for (parts = 1;; parts *= 2)
      if (std::unique_ptr<fe::graph::Graph> found = choice(); found || !splitsInto(2 * parts))
        return found;
  };
  std::unique_ptr<fe::graph::Graph> found;
  if (precision != Precision::FP32 && geometry.groups == 1)
    found = split([&] { return choose(granted, true); });
  if (!found)
    found = split([&] {
      auto best = choose(unlimited, false);
      return best && best->get_workspace_size() <= granted ? std::move(best) : nullptr;
    });
  return found ? std::move(found) : split([&] { return choose(granted, false); });
}

} // namespace

struct ConvEngine::Plan {
  std::unique_ptr<fe::graph::Graph> graph;
};

ConvEngine::ConvEngine(const ConvGeometry &geometry, int64_t count, std::unique_ptr<Plan> plan)
    : geometry(geometry), count(count), plan(std::move(plan)) {}
ConvEngine::~ConvEngine() = default;

std::unique_ptr<ConvEngine> ConvEngine::choose(const ConvGeometry &geometry, int64_t bytes, Precision precision,
                                               std::string &reason, const std::string &device, Epilogue epilogue) {
  if (epilogue != Epilogue::None &&
      std::min<size_t>(CUDNN_VERSION, cudnnGetVersion()) < 91100) { // atomics add its sums
    reason = "cuDNN 9.11 or newer is needed for it";
    return nullptr;
  }
  std::shared_ptr<fe::DeviceProperties> described;
  if (!device.empty() && !(described = describedDevice(device, reason)))
    return nullptr;
  Choice choice{geometry, bytes, precision, described, described ? nullptr : Device::get().cudnn, epilogue};
  if (!choice.takes(reason))
    return nullptr;
  auto graph = choice.choose(epilogue == Epilogue::None ? unlimited : bytes, false);
  if (graph && graph->get_workspace_size() > bytes)
    graph = choice.chooseSmaller();
  if (!graph)
    return nullptr;
  return std::unique_ptr<ConvEngine>(
      new ConvEngine(geometry, choice.parts, std::make_unique<Plan>(Plan{std::move(graph)})));
}

std::vector<int64_t> engineKey(const ConvGeometry &g, int64_t bytes, Precision precision, Epilogue epilogue) {
  std::vector<int64_t> key{
      static_cast<int64_t>(g.pass),  g.groups, bytes, static_cast<int64_t>(precision), static_cast<int64_t>(g.type),
      static_cast<int64_t>(epilogue)};
  for (const Shape *shape : {&g.x, &g.w, &g.y})
    key.insert(key.end(), shape->dims, shape->dims + shape->rank);
  for (int i = 0, spatial = g.x.rank - 2; i < spatial; ++i)
    key.insert(key.end(), {g.window.strides[i], g.window.dilations[i], g.window.pads[i], g.window.pads[i + spatial]});
  return key;
}

int64_t ConvEngine::workspaceBytes() const { return plan->graph->get_workspace_size(); }

std::string ConvEngine::name() const {
  std::string name;
  return plan->graph->get_plan_name(name).is_good() ? name : "";
}

void ConvEngine::run(cudaStream_t stream, int64_t part, const void *first, const void *second, void *result,
                     void *workspace, std::initializer_list<const void *> more) const {
  const ConvGeometry &g = geometry;
  cudnnHandle_t handle = Device::get().cudnn;
  if (cudnnSetStream(handle, stream) != CUDNN_STATUS_SUCCESS)
    throw DeviceError("CUDA cuDNN does not take the stream");
  const int64_t width = static_cast<int64_t>(byteWidth(g.type)), partX = g.x.elements() / count * width,
                partY = g.y.elements() / count * width;
  auto at = [&](const void *data, int64_t bytes) {
    return static_cast<char *>(const_cast<void *>(data)) + part * bytes;
  };
  const bool forward = g.pass == ConvPass::Forward, backwardWeight = g.pass == ConvPass::BackwardWeight;
  std::unordered_map<int64_t, void *> pack = {{First, at(first, forward ? partX : partY)},
                                              {Second, at(second, backwardWeight ? partX : 0)},
                                              {Result, at(result, backwardWeight ? 0
                                                                  : forward      ? partY
                                                                                 : partX)}};
  for (size_t i = 0; i < more.size(); ++i)
    pack[More + static_cast<int64_t>(i)] = const_cast<void *>(more.begin()[i]);
  if (auto status = plan->graph->execute(handle, pack, workspace); status.is_bad())
    throw DeviceError("CUDA cuDNN cannot run a convolution: " + status.get_message());
}

} // namespace sluice
