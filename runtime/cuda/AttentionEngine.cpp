// SPDX-License-Identifier: Apache-2.0
// Through cuDNN's graph API. Members are cuDNN's batch, of one head each.
#include "runtime/cuda/AttentionEngine.h"

#include "runtime/cuda/AttentionDraws.h"
#include "runtime/cuda/AttentionHidden.h"
#include "runtime/cuda/Cut.h"
#include "runtime/cuda/DescribedDevice.h"
#include "runtime/cuda/Device.h"

#include <optional>
#include <type_traits>

namespace sluice {

namespace fe = cudnn_frontend;

namespace {

enum Uid : int64_t {
  Query = 1,
  Key,
  Value,
  Result,
  Logsumexp,
  ResultGradient,
  QueryGradient,
  KeyGradient,
  ValueGradient,
  Kept,
  Mask
};

using Pointer = std::shared_ptr<fe::graph::Tensor_attributes>;

/// An operand's rows, columns and place.
struct Operand {
  int64_t rows, columns;
  AttentionView view;
};

/// Members as cuDNN's batch and heads: one of a part's dimensions if they are a single one in every operand, else two.
struct Members {
  int64_t batch, heads;
};

/// Whether members are as far apart as those of one dimension, by a step for each leading dimension.
bool isOneDimension(const AttentionGeometry &g, const int64_t *steps) {
  for (int i = 1; i < g.leading; ++i)
    if (steps[i - 1] != steps[i] * g.extents[i])
      return false;
  return true;
}
bool areOneDimension(const AttentionGeometry &g) {
  return isOneDimension(g, g.q.steps) && isOneDimension(g, g.k.steps) && isOneDimension(g, g.v.steps) &&
         isOneDimension(g, g.y.steps) && isOneDimension(g, g.mask.steps);
}

/// Those of one of `parts`; none where they are not so many equal runs of members.
std::optional<Members> membersOf(const AttentionGeometry &g, int64_t parts) {
  const int64_t members = g.members / parts, heads = areOneDimension(g) ? 1 : g.extents[g.leading - 1];
  if (g.members % parts)
    return std::nullopt;
  if (members % heads == 0 && (heads == 1 || g.leading == 2))
    return Members{members / heads, heads};
  return heads % members == 0 ? std::optional(Members{1, members}) : std::nullopt;
}

/// The search for one engine.
struct Choice {
  /// The first engine for one part of the members; null, with a reason, where there is none within the bytes that what
  /// is kept of the part leaves of `granted`.
  std::unique_ptr<fe::graph::Graph> choose(std::string &reason) const;
  bool splitsInto(int64_t count) const;

