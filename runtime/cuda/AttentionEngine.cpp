// SPDX-License-Identifier: Apache-2.0
// Through cuDNN's graph API. Members are cuDNN's batch, of one head each.
#include "runtime/cuda/AttentionEngine.h"

#include "runtime/cuda/Cut.h"
#include "runtime/cuda/DescribedDevice.h"
#include "runtime/cuda/Device.h"

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
  ValueGradient
};

using Pointer = std::shared_ptr<fe::graph::Tensor_attributes>;

/// [members, 1, rows, columns], row-major.
std::vector<int64_t> dimsOf(int64_t members, int64_t rows, int64_t columns) { return {members, 1, rows, columns}; }
std::vector<int64_t> stridesOf(int64_t rows, int64_t columns) { return {rows * columns, rows * columns, columns, 1}; }

/// The search for one engine.
struct Choice {
  /// The first engine for one part of the members; null, with a reason, where there is none within `granted` bytes.
  std::unique_ptr<fe::graph::Graph> choose(std::string &reason) const;
  bool splitsInto(int64_t count) const;

  const AttentionProblem &problem;
  const int64_t granted;
  const std::shared_ptr<fe::DeviceProperties> device; ///< null: the present one
  cudnnHandle_t handle;                               ///< null with a described device
  int64_t parts = 1;

private:
  Pointer input(fe::graph::Graph &graph, const char *name, Uid uid, int64_t rows, int64_t columns,
                fe::DataType_t type) const {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(name)
                            .set_dim(dimsOf(problem.g.members / parts, rows, columns))
                            .set_stride(stridesOf(rows, columns))
                            .set_uid(uid)
                            .set_data_type(type));
  }
  void output(const Pointer &tensor, Uid uid, int64_t rows, int64_t columns, fe::DataType_t type) const {
    tensor->set_output(true)
        .set_dim(dimsOf(problem.g.members / parts, rows, columns))
        .set_stride(stridesOf(rows, columns))
        .set_uid(uid)
        .set_data_type(type);
  }
  void describe(fe::graph::Graph &graph) const;
};

void Choice::describe(fe::graph::Graph &graph) const {
  const AttentionGeometry &g = problem.g;
  if (device) // the frontend asks the present one unless it is told
    graph.set_device_properties(device).set_sm_version(90).set_sm_count(132);
  const fe::DataType_t stored = problem.type == DataType::F16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16;
  graph.set_io_data_type(stored)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const Pointer q = input(graph, "q", Query, g.rows, g.depth, stored),
                k = input(graph, "k", Key, g.keys, g.depth, stored),
                v = input(graph, "v", Value, g.keys, g.columns, stored);
  if (problem.pass == AttentionPass::Forward) {
    auto [y, sums] = graph.sdpa(q, k, v,
                                fe::graph::SDPA_attributes()
                                    .set_name("attention")
                                    .set_generate_stats(true)
                                    .set_attn_scale(problem.scale)
                                    .set_causal_mask(problem.causal));
    output(y, Result, g.rows, g.columns, stored);
    output(sums, Logsumexp, g.rows, 1, fe::DataType_t::FLOAT);
    return;
  }
  auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, input(graph, "y", Result, g.rows, g.columns, stored),
                                          input(graph, "dy", ResultGradient, g.rows, g.columns, stored),
                                          input(graph, "logsumexp", Logsumexp, g.rows, 1, fe::DataType_t::FLOAT),
                                          fe::graph::SDPA_backward_attributes()
                                              .set_name("attention_backward")
                                              .set_attn_scale(problem.scale)
                                              .set_causal_mask(problem.causal)
                                              .set_deterministic_algorithm(true));
  output(dq, QueryGradient, g.rows, g.depth, stored);
  output(dk, KeyGradient, g.keys, g.depth, stored);
  output(dv, ValueGradient, g.keys, g.columns, stored);
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
  for (int64_t i = 0; i < graph->get_execution_plan_count(); ++i)
    if (graph->build_plan_at_index(handle, i).is_good() && graph->get_workspace_size() <= granted)
      return graph;
  reason = "cuDNN has no deterministic engine for it within " + std::to_string(granted) +
           " bytes of workspace; a larger --workspace-limit may help";
  return nullptr;
}

/// Every part begins where engines may expect it to, at a multiple of 16 bytes; rows of q, k and v do.
bool Choice::splitsInto(int64_t count) const {
  return count == 1 || (problem.g.members % count == 0 && problem.g.members / count * problem.g.rows % 4 == 0);
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
  if (!cuda::attentionHasEngine(g, problem.ratio, problem.type)) {
    reason = "cuDNN's attention is asked where there is no mask but the causal one, no dropout, and rows are of 8, 16, "
             "... numbers";
    return nullptr;
  }
  std::shared_ptr<fe::DeviceProperties> described;
  if (!device.empty() && !(described = describedDevice(device, reason)))
    return nullptr;
  reason = "cuDNN's engine starts at multiples of 16 bytes, and the parts that fit the workspace do not";
  Choice choice{problem, bytes, described, described ? nullptr : Device::get().cudnn};
  // Workspaces follow the estimate, so that the first number of parts that is tried nearly always fits.
  for (choice.parts = cuda::attentionParts(bytes, problem.pass, g); choice.parts <= g.members; ++choice.parts) {
    if (!choice.splitsInto(choice.parts))
      continue;
    if (std::unique_ptr<fe::graph::Graph> graph = choice.choose(reason)) {
      reason.clear(); // of fewer parts
      return std::unique_ptr<AttentionEngine>(
          new AttentionEngine(problem, choice.parts, std::make_unique<Plan>(Plan{std::move(graph)})));
    }
    if (problem.pass == AttentionPass::Forward)
      break; // more parts do not take less
  }
  return nullptr;
}

int64_t AttentionEngine::workspaceBytes() const { return plan->graph->get_workspace_size(); }

std::string AttentionEngine::name() const {
  std::string name;
  return plan->graph->get_plan_name(name).is_good() ? name : "";
}

void AttentionEngine::run(cudaStream_t stream, const AttentionOperands &o, void *workspace) const {
  const AttentionGeometry &g = problem.g;
  cudnnHandle_t handle = Device::get().cudnn;
  if (cudnnSetStream(handle, stream) != CUDNN_STATUS_SUCCESS)
    throw DeviceError("CUDA cuDNN does not take the stream");
  const int64_t members = g.members / count;
  for (int64_t part = 0; part < count; ++part) {
    auto at = [&](const void *data, int64_t row, int64_t width) -> void * {
      return static_cast<char *>(const_cast<void *>(data)) + part * members * row * width;
    };
    std::unordered_map<int64_t, void *> pack = {{Query, at(o.q, g.rows * g.depth, 2)},
                                                {Key, at(o.k, g.keys * g.depth, 2)},
                                                {Value, at(o.v, g.keys * g.columns, 2)},
                                                {Result, at(o.y, g.rows * g.columns, 2)},
                                                {Logsumexp, at(o.logsumexp, g.rows, 4)}};
    if (problem.pass == AttentionPass::Backward) {
      pack[ResultGradient] = at(o.dy, g.rows * g.columns, 2);
      pack[QueryGradient] = at(o.dq, g.rows * g.depth, 2);
      pack[KeyGradient] = at(o.dk, g.keys * g.depth, 2);
      pack[ValueGradient] = at(o.dv, g.keys * g.columns, 2);
    }
    if (auto status = plan->graph->execute(handle, pack, workspace); status.is_bad())
      throw DeviceError("CUDA cuDNN cannot run an attention: " + status.get_message());
  }
}

} // namespace sluice
