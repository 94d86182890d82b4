// SPDX-License-Identifier: Apache-2.0
// The part of cuDNN's frontend that runtime/cuda uses: a graph of one convolution, and of what comes after it
// (EmulatedEpilogue.h), run by loops over whatever strides its tensors have, or of one attention (EmulatedAttention.h).
// Like the real one it refuses pads that differ from side to side, unless so many channels would take the direct
// kernels too long here, and its fast engine pads channels that do not fill 16 bytes in the workspace.
#pragma once

#include "cudnn.h"
#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/Float16.h"

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace cudnn_frontend {

enum class DataType_t { FLOAT, BFLOAT16, HALF };
enum class HeurMode_t { A, FALLBACK };
enum class PointwiseMode_t { ADD, SUB, MUL, RELU_BWD };
enum class ReductionMode_t { ADD };
enum class NumericalNote_t { TENSOR_CORE, DOWN_CONVERT_INPUTS, REDUCED_PRECISION_REDUCTION, NONDETERMINISTIC };

struct Error {
  bool bad = false;
  bool is_bad() const { return bad; }
  bool is_good() const { return !bad; }
  std::string get_message() { return "the emulator refuses it"; }
};

struct DeviceProperties {
  Error deserialize(const std::vector<uint8_t> &) { return {true}; }
};

/// Runs of engines so far.
inline int executions = 0;

namespace graph {

struct Tensor_attributes {
  std::vector<int64_t> dim, stride;
  int64_t uid = 0;
  DataType_t type = DataType_t::FLOAT;
  double scalar = 0;
  Tensor_attributes() = default;
  explicit Tensor_attributes(float value) : scalar(static_cast<double>(value)) {}
  Tensor_attributes &set_name(const std::string &) { return *this; }
  Tensor_attributes &set_dim(std::vector<int64_t> value) { return dim = value, *this; }
  Tensor_attributes &set_stride(std::vector<int64_t> value) { return stride = value, *this; }
  Tensor_attributes &set_uid(int64_t value) { return uid = value, *this; }
  Tensor_attributes &set_data_type(DataType_t value) { return type = value, *this; }
  Tensor_attributes &set_output(bool) { return *this; }
  double value(const void *data, int64_t i) const {
    return static_cast<double>(
        type == DataType_t::BFLOAT16 ? sluice::widened(static_cast<const sluice::BFloat16 *>(data)[i])
        : type == DataType_t::HALF   ? sluice::widened(static_cast<const sluice::Float16 *>(data)[i])
                                     : static_cast<const float *>(data)[i]);
  }
  void put(void *data, int64_t i, float value) const {
    if (type == DataType_t::BFLOAT16)
      static_cast<sluice::BFloat16 *>(data)[i] = sluice::bfloat16Of(value);
    else if (type == DataType_t::HALF)
      static_cast<sluice::Float16 *>(data)[i] = sluice::float16Of(value);
    else
      static_cast<float *>(data)[i] = value;
  }
  /// An image is a volume of depth 1.
  int64_t at(int64_t a, int64_t b, const int64_t *position) const {
    int64_t index = a * stride[0] + b * stride[1];
    for (size_t d = 2; d < dim.size(); ++d)
      index += position[d + 3 - dim.size()] * stride[d];
    return index;
  }
  int64_t extent(int d) const { return dim.size() == 5 ? dim[2 + d] : d == 0 ? 1 : dim[1 + d]; }
  int64_t spatial() const { return extent(0) * extent(1) * extent(2); }
  void place(int64_t index, int64_t *position) const {
    for (int d = 2; d >= 0; index /= extent(d), --d)
      position[d] = index % extent(d);
  }
  int64_t elements() const { return dim[0] * dim[1] * spatial(); }
};

template <int Pass> struct Window_attributes {
  static constexpr int pass = Pass;
  std::vector<int64_t> before, after, stride, dilation;
  Window_attributes &set_pre_padding(std::vector<int64_t> value) { return before = value, *this; }
  Window_attributes &set_post_padding(std::vector<int64_t> value) { return after = value, *this; }
  Window_attributes &set_stride(std::vector<int64_t> value) { return stride = value, *this; }
  Window_attributes &set_dilation(std::vector<int64_t> value) { return dilation = value, *this; }
};
using Conv_fprop_attributes = Window_attributes<0>;
using Conv_dgrad_attributes = Window_attributes<1>;
using Conv_wgrad_attributes = Window_attributes<2>;

} // namespace graph
} // namespace cudnn_frontend

#include "EmulatedAttention.h"
#include "EmulatedEpilogue.h"

