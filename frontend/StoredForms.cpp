// SPDX-License-Identifier: Apache-2.0
// All that follows, roles, adapters and exports among it, sees a model of float32 weights; only who asks for their
// bytes is told of the form. First it is found which nodes can be taken apart, so that a weight may have the name of
// the tensor that nothing reads any more.
#include "frontend/StoredForms.h"

#include "frontend/Attributes.h"
#include "frontend/HostTensor.h"
#include "frontend/NodeProtos.h"
#include "frontend/NodeWalk.h"
#include "frontend/OnnxGraph.h"
#include "frontend/StoredLayouts.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>

namespace sluice {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using onnx::TensorProto;

bool has(const onnx::NodeProto &node, int input) { return input < node.input_size() && !node.input(input).empty(); }

/// An op that reads weights in fewer bits, and which of its inputs are what.
struct Layout {
  const char *domain, *op;
  int codes, scales, zeros;
  Result<StoredMatrix> (*read)(const onnx::NodeProto &node, const StoredParts &parts);
};

constexpr Layout layouts[] = {{"", "DequantizeLinear", 0, 1, 2, dequantizedMatrix},
                              {"com.microsoft", "MatMulNBits", 1, 2, 3, productMatrix},
                              {"com.microsoft", "GatherBlockQuantized", 0, 2, 3, gatheredMatrix}};

const Layout *layoutOf(const onnx::NodeProto &node) {
  const std::string domain = isStandard(node) ? "" : node.domain();
  const auto found = std::find_if(std::begin(layouts), std::end(layouts), [&](const Layout &layout) {
    return domain == layout.domain && node.op_type() == layout.op;
  });
  return found != std::end(layouts) && node.output_size() == 1 ? found : nullptr;
}

/// Nodes that hand numbers on as they lie.
bool isView(const onnx::NodeProto &node) {
  return isStandard(node) && (node.op_type() == "Identity" || node.op_type() == "Reshape") && node.input_size() > 0 &&
         node.output_size() == 1;
}

/// Tensors of the file as nodes read them.
class FileParts {
public:
  FileParts(const onnx::GraphProto &graph, const TensorIndex &tensors) : tensors(tensors) {
    for (const onnx::NodeProto &node : graph.node())
      if (isView(node))
        views[node.output(0)] = &node;
  }

  /// A tensor of the file, also behind such nodes.
  std::optional<StoredPart> find(const std::string &name) const {
    std::vector<const onnx::NodeProto *> behind;
    std::string own = name;
    const FileTensor *tensor = tensors.find(own);
    for (; !tensor && behind.size() <= views.size(); tensor = tensors.find(own)) {
      const auto view = views.find(own);
      if (view == views.end())
        return std::nullopt;
      behind.push_back(view->second);
      own = view->second->input(0);
    }
    if (!tensor)
      return std::nullopt;
    StoredPart part{own, *tensor};
    for (auto view = behind.rbegin(); view != behind.rend(); ++view)
      if ((*view)->op_type() == "Reshape" && !reshape(**view, part.tensor.shape))
        return std::nullopt;
    return part;
  }

private:
  /// The shape after a Reshape by known numbers; false where they are not known or do not fit.
  bool reshape(const onnx::NodeProto &node, std::vector<int64_t> &shape) const {
    const FileTensor *wanted = has(node, 1) ? tensors.find(node.input(1)) : nullptr;
    const std::optional<HostTensor> numbers = wanted ? HostTensor::from(*wanted) : std::nullopt;
    if (!numbers || !numbers->integral || numbers->size() > static_cast<int64_t>(HostTensor::maximumRank))
      return false;
    std::vector<int64_t> next = numbers->ints;
    const std::optional<int64_t> all = elementCount(shape);
    for (size_t i = 0; i < next.size(); ++i)
      if (next[i] == 0 && i < shape.size())
        next[i] = shape[i];
    if (const auto open = std::find(next.begin(), next.end(), -1); open != next.end()) {
      *open = 1;
      const std::optional<int64_t> rest = elementCount(next);
      *open = all && rest && *rest > 0 ? *all / *rest : 0;
    }
    shape = next;
    return all && elementCount(next) == all;
  }