  const AttentionProblem &problem;
  const int64_t granted;
  const std::shared_ptr<fe::DeviceProperties> device; ///< null: the present one
  cudnnHandle_t handle;                               ///< null with a described device
  int64_t parts = 1;

private:
  fe::DataType_t storedType() const {
    return problem.type == DataType::F16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16;
  }
  /// [batch, heads, rows, columns]
  std::vector<int64_t> dimsOf(const Operand &o) const {
    const Members members = *membersOf(problem.g, parts);
    return {members.batch, members.heads, o.rows, o.columns};
  }
  std::vector<int64_t> stridesOf(const Operand &o) const {
    const AttentionGeometry &g = problem.g;
    const int64_t head = g.leading ? o.view.steps[g.leading - 1] : o.rows * o.view.row;
    return {g.leading > 1 && !areOneDimension(g) ? o.view.steps[g.leading - 2] : head, head, o.view.row, 1};
  }
  /// Of a tensor without gaps, as numbers of rows have to be.
  static std::vector<int64_t> packed(const std::vector<int64_t> &dims) {
    return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
  }
  Pointer input(fe::graph::Graph &graph, const char *name, Uid uid, const Operand &o, fe::DataType_t type) const {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(name)
                            .set_dim(dimsOf(o))
                            .set_stride(stridesOf(o))
                            .set_uid(uid)
                            .set_data_type(type));
  }
  void output(const Pointer &tensor, Uid uid, const Operand &o, fe::DataType_t type) const {
    tensor->set_output(true).set_dim(dimsOf(o)).set_stride(stridesOf(o)).set_uid(uid).set_data_type(type);
  }
  /// What a dropout keeps: its matrix and the factors there and back.
  template <typename Attributes> void setDropout(fe::graph::Graph &graph, Attributes &attributes) const;
  /// The mask, in f32, with extents of 1 where it broadcasts.
  template <typename Attributes> void setMask(fe::graph::Graph &graph, Attributes &attributes) const;
  void describe(fe::graph::Graph &graph) const;
};

template <typename Attributes> void Choice::setDropout(fe::graph::Graph &graph, Attributes &attributes) const {
  if (problem.ratio == 0)
    return;
  const AttentionGeometry &g = problem.g;
  const Operand scores{g.rows, g.keys, g.rowMajor(g.rows, g.keys)};
  const std::vector<int64_t> dims = dimsOf(scores);
  const Pointer kept = graph.tensor(fe::graph::Tensor_attributes()
                                        .set_name("kept")
                                        .set_dim(dims)
                                        .set_stride(packed(dims))
                                        .set_uid(Kept)
                                        .set_data_type(storedType()));
  const auto factor = [&](float value) { return std::make_shared<fe::graph::Tensor_attributes>(value); };
  if constexpr (std::is_same_v<Attributes, fe::graph::SDPA_attributes>)
    attributes.set_dropout(kept, factor(1 / (1 - problem.ratio)));
  else
    attributes.set_dropout(kept, factor(1 / (1 - problem.ratio)), factor(1 - problem.ratio));
}

template <typename Attributes> void Choice::setMask(fe::graph::Graph &graph, Attributes &attributes) const {
  const AttentionGeometry &g = problem.g;
  if (!g.mask.present)
    return;
  const Members members = *membersOf(g, parts);
  const int64_t head = g.leading ? g.mask.steps[g.leading - 1] : 0;
  const int64_t sample = g.leading > 1 && !areOneDimension(g) ? g.mask.steps[g.leading - 2] : head;
  const int64_t rows = g.mask.row ? g.rows : 1, heads = head ? members.heads : 1, samples = sample ? members.batch : 1;
  attributes.set_bias(
      graph.tensor(fe::graph::Tensor_attributes()
                       .set_name("mask")
                       .set_dim({samples, heads, rows, g.keys})
                       .set_stride({samples > 1 ? sample : heads * rows * g.keys, heads > 1 ? head : rows * g.keys,
                                    rows > 1 ? g.mask.row : g.keys, 1})
                       .set_uid(Mask)
                       .set_data_type(fe::DataType_t::FLOAT)));
}

void Choice::describe(fe::graph::Graph &graph) const {
  const AttentionGeometry &g = problem.g;
  if (device) // the frontend asks the present one unless it is told
    graph.set_device_properties(device).set_sm_version(90).set_sm_count(132);
  const fe::DataType_t stored = storedType();
  graph.set_io_data_type(stored)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const Operand queries{g.rows, g.depth, g.q}, keys{g.keys, g.depth, g.k}, values{g.keys, g.columns, g.v},
      results{g.rows, g.columns, g.y}, slopes{g.rows, g.columns, g.mask.present ? g.rowMajor(g.rows, g.columns) : g.y},
      logsumexp{g.rows, 1, g.rowMajor(g.rows, 1)};
  const Pointer q = input(graph, "q", Query, queries, stored), k = input(graph, "k", Key, keys, stored),
                v = input(graph, "v", Value, values, stored);
  if (problem.pass == AttentionPass::Forward) {
    fe::graph::SDPA_attributes attributes;
    attributes.set_name("attention")
        .set_generate_stats(true)
        .set_attn_scale(problem.scale)
        .set_causal_mask(problem.causal);
    setDropout(graph, attributes);
    setMask(graph, attributes);
    auto [y, sums] = graph.sdpa(q, k, v, attributes);
    output(y, Result, results, stored);
    output(sums, Logsumexp, logsumexp, fe::DataType_t::FLOAT);
    sums->set_stride(packed(dimsOf(logsumexp)));
    return;
  }
  const Pointer sums = input(graph, "logsumexp", Logsumexp, logsumexp, fe::DataType_t::FLOAT);
  sums->set_stride(packed(dimsOf(logsumexp)));
  fe::graph::SDPA_backward_attributes attributes;
  attributes.set_name("attention_backward")
      .set_attn_scale(problem.scale)
      .set_causal_mask(problem.causal)
      .set_deterministic_algorithm(true);
  setDropout(graph, attributes);
  setMask(graph, attributes);
  auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, input(graph, "y", Result, results, stored),
                                          input(graph, "dy", ResultGradient, slopes, stored), sums, attributes);
  output(dq, QueryGradient, queries, stored);
  output(dk, KeyGradient, keys, stored);
  output(dv, ValueGradient, values, stored);
}

std::unique_ptr<fe::graph::Graph> Choice::choose(std::string &reason) const {
  auto graph = std::make_unique<fe::graph::Graph>();
  describe(*graph);
  auto taken = graph->validate();
  if (taken.is_good())
    taken = graph->build_operation_graph(handle);
  if (taken.is_good())
    taken = graph->create_execution_plans({fe::HeurMode_t::A});
  if (taken.is_bad()) {
    reason = "cuDNN does not take it (" + taken.get_message() + ")";
    return nullptr;
  }
  graph->deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  const int64_t members = problem.g.members / parts;
  const int64_t left = granted - cuda::attentionKeptBytes(problem.g, problem.ratio, members) -
                       cuda::attentionVisibleBytes(problem.pass, problem.g, members);
  for (int64_t i = 0; i < graph->get_execution_plan_count(); ++i)
    if (graph->build_plan_at_index(handle, i).is_good() && graph->get_workspace_size() <= left)
      return graph;
  reason = "cuDNN has no deterministic engine for it within " + std::to_string(left) +
           " bytes of workspace; a larger --workspace-limit may help";
  return nullptr;
}