namespace cudnn_frontend {
namespace graph {

class Graph {
public:
  Graph &set_device_properties(const std::shared_ptr<DeviceProperties> &) { return *this; }
  Graph &set_sm_version(int) { return *this; }
  Graph &set_sm_count(int) { return *this; }
  Graph &set_io_data_type(DataType_t) { return *this; }
  Graph &set_intermediate_data_type(DataType_t) { return *this; }
  Graph &set_compute_data_type(DataType_t) { return *this; }
  std::shared_ptr<Tensor_attributes> tensor(const Tensor_attributes &t) {
    return std::make_shared<Tensor_attributes>(t);
  }
  using Pointer = std::shared_ptr<Tensor_attributes>;
  Pointer conv_fprop(Pointer x, Pointer w, const Conv_fprop_attributes &a) { return keep(a, x, w, made, made); }
  Pointer conv_dgrad(Pointer dy, Pointer w, const Conv_dgrad_attributes &a) { return keep(a, made, w, dy, made); }
  Pointer conv_wgrad(Pointer dy, Pointer x, const Conv_wgrad_attributes &a) { return keep(a, x, made, dy, made); }

  std::array<Pointer, 2> sdpa(Pointer q, Pointer k, Pointer v, const SDPA_attributes &a) {
    attention = {a.scale, a.causal, a.kept, a.factor, a.bias, q, k, v};
    attention.y = std::make_shared<Tensor_attributes>(), attention.sums = std::make_shared<Tensor_attributes>();
    return {attention.y, attention.sums};
  }
  std::array<Pointer, 3> sdpa_backward(Pointer q, Pointer k, Pointer v, Pointer y, Pointer dy, Pointer sums,
                                       const SDPA_backward_attributes &a) {
    attention = {a.scale, a.causal, a.kept, a.factor, a.bias, q, k, v, y, sums, dy};
    for (Pointer *gradient : {&attention.dq, &attention.dk, &attention.dv})
      *gradient = std::make_shared<Tensor_attributes>();
    return {attention.dq, attention.dk, attention.dv};
  }
  Pointer pointwise(Pointer a, Pointer b, const Pointwise_attributes &p) { return epilogue.add(a, b, p); }
  Pointer reduction(Pointer a, const Reduction_attributes &r) { return epilogue.add(a, r); }

  /// Of one type, as engines want them.
  bool mixed() const {
    auto other = [&](const Pointer &t) { return t->type != w->type && (t != made || epilogue.empty()); };
    return other(x) || other(y);
  }
  Error validate() const {
    if (attention.q)
      return {attention.refused()};
    return {mixed() || (before != after && (pass == 0 ? x : y)->dim[1] < 24 && (pass == 2 ? x : w)->dim[1] < 64)};
  }
  Error build_operation_graph(cudnnHandle_t) const { return {}; }
  /// With epilogues there are engines for channels in eights, and for no sums over what a stride left out.
  /// EMULATED_EPILOGUES=0: there are none.
  Error create_execution_plans(std::vector<HeurMode_t>) const {
    const bool strided = pass == 1 && stride != std::vector<int64_t>(stride.size(), 1);
    return {!epilogue.empty() && (epilogue.usesAtomics() || strided || w->dim[0] % 8 || w->dim[1] % 8 ||
                                  w->type == DataType_t::FLOAT || emulated("EMULATED_EPILOGUES", 1) == 0)};
  }
  Graph &deselect_numeric_notes(const std::vector<NumericalNote_t> &) { return *this; }
  Graph &select_numeric_notes(const std::vector<NumericalNote_t> &) { return tensorCores = true, *this; }
  Graph &deselect_workspace_greater_than(int64_t limit) { return workspaceLimit = limit, *this; }
  /// The best engine has tensor cores and takes a workspace as scratch, too, the second less, the last one has none and
  /// takes none. What is ranked third turns out to need more than it said.
  int64_t get_execution_plan_count() const { return 4; }
  Error build_plan_at_index(cudnnHandle_t, int64_t index) {
    built = index;
    if (attention.q)
      return needed = attention.workspace(), Error{};
    if (!epilogue.empty()) {
      needed = static_cast<int64_t>(partials() * sizeof(float));
      return {needed > workspaceLimit};
    }
    constexpr int64_t scratch[] = {1 << 16, 1 << 8, 0, 0};
    needed = index == 2 && workspaceLimit < unlimited ? workspaceLimit + 1
             : index == 3                             ? 0
                                                      : scratch[index] + paddedInput();
    return {index != 2 && (needed > workspaceLimit || (tensorCores && index == 3))};
  }
  int64_t get_workspace_size() const { return needed; }
  Error get_plan_name(std::string &name) const { return get_plan_name_at_index(built, name); }
  Error get_plan_name_at_index(int64_t index, std::string &name) const {
    return name = "emulated" + std::to_string(index), Error{};
  }

