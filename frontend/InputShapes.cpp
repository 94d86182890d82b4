// SPDX-License-Identifier: Apache-2.0
// Which dimension counts the samples: what --batch-dim says, else the one that the file calls so (the standard's
// denotation DATA_BATCH, or the open dimension that is called "batch" wherever it stands), else the first one.
#include "frontend/InputShapes.h"
#include "frontend/HostTensor.h"
#include "frontend/InputBatch.h"
#include "frontend/OnnxGraph.h"
#include "onnx/onnx_pb.h"
#include <algorithm>

namespace sluice {

std::vector<int64_t> batchToFront(int64_t rank, int64_t batchDim) {
  std::vector<int64_t> permutation = {batchDim};
  for (int64_t i = 0; i < rank; ++i)
    if (i != batchDim)
      permutation.push_back(i);
  return permutation;
}

/// Samples come first in data, wherever nodes have them.
std::vector<int64_t> GraphInput::programShape() const {
  std::vector<int64_t> result = shape;
  if (shared)
    return result;
  if (batchDim == TrainingSpec::noBatch)
    result.insert(result.begin(), 1);
  else if (batchDim < static_cast<int64_t>(result.size())) // an input without dimensions is refused later
    std::rotate(result.begin(), result.begin() + batchDim, result.begin() + batchDim + 1);
  return result;
}

namespace {

using Dimension = onnx::TensorShapeProto::Dimension;

const onnx::TensorShapeProto &shapeProto(const onnx::ValueInfoProto &value) {
  return value.type().tensor_type().shape();
}

bool isFixed(const Dimension &dim) { return dim.has_dim_value() && dim.dim_value() != 0; }

/// The name by which --dim knows a dimension.
std::string dimName(const onnx::ValueInfoProto &input, int i) {
  const Dimension &dim = shapeProto(input).dim(i);
  return dim.has_dim_param() && !dim.dim_param().empty() ? dim.dim_param()
                                                         : input.name() + "[" + std::to_string(i) + "]";
}

bool saysBatch(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.find("batch") != std::string::npos;
}

/// --batch-dim and --input name inputs that the output needs; --batch-dim the output, too.
Status checkFlags(const std::vector<const onnx::ValueInfoProto *> &inputs, const TrainingSpec &spec,
                  const OnnxGraph &graph) {
  std::string known;
  for (const onnx::ValueInfoProto *input : inputs)
    known += (known.empty() ? "'" : ", '") + input->name() + "'";
  const auto isInput = [&](const std::string &name) {
    return std::any_of(inputs.begin(), inputs.end(), [&](const auto *input) { return input->name() == name; });
  };
  for (const std::string &name : spec.shared) {
    if (!isInput(name))
      return Error{"--input " + name + "=shared: the inputs of " + graph.outputNames() + " are " + known};
    if (spec.batchDims.count(name))
      return Error{"--input " + name + "=shared says that it has no batch, --batch-dim " + name +
                   " where; give one of them"};
  }
  for (const auto &[name, dim] : spec.batchDims)
    if (!isInput(name) && !graph.output(name))
      return Error{"--batch-dim " + name + ": there are the inputs " + known + " and the " + graph.outputNames()};
  return Success{};
}

/// What open dimensions that count samples are called: the first one of the first input, unless the name of another
/// says that it is the batch. Empty where the first input has no name for it.
std::string findBatchSymbol(const std::vector<const onnx::ValueInfoProto *> &inputs, const TrainingSpec &spec) {
  std::string first, saying;
  bool isFirst = true;
  for (const onnx::ValueInfoProto *input : inputs) {
    if (spec.shared.count(input->name()))
      continue;
    const onnx::TensorShapeProto &shape = shapeProto(*input);
    const auto said = spec.batchDims.find(input->name());
    for (int i = 0; i < shape.dim_size(); ++i) {
      const std::string &name = shape.dim(i).dim_param();
      if (isFixed(shape.dim(i)) || name.empty())
        continue;
      const bool counts = said != spec.batchDims.end() ? said->second == i : i == 0;
      if (counts && isFirst)
        first = name;
      if (saying.empty() && saysBatch(name))
        saying = name;
    }
    isFirst = false;
  }
  return saying.empty() || saysBatch(first) ? first : saying;
}

/// Which dimension counts the samples, by flags, denotations and names.
class SampleDimensions {
public:
  SampleDimensions(const std::vector<const onnx::ValueInfoProto *> &inputs, const TrainingSpec &spec)
      : spec(spec), symbol(findBatchSymbol(inputs, spec)) {}