  const TensorIndex &tensors;
  std::map<std::string, const onnx::NodeProto *> views;
};

class Reading {
public:
  Reading(onnx::ModelProto &model, TensorIndex &tensors)
      : graph(*model.mutable_graph()), tensors(tensors), parts(graph, tensors) {
    forEachNode(graph.node(), [&](const onnx::NodeProto &node) {
      names.insert(node.output().begin(), node.output().end());
      for (const std::string &input : node.input())
        ++readers[input];
    });
    for (const TensorProto &initializer : graph.initializer())
      names.insert(initializer.name());
    for (const onnx::ValueInfoProto &input : graph.input())
      names.insert(input.name());
    for (const onnx::ValueInfoProto &output : graph.output())
      ++readers[output.name()];
  }

  StoredForms run() {
    std::vector<const Matrix *> matrices; // of nodes that have one
    for (const onnx::NodeProto &node : graph.node()) {
      Result<const Matrix *> matrix = find(node);
      if (!matrix)
        forms.refused[node.output(0)] = matrix.error();
      matrices.push_back(matrix ? *matrix : nullptr);
      if (const Layout *layout = matrices.back() ? layoutOf(node) : nullptr)
        for (int input : {layout->codes, layout->scales, layout->zeros})
          if (has(node, input))
            --readers[node.input(input)];
    }
    dropUnread(matrices);
    addInitializers();
    Nodes nodes;
    for (int i = 0; i < graph.node_size(); ++i)
      if (!matrices[static_cast<size_t>(i)])
        nodes.Add()->Swap(graph.mutable_node(i));
      else
        make(graph.node(i), matrices[static_cast<size_t>(i)]->name, nodes);
    graph.mutable_node()->Swap(&nodes);
    return std::move(forms);
  }

private:
  /// A weight, and the tensor that has its numbers.
  struct Matrix {
    StoredMatrix stored;
    std::string codes, name;
  };

  /// The matrix that a node reads in fewer bits; null where it reads none, an error where that is not supported.
  Result<const Matrix *> find(const onnx::NodeProto &node) {
    const Layout *layout = layoutOf(node);
    if (!layout || !has(node, layout->codes))
      return static_cast<const Matrix *>(nullptr);
    const std::optional<StoredPart> codes = parts.find(node.input(layout->codes));
    const bool isStandardOp = layout->domain[0] == '\0';
    // What is no matrix of few bits the import refuses, as it computes what is data.
    if (isStandardOp && (!codes || codes->tensor.shape.size() != 2 || codes->size() < 1 ||
                         !codes->is({TensorProto::INT8, TensorProto::UINT8, TensorProto::INT4, TensorProto::UINT4})))
      return static_cast<const Matrix *>(nullptr);
    if (!isStandardOp && node.op_type() == layouts[1].op && has(node, 4))
      return Error{"takes its inputs in the order of g_idx '" + node.input(4) + "', which is not supported"};
    const std::optional<StoredPart> scales = has(node, layout->scales) ? parts.find(node.input(layout->scales))
                                                                       : std::nullopt,
                                    zeros =
                                        has(node, layout->zeros) ? parts.find(node.input(layout->zeros)) : std::nullopt;
    if (!codes || !scales || (has(node, layout->zeros) && !zeros))
      return Error{"its weights, scales and zero points must be tensors of the file; '" +
                   node.input(!codes    ? layout->codes
                              : !scales ? std::min(layout->scales, node.input_size() - 1)
                                        : layout->zeros) +
                   "' is none"};
    Result<StoredMatrix> stored = layout->read(node, {*codes, *scales, zeros});
    if (!stored)
      return stored.takeError();
    if (const std::optional<std::string> wrong = stored->check())
      return Error{*wrong};
    return add(std::move(*stored), codes->name);
  }

  /// One for all nodes that read the same numbers in the same way.
  Result<const Matrix *> add(StoredMatrix stored, const std::string &codes) {
    const Quantization &form = stored.form;
    if (int64_t bytes = 0; !tensorBytes(TensorProto::FLOAT, {form.rows, form.columns}, bytes))
      return Error{"its weights '" + codes + "' have a size that overflows"};
    const Key key{stored.codes.bytes.data(),
                  stored.scales.bytes.data(),
                  stored.zeros ? stored.zeros->bytes.data() : nullptr,
                  describe(form),
                  form.rows,
                  form.columns,
                  stored.zero};
    auto [known, isNew] = indexOf.emplace(key, all.size());
    if (isNew)
      all.push_back(std::make_unique<Matrix>(Matrix{std::move(stored), codes, ""}));
    return static_cast<const Matrix *>(all[known->second].get());
  }