  /// EMULATED_FASTEST=N: engines but the Nth take a second of the emulated clock.
  Error execute(cudnnHandle_t, std::unordered_map<int64_t, void *> &pack, void *workspace) const {
    ++executions;
    emulator::enqueue(emulator::cudnnStream, [this, pack, workspace]() mutable {
      if (const int fastest = emulated("EMULATED_FASTEST", -1); fastest >= 0 && built != fastest)
        emulator::spend(1);
      memset(workspace, 0xff, static_cast<size_t>(get_workspace_size()));
      run(pack);
    });
    return {};
  }

private:
  template <typename A> Pointer keep(const A &a, Pointer x_, Pointer w_, Pointer y_, Pointer result) {
    pass = A::pass, before = a.before, after = a.after, stride = a.stride, dilation = a.dilation;
    x = x_, w = w_, y = y_;
    return result;
  }
  /// Of dimension d of a volume; images have strides, dilations and paddings of two.
  static int64_t ofDimension(const std::vector<int64_t> &list, int d, int64_t absent) {
    return list.size() == 3 ? list[static_cast<size_t>(d)] : d == 0 ? absent : list[static_cast<size_t>(d - 1)];
  }
  /// Where in x a window at y's position reads by its own position; false outside.
  bool source(const int64_t *at, const int64_t *in, int64_t *from) const {
    bool inside = true;
    for (int d = 0; d < 3; ++d) {
      from[d] = at[d] * ofDimension(stride, d, 1) - ofDimension(before, d, 0) + in[d] * ofDimension(dilation, d, 1);
      inside = inside && from[d] >= 0 && from[d] < x->extent(d);
    }
    return inside;
  }
  void run(std::unordered_map<int64_t, void *> &pack) const {
    if (attention.q)
      return attention.run(pack);
    auto data = [&](const Pointer &t) { return t->uid ? pack.at(t->uid) : nullptr; }; // a virtual one is in no memory
    const void *px = data(x), *pw = data(w), *py = data(y);
    const int64_t groups = x->dim[1] / w->dim[1], outs = w->dim[0] / groups, ins = w->dim[1];
    std::vector<double> sums(static_cast<size_t>(made->elements()));
    for (int64_t n = 0; n < y->dim[0]; ++n)
      for (int64_t o = 0; o < y->dim[1]; ++o)
        for (int64_t pixel = 0; pixel < y->spatial(); ++pixel)
          for (int64_t i = 0; i < ins; ++i)
            for (int64_t tap = 0; tap < w->spatial(); ++tap) {
              int64_t at[3], in[3], from[3];
              y->place(pixel, at), w->place(tap, in);
              if (!source(at, in, from))
                continue;
              const int64_t ax = x->at(n, o / outs * ins + i, from), aw = w->at(o, i, in), ay = y->at(n, o, at);
              if (pass == 0)
                sums[static_cast<size_t>(ay)] += x->value(px, ax) * w->value(pw, aw);
              else if (pass == 1)
                sums[static_cast<size_t>(ax)] += y->value(py, ay) * w->value(pw, aw);
              else
                sums[static_cast<size_t>(aw)] += y->value(py, ay) * x->value(px, ax);
            }
    if (!epilogue.empty())
      return epilogue.run(pack, made, sums);
    for (size_t i = 0; i < sums.size(); ++i)
      made->put(data(made), static_cast<int64_t>(i), static_cast<float>(sums[i]));
  }

  size_t partials() const { return static_cast<size_t>(made->elements() / 32 + 64); }
  int64_t paddedInput() const {
    const int64_t width = x->type == DataType_t::FLOAT ? 4 : 2, whole = 16 / width;
    return x->dim[1] % whole ? x->dim[0] * x->spatial() * ((x->dim[1] + whole - 1) / whole * 16) : 0;
  }

  static constexpr int64_t unlimited = INT64_MAX;
  EmulatedEpilogue epilogue;
  int64_t workspaceLimit = unlimited, needed = 0, built = 0;
  bool tensorCores = false;
  int pass = 0;
  std::vector<int64_t> before, after, stride, dilation;
  Pointer made = std::make_shared<Tensor_attributes>(), x, w, y;
  EmulatedAttention attention;
};

} // namespace graph
} // namespace cudnn_frontend