  /// What the file calls the batch; empty where it has no name.
  const std::string &batchSymbol() const { return symbol; }

  /// --batch-dim decides; else a dimension that says by its denotation or its name that it counts samples; else the
  /// first.
  int64_t of(const onnx::ValueInfoProto &value) {
    if (const auto said = spec.batchDims.find(value.name()); said != spec.batchDims.end())
      return said->second;
    const onnx::TensorShapeProto &shape = shapeProto(value);
    const auto counts = [&](const Dimension &dim) {
      return dim.denotation() == "DATA_BATCH" || (!symbol.empty() && !isFixed(dim) && dim.dim_param() == symbol);
    };
    for (int i = 0; i < shape.dim_size(); ++i)
      if (counts(shape.dim(i))) {
        if (i > 0)
          found += (found.empty() ? "" : ", ") + std::to_string(i) + " of '" + value.name() + "'";
        return i;
      }
    return 0;
  }

  /// What dimensions are the batch by their names, and are not the first.
  void remark(OnnxGraph &graph) const {
    if (!found.empty())
      graph.remarks.push_back("samples lie along dimension " + found +
                              ", as the file calls it; data have them in the first one");
  }

private:
  const TrainingSpec &spec;
  const std::string symbol;
  std::string found;
};

class InputShapes {
public:
  InputShapes(const std::vector<const onnx::ValueInfoProto *> &inputs, const onnx::GraphProto &model,
              const TrainingSpec &spec, OnnxGraph &graph)
      : protos(inputs), model(model), spec(spec), graph(graph), samples(inputs, spec) {}

  /// The order is that of what a user can mend: flags that name nothing, then each input, then all open dimensions in
  /// one error, then names and batches, which need all shapes.
  Status run() {
    if (Status named = checkFlags(protos, spec, graph); !named)
      return named;
    for (const onnx::ValueInfoProto *input : protos)
      if (Status added = add(*input); !added)
        return added;
    if (!openDimensions.empty())
      return openError();
    remarkOnAssumed();
    if (Status named = checkNames(); !named)
      return named;
    if (Status batches = findBatch(spec, graph); !batches)
      return batches;
    return placeOutputs();
  }

private:
  /// An open extent is 0 until the error that lists all of them. Sizes are not compared with limits before, as an
  /// extent of 0 makes every size 0.
  Status add(const onnx::ValueInfoProto &input) {
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape())
      return Error{"input '" + input.name() + "' is not a tensor of known rank"};
    GraphInput entry{input.name(), input.type().tensor_type().elem_type(), {}};
    entry.shared = spec.shared.count(input.name()) > 0;
    const int rank = shapeProto(input).dim_size();
    entry.batchDim = entry.shared ? TrainingSpec::noBatch : samples.of(input);
    if (rank > 0 && entry.batchDim >= rank)
      return Error{"--batch-dim " + input.name() + "=" + std::to_string(entry.batchDim) + ": the dimensions of '" +
                   input.name() + "' are 0 to " + std::to_string(rank - 1)};
    for (int i = 0; i < rank; ++i) {
      int64_t extent = extentOf(input, i, i == entry.batchDim);
      if (extent < 0)
        return Error{"input '" + input.name() + "' has the negative extent " + std::to_string(extent)};
      if (extent == 0 && spec.assumesOpen)
        extent = assumed(input, i, i == entry.batchDim);
      if (extent == 0)
        openDimensions.push_back({&input, i, i == entry.batchDim});
      entry.shape.push_back(extent);
    }
    if (Status shape = checkShape(entry.programShape(), spec.limits); openDimensions.empty() && !shape)
      return Error{"input '" + input.name() + "' " + shape.error()};
    graph.inputs.push_back(std::move(entry));
    return Success{};
  }

  /// 0 when open.
  int64_t extentOf(const onnx::ValueInfoProto &input, int i, bool isBatch) {
    const Dimension &dim = shapeProto(input).dim(i);
    const bool fixed = isFixed(dim);
    std::string name = fixed ? std::to_string(dim.dim_value()) : dimName(input, i);
    if (!fixed)
      names.insert(name);
    if (isBatch && batchName.empty()) {
      batchName = name;
      if (spec.batch && fixed && dim.dim_value() != *spec.batch)
        graph.replacedBatch = dim.dim_value();
    }
    auto given = fixed ? spec.dims.end() : spec.dims.find(name);
    if (given != spec.dims.end()) {
      used.insert(name);
      return given->second;
    }
    // Inputs share the batch when they share its name, wherever it stands, or as dimensions of samples its number; an
    // unnamed dimension of samples is the batch too.
    const bool named = !fixed && !dim.dim_param().empty();
    if (spec.batch &&
        ((isBatch && (name == batchName || (!fixed && !named))) || (named && name == samples.batchSymbol())))
      return *spec.batch;
    return fixed ? dim.dim_value() : 0;
  }

