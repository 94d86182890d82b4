// SPDX-License-Identifier: Apache-2.0
// Through cuDNN's graph API.
#include "runtime/cuda/ConvEngine.h"

#include "runtime/cuda/ConvGraph.h"
#include "runtime/cuda/Cut.h"
#include "runtime/cuda/DescribedDevice.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/EngineTimes.h"

#include <algorithm>
#include <limits>
#include <set>

namespace sluice {

namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// The search for one engine.
struct Choice {
  using Graph = std::unique_ptr<fe::graph::Graph>;

  bool takes(std::string &reason) const;
  bool splitsInto(int64_t count) const;
  /// The first engine for one part of the batch that takes `bytes` at most; null where there is none.
  Graph choose(int64_t bytes, bool tensorCores) const;
  /// The engine where the best one for the whole batch does not fit; sets `parts`.
  Graph chooseSmaller();
  /// The engine of this name within what is granted; null where there is none.
  Graph named(const std::string &name) const;
  /// The engines for one part of the batch, ranked, none of them built yet; null where there are none.
  Graph ranked(int64_t bytes, bool tensorCores) const;
  /// Whether plan i is of an engine that takes such a convolution and computes another one.
  bool isWrong(const fe::graph::Graph &graph, int64_t i) const;
  /// The convolution of one part, with its epilogue.
  void describe(fe::graph::Graph &graph) const;
  /// Engines that may run: no atomics, sums in f32, inputs as they are (tensor cores drop digits of f32, others turn it
  /// into f16, which overflows); with FP32 no tensor cores.
  void restrict(fe::graph::Graph &graph, bool tensorCores) const;

  const ConvTask &task;
  const std::shared_ptr<fe::DeviceProperties> device; ///< null: the present one
  cudnnHandle_t handle;                               ///< null with a described device
  int64_t parts = 1;                                  ///< equal ones, of the batch
};

void Choice::describe(fe::graph::Graph &described) const {
  ConvGeometry g = task.geometry;
  if (device)
    described.set_device_properties(device);
  g.x.dims[0] /= parts, g.y.dims[0] /= parts;
  describeConvolution(described, g, task.epilogue);
}

void Choice::restrict(fe::graph::Graph &chosen, bool tensorCores) const {
  std::vector<fe::NumericalNote_t> unwanted = {fe::NumericalNote_t::NONDETERMINISTIC,
                                               fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION,
                                               fe::NumericalNote_t::DOWN_CONVERT_INPUTS};
  if (task.precision == Precision::FP32)
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
                          : "cuDNN has no deterministic engine for it within " + std::to_string(task.bytes) +
                                " bytes of workspace; a larger --workspace-limit may help";
  return taken.is_good();
}

/// Every part begins where engines may expect it to, at a multiple of 16 bytes; parts of dw are added as they are
/// rotated.
bool Choice::splitsInto(int64_t count) const {
  const ConvGeometry &g = task.geometry;
  for (const Shape *shape : {&g.x, &g.y})
    if ((*shape)[0] % count || shape->elements() / count * static_cast<int64_t>(byteWidth(g.type)) % 16)
      return false;
  return g.pass != ConvPass::BackwardWeight || cuda::rotatedWeights(g.w, g.pass, g.type) > 0;
}

Choice::Graph Choice::ranked(int64_t bytes, bool tensorCores) const {
  auto candidates = std::make_unique<fe::graph::Graph>();
  describe(*candidates);
  if (candidates->validate().is_bad() || candidates->build_operation_graph(handle).is_bad() ||
      candidates->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad())
    return nullptr;
  restrict(*candidates, tensorCores);
  candidates->deselect_workspace_greater_than(bytes);
  return candidates;
}

// Of cuDNN 9.19, engine 1 of weight gradients takes pads that differ at the two ends of a dimension for equal ones, as
// an H200 showed (test/unit/cuda/conv_alternatives.cpp); exporters of TensorFlow write such pads.
bool Choice::isWrong(const fe::graph::Graph &graph, int64_t i) const {
  const Window &w = task.geometry.window;
  const int spatial = task.geometry.x.rank - 2;
  std::string name;
  return task.geometry.pass == ConvPass::BackwardWeight && !std::equal(w.pads, w.pads + spatial, w.pads + spatial) &&
         graph.get_plan_name_at_index(i, name).is_good() && name.substr(0, name.find('_')) == "eng1";
}

Choice::Graph Choice::choose(int64_t bytes, bool tensorCores) const {
  Graph graph = ranked(bytes, tensorCores);
  for (int64_t i = 0; graph && i < graph->get_execution_plan_count(); ++i)
    if (!isWrong(*graph, i) && graph->build_plan_at_index(handle, i).is_good() && graph->get_workspace_size() <= bytes)
      return graph;
  return nullptr;
}

Choice::Graph Choice::named(const std::string &name) const {
  Graph graph = ranked(task.bytes, false);
  for (int64_t i = 0; graph && i < graph->get_execution_plan_count(); ++i) {
    std::string found;
    if (graph->get_plan_name_at_index(i, found).is_good() && found == name && !isWrong(*graph, i) &&
        graph->build_plan_at_index(handle, i).is_good() && graph->get_workspace_size() <= task.bytes)
      return graph;
  }
  return nullptr;
}

// Grouped convolutions have good engines without tensor cores. Where there are none to use, the best engines turn their
// operands to NCHW in the workspace, and what is ranked last is slower than any number of parts.
Choice::Graph Choice::chooseSmaller() {
  auto split = [&](auto &&choice) {
    for (parts = 1;; parts *= 2)
      if (Graph found = choice(); found || !splitsInto(2 * parts))
        return found;
  };
  Graph found;
  if (task.precision != Precision::FP32 && task.geometry.groups == 1)
    found = split([&] { return choose(task.bytes, true); });
  if (!found)
    found = split([&] {
      auto best = choose(unlimited, false);
      return best && best->get_workspace_size() <= task.bytes ? std::move(best) : nullptr;
    });
  return found ? std::move(found) : split([&] { return choose(task.bytes, false); });
}

} // namespace