/// Every part begins where engines may expect it to, at a multiple of 16 bytes; rows of q, k and v do.
bool Choice::splitsInto(int64_t count) const {
  const AttentionGeometry &g = problem.g;
  if (!membersOf(g, count) || (count > 1 && g.members / count * g.rows % 4))
    return false;
  for (int64_t part = 1; g.mask.present && part < count; ++part)
    if (g.start(g.mask, part * (g.members / count)) % 4)
      return false;
  return true;
}

} // namespace

struct AttentionEngine::Plan {
  std::unique_ptr<fe::graph::Graph> graph;
};

AttentionEngine::AttentionEngine(const AttentionProblem &problem, int64_t count, std::unique_ptr<Plan> plan)
    : problem(problem), count(count), plan(std::move(plan)) {}
AttentionEngine::~AttentionEngine() = default;

std::unique_ptr<AttentionEngine> AttentionEngine::choose(const AttentionProblem &problem, int64_t bytes,
                                                         std::string &reason, const std::string &device) {
  const AttentionGeometry &g = problem.g;
  if (!cuda::attentionHasEngine(g, problem.type)) {
    reason = "cuDNN's attention is asked where masks are added to scores and rows are of 8, 16, ... numbers";
    return nullptr;
  }
  std::shared_ptr<fe::DeviceProperties> described;
  if (!device.empty() && !(described = describedDevice(device, reason)))
    return nullptr;
  reason = "cuDNN's engine starts at multiples of 16 bytes, and the parts that fit the workspace do not";
  Choice choice{problem, bytes, described, described ? nullptr : Device::get().builder()};
  // Workspaces follow the estimate, so that the first number of parts that is tried nearly always fits.
  for (choice.parts = cuda::attentionParts(bytes, problem.pass, g, problem.ratio); choice.parts <= g.members;
       ++choice.parts) {
    if (!choice.splitsInto(choice.parts))
      continue;
    if (std::unique_ptr<fe::graph::Graph> graph = choice.choose(reason)) {
      reason.clear(); // of fewer parts
      return std::unique_ptr<AttentionEngine>(
          new AttentionEngine(problem, choice.parts, std::make_unique<Plan>(Plan{std::move(graph)})));
    }
    if (problem.pass == AttentionPass::Forward && problem.ratio == 0)
      break; // more parts do not take less
  }
  return nullptr;
}

int64_t AttentionEngine::workspaceBytes() const { return plan->graph->get_workspace_size(); }

std::string AttentionEngine::name() const {
  std::string name;
  return plan->graph->get_plan_name(name).is_good() ? name : "";
}

void AttentionEngine::run(cudaStream_t stream, const AttentionOperands &o, const DeviceState *state,
                          void *workspace) const {
  const AttentionGeometry &g = problem.g;
  cudnnHandle_t handle = Device::get().cudnn;
  if (cudnnSetStream(handle, stream) != CUDNN_STATUS_SUCCESS)
    throw DeviceError("CUDA cuDNN does not take the stream");
  const int64_t members = g.members / count;
  char *visible = static_cast<char *>(workspace) + cuda::attentionKeptBytes(g, problem.ratio, members);
  char *own = visible + cuda::attentionVisibleBytes(problem.pass, g, members);
  for (int64_t part = 0; part < count; ++part) {
    auto at = [&](const void *data, const AttentionView &view) -> void * {
      return static_cast<char *>(const_cast<void *>(data)) + 2 * g.start(view, part * members);
    };
    std::unordered_map<int64_t, void *> pack = {{Query, at(o.q, g.q)},
                                                {Key, at(o.k, g.k)},
                                                {Value, at(o.v, g.v)},
                                                {Result, at(o.y, g.y)},
                                                {Logsumexp, o.logsumexp + part * members * g.rows}};
    if (problem.pass == AttentionPass::Backward) {
      pack[ResultGradient] = g.mask.present ? visible : at(o.dy, g.y);
      pack[QueryGradient] = at(o.dq, g.q);
      pack[KeyGradient] = at(o.dk, g.k);
      pack[ValueGradient] = at(o.dv, g.v);
    }
    if (g.mask.present)
      pack[Mask] = const_cast<float *>(o.mask) + g.start(g.mask, part * members);
    if (g.mask.present && problem.pass == AttentionPass::Backward) {
      auto *sums = reinterpret_cast<float *>(visible + scratchPart(2 * members * g.rows * g.columns));
      copyVisible(stream, problem, o, part * members, members, visible, sums);
      pack[Logsumexp] = sums;
    }
    if (problem.ratio > 0) {
      drawKept(stream, problem, state, part * members, members, workspace);
      pack[Kept] = workspace;
    }
    if (auto status = plan->graph->execute(handle, pack, own); status.is_bad())
      throw DeviceError("CUDA cuDNN cannot run an attention: " + status.get_message());
  }
  if (g.mask.present)
    computeHidden(stream, problem, state, o);
}

} // namespace sluice