  /// A usual extent: of images and volumes the sizes that most classifiers take, of sequences a short one.
  int64_t assumed(const onnx::ValueInfoProto &input, int i, bool isBatch) {
    constexpr int64_t batch = 2, side = 224, shortSide = 32, length = 16, channels = 3;
    const int rank = shapeProto(input).dim_size();
    const int64_t usual = isBatch ? batch : rank < 4 ? length : i == 1 ? channels : rank == 4 ? side : shortSide;
    return assumedExtents.emplace(dimName(input, i), usual).first->second;
  }

  void remarkOnAssumed() {
    std::string list;
    for (const auto &[name, extent] : assumedExtents)
      list += (list.empty() ? "" : ", ") + name + "=" + std::to_string(extent);
    if (!list.empty())
      graph.remarks.push_back("checked with " + list + " for dimensions that the file leaves open; --batch and --dim " +
                              "say others");
  }

  struct Open {
    const onnx::ValueInfoProto *input;
    int dimension;
    bool isBatch;
  };

  /// All that must be given, at once.
  Error openError() const {
    std::string open, flags;
    std::set<std::string> told;
    for (const Open &one : openDimensions) {
      const std::string name = dimName(*one.input, one.dimension);
      open += (open.empty() ? "input '" : "; input '") + one.input->name() + "' leaves dimension " +
              std::to_string(one.dimension) + " ('" + name + "') open";
      // --batch is for the batch of the first input, which has given it its name.
      const bool byBatch = one.isBatch && !spec.batch && name == batchName;
      if (told.insert(name).second)
        flags += (flags.empty() ? "" : " and ") + std::string(byBatch ? "--batch=N or " : "") + "--dim " + name + "=N";
    }
    return Error{open + "; fix " + (openDimensions.size() == 1 ? "it" : "them") + " with " + flags};
  }

  /// --dim names that no input has.
  Status checkNames() const {
    for (const auto &[name, extent] : spec.dims)
      if (!used.count(name)) {
        std::string known;
        for (const std::string &other : names)
          known += (known.empty() ? "" : ", ") + other;
        return Error{"--dim " + name + "=" + std::to_string(extent) +
                     " names no open dimension of an input; there are: " + (known.empty() ? "none" : known)};
      }
    return Success{};
  }

  /// Where trained outputs have their samples; a model whose inputs have no batch has none there.
  Status placeOutputs() {
    const bool unbatched = std::all_of(graph.inputs.begin(), graph.inputs.end(), [](const GraphInput &input) {
      return input.shared || input.batchDim == TrainingSpec::noBatch;
    });
    for (GraphOutput &output : graph.outputs) {
      const auto said = spec.batchDims.find(output.name);
      const auto proto = std::find_if(model.output().begin(), model.output().end(),
                                      [&](const auto &one) { return one.name() == output.name; });
      const bool isLoss = isOwnLoss(spec, output.name);
      if (isLoss && said != spec.batchDims.end())
        return Error{"--batch-dim " + output.name + ": with --loss=none the output is the loss, which has no samples"};
      if (said != spec.batchDims.end())
        output.batchDim = said->second;
      else if (unbatched)
        output.batchDim = TrainingSpec::noBatch;
      else if (proto != model.output().end() && proto->type().has_tensor_type() && !isLoss)
        output.batchDim = samples.of(*proto);
    }
    samples.remark(graph);
    return Success{};
  }

  const std::vector<const onnx::ValueInfoProto *> &protos;
  const onnx::GraphProto &model;
  const TrainingSpec &spec;
  OnnxGraph &graph;
  SampleDimensions samples;
  std::string batchName; ///< name or number of the first dimension of samples
  std::vector<Open> openDimensions;
  std::map<std::string, int64_t> assumedExtents; ///< by the names of open dimensions
  std::set<std::string> names, used;
};

} // namespace

Status findInputShapes(const std::vector<const onnx::ValueInfoProto *> &inputs, const onnx::GraphProto &model,
                       const TrainingSpec &spec, OnnxGraph &graph) {
  return InputShapes(inputs, model, spec, graph).run();
}

} // namespace sluice