struct ConvEngine::Plan {
  std::unique_ptr<fe::graph::Graph> graph;
};

ConvEngine::ConvEngine(const ConvTask &task, int64_t count, std::unique_ptr<Plan> plan)
    : task(task), count(count), plan(std::move(plan)) {}
ConvEngine::~ConvEngine() = default;

std::unique_ptr<ConvEngine> ConvEngine::choose(const ConvTask &task, std::string &reason, const std::string &device) {
  if (task.epilogue != Epilogue::None &&
      std::min<size_t>(CUDNN_VERSION, cudnnGetVersion()) < 91100) { // atomics add its sums
    reason = "cuDNN 9.11 or newer is needed for it";
    return nullptr;
  }
  std::shared_ptr<fe::DeviceProperties> described;
  if (!device.empty() && !(described = describedDevice(device, reason)))
    return nullptr;
  Choice choice{task, described, described ? nullptr : Device::get().builder()};
  if (!choice.takes(reason))
    return nullptr;
  Choice::Graph graph;
  std::string missing;
  if (const EngineChoice *recorded = described ? nullptr : useEngine(task)) {
    choice.parts = recorded->parts;
    if (recorded->parts == 1 || choice.splitsInto(recorded->parts))
      graph = choice.named(recorded->engine);
    if (!graph)
      missing = std::string("cuDNN does not offer the engine that its profile recorded, ") + recorded->engine;
  }
  if (!graph) {
    choice.parts = 1;
    graph = choice.choose(task.epilogue == Epilogue::None ? unlimited : task.bytes, false);
  }
  if (graph && graph->get_workspace_size() > task.bytes)
    graph = choice.chooseSmaller();
  if (!graph)
    return nullptr;
  reason = missing;
  return std::unique_ptr<ConvEngine>(
      new ConvEngine(task, choice.parts, std::make_unique<Plan>(Plan{std::move(graph)})));
}

std::vector<std::unique_ptr<ConvEngine>> ConvEngine::alternatives(size_t most) const {
  const Choice choice{task, nullptr, Device::get().builder(), count};
  std::vector<std::unique_ptr<ConvEngine>> list;
  std::set<std::string> names; // heuristics may rank an engine twice
  const Choice::Graph all = choice.ranked(task.bytes, false);
  for (int64_t i = 0; all && list.size() < most && i < all->get_execution_plan_count(); ++i) {
    std::string name;
    if (all->get_plan_name_at_index(i, name).is_bad() || !names.insert(name).second)
      continue;
    if (Choice::Graph graph = choice.named(name))
      list.emplace_back(new ConvEngine(task, count, std::make_unique<Plan>(Plan{std::move(graph)})));
  }
  return list;
}

std::string ConvTask::text() const {
  auto list = [](const int64_t *from, int count) {
    std::string words;
    for (int i = 0; i < count; ++i)
      words += (i ? "x" : "") + std::to_string(from[i]);
    return words;
  };
  static constexpr const char *passes[] = {"forward", "backward data", "backward weight"},
                              *precisions[] = {"fp32", "tf32", "bf16", "fp16"},
                              *epilogues[] = {"", ", statistics", ", gradient", ", gradient of sum"};
  const ConvGeometry &g = geometry;
  const int spatial = g.x.rank - 2;
  // What the precision does not say: kernels of both halves may share a process.
  const char *type = g.type == DataType::F32                                    ? " of f32"
                     : g.type == DataType::F16 && precision != Precision::FP16  ? " of f16"
                     : g.type == DataType::BF16 && precision != Precision::BF16 ? " of bf16"
                                                                                : "";
  return std::string(passes[static_cast<int>(g.pass)]) + " x " + list(g.x.dims, g.x.rank) + " w " +
         list(g.w.dims, g.w.rank) + " y " + list(g.y.dims, g.y.rank) + ", strides " + list(g.window.strides, spatial) +
         ", dilations " + list(g.window.dilations, spatial) + ", pads " + list(g.window.pads, 2 * spatial) +
         ", groups " + std::to_string(g.groups) + ", " + precisions[static_cast<int>(precision)] + type +
         ", workspace " + std::to_string(bytes) + epilogues[static_cast<int>(epilogue)];
}

int64_t ConvEngine::workspaceBytes() const { return plan->graph->get_workspace_size(); }

std::string ConvEngine::name() const {
  std::string name;
  return plan->graph->get_plan_name(name).is_good() ? name : "";
}

void ConvEngine::run(cudaStream_t stream, int64_t part, const void *first, const void *second, void *result,
                     void *workspace, std::initializer_list<const void *> more) const {
  const ConvGeometry &g = task.geometry;
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