  /// Views and initializers that only those nodes read which are taken apart go, the latter from the graph's inputs,
  /// too.
  void dropUnread(std::vector<const Matrix *> &matrices) {
    for (int i = graph.node_size() - 1; i >= 0; --i) {
      const onnx::NodeProto &node = graph.node(i);
      const auto count = isView(node) ? readers.find(node.output(0)) : readers.end();
      if (count == readers.end() || count->second > 0) // nobody ever read it, or somebody does
        continue;
      for (const std::string &input : node.input())
        --readers[input];
      graph.mutable_node()->DeleteSubrange(i, 1);
      matrices.erase(matrices.begin() + i);
    }
    for (int i = graph.initializer_size() - 1; i >= 0; --i) {
      const std::string name = graph.initializer(i).name();
      if (const auto count = readers.find(name); count == readers.end() || count->second > 0)
        continue;
      TensorProto *taken = nullptr;
      graph.mutable_initializer()->ExtractSubrange(i, 1, &taken);
      forms.parts.emplace_back(taken);
      names.erase(name);
      tensors.forget(name);
      for (int input = graph.input_size() - 1; input >= 0; --input)
        if (graph.input(input).name() == name)
          graph.mutable_input()->DeleteSubrange(input, 1);
    }
  }

  void addInitializers() {
    for (const std::unique_ptr<Matrix> &matrix : all) {
      const Quantization &form = matrix->stored.form;
      matrix->name = fresh(ownName(matrix->codes));
      TensorProto &initializer = *graph.add_initializer();
      initializer.set_name(matrix->name);
      initializer.set_data_type(TensorProto::FLOAT);
      initializer.add_dims(form.rows);
      initializer.add_dims(form.columns);
      FileTensor tensor{TensorProto::FLOAT, {form.rows, form.columns}, {}};
      tensor.stored = std::make_shared<const StoredMatrix>(matrix->stored);
      tensors.put(matrix->name, std::move(tensor));
    }
  }

  /// The name of the weight before ONNX Runtime's quantizers gave it a suffix.
  static std::string ownName(const std::string &name) {
    for (const char *suffix : {"_DQ_Q4", "_DQ_Q8", "_Q4", "_Q8", "_quantized"})
      if (const size_t length = std::strlen(suffix);
          name.size() > length && name.compare(name.size() - length, length, suffix) == 0)
        return name.substr(0, name.size() - length);
    return name;
  }

  /// A name that the model does not have.
  std::string fresh(std::string name) {
    while (!names.insert(name).second)
      name += "_";
    return name;
  }

  /// What a node is with floats for its weight.
  void make(const onnx::NodeProto &node, const std::string &weight, Nodes &nodes) {
    const auto add = [&](const char *op, const std::vector<std::string> &inputs, const std::string &name,
                         const std::string &output) -> onnx::NodeProto & {
      onnx::NodeProto &made = *nodes.Add() = makeNode(op, inputs);
      made.set_name(name);
      made.add_output(output);
      return made;
    };
    const std::string &result = node.output(0);
    if (node.op_type() == "DequantizeLinear") {
      add("Identity", {weight}, node.name(), result);
      return;
    }
    if (node.op_type() == "GatherBlockQuantized") {
      setInteger(add("Gather", {weight, node.input(1)}, node.name(), result), "axis",
                 Attributes(node).integer("gather_axis", 0));
      return;
    }
    const bool hasBias = has(node, 5);
    const std::string turned = fresh(result + "/weight"), product = hasBias ? fresh(result + "/product") : result;
    setIntegers(add("Transpose", {weight}, turned, turned), "perm", {1, 0});
    add("MatMul", {node.input(0), turned}, node.name(), product);
    if (hasBias)
      add("Add", {product, node.input(5)}, fresh(result + "/bias"), result);
  }

  using Key = std::tuple<const void *, const void *, const void *, std::string, int64_t, int64_t, float>;

  onnx::GraphProto &graph;
  TensorIndex &tensors;
  StoredForms forms;
  std::set<std::string> names;
  std::map<std::string, int> readers; ///< how often each value is read, by nodes of bodies, too
  FileParts parts;                    ///< until nodes go
  std::map<Key, size_t> indexOf;
  std::vector<std::unique_ptr<Matrix>> all;
};

} // namespace

StoredForms readStoredForms(onnx::ModelProto &model, TensorIndex &tensors) {
  const auto &nodes = model.graph().node();
  return std::any_of(nodes.begin(), nodes.end(), layoutOf) ? Reading(model, tensors).run() : StoredForms();
}

} // namespace sluice
