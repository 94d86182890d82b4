// SPDX-License-Identifier: Apache-2.0
// The number of samples that all inputs have, and what to say where they have several.
#include "frontend/InputBatch.h"
#include "frontend/HostTensor.h"
#include "frontend/OnnxGraph.h"
#include <set>

namespace sluice {

namespace {

/// The extent along which the inputs' samples lie; 0: a scalar, which has no dimension for them.
int64_t samplesOf(const GraphInput &input) {
  if (input.batchDim == TrainingSpec::noBatch)
    return 1;
  return input.shape.empty() ? 0 : input.shape[static_cast<size_t>(input.batchDim)];
}

/// Of all inputs with samples a dimension beyond their first with one extent, as sequences with time in front have
/// it: the flags that would say so. Empty where there is none.
std::vector<std::pair<std::string, int64_t>> commonPlaces(const OnnxGraph &graph, const TrainingSpec &spec) {
  for (int64_t dim = 1; dim < spec.limits.rank; ++dim) {
    std::vector<std::pair<std::string, int64_t>> places;
    std::set<int64_t> extents;
    for (const GraphInput &input : graph.inputs) {
      if (input.shared)
        continue;
      if (dim >= static_cast<int64_t>(input.shape.size()))
        return {};
      places.emplace_back(input.name, dim);
      extents.insert(input.shape[static_cast<size_t>(dim)]);
    }
    if (extents.size() == 1)
      return places;
  }
  return {};
}

/// Names the flags that would make `input` agree with `first`: a dimension that all inputs have in common where there
/// is one, since models with time in front have their batch there.
Error otherBatch(const OnnxGraph &graph, const TrainingSpec &spec, const GraphInput &input, const GraphInput &first) {
  const std::string &name = input.name;
  std::string message = "input '" + name + "' of shape " + shapeText(input.shape);
  if (input.batchDim == TrainingSpec::noBatch)
    return Error{message + " has no batch by --batch-dim " + name + "=none, so that a batch is one sample, but '" +
                 first.name + "' has " + std::to_string(graph.batch)};
  message += input.shape.empty()
                 ? " has no dimension for samples"
                 : " does not have, as dimension " + std::to_string(input.batchDim) + ", the batch of " +
                       std::to_string(graph.batch) + " that '" + first.name + "' has";
  std::string flags;
  for (const auto &[other, dim] : commonPlaces(graph, spec))
    flags += " --batch-dim " + other + "=" + std::to_string(dim);
  if (flags.empty() && !input.shape.empty())
    flags = " --batch-dim " + name + "=K";
  return Error{message + ";" + (flags.empty() ? "" : flags + " says which dimension counts the samples (from 0 on),") +
               " --input " + name + "=shared that all samples have it in common, --batch-dim " + name +
               "=none that a sample is the whole input"};
}

} // namespace

/// The first input with a dimension for samples says how many there are; a scalar says it only where all are scalars,
/// for then the error has to name one.
Status findBatch(const TrainingSpec &spec, OnnxGraph &graph) {
  const GraphInput *first = nullptr;
  for (const GraphInput &input : graph.inputs)
    if (!input.shared && (!first || (samplesOf(*first) == 0 && samplesOf(input) > 0)))
      first = &input;
  if (!first)
    return Error{"all inputs are shared: there are no samples to train on; leave one --input NAME=shared out"};
  graph.batch = samplesOf(*first);
  if (spec.batch && graph.batch != *spec.batch && graph.batch > 0)
    return Error{"--batch=" + std::to_string(*spec.batch) + " conflicts with " + std::to_string(graph.batch) +
                 " from --dim or --batch-dim"};
  for (const GraphInput &input : graph.inputs) {
    if (!input.shared && samplesOf(input) != graph.batch)
      return otherBatch(graph, spec, input, *first);
    if (input.name == "target" && !endsInOwnLoss(spec) && lossesOf(spec)[0].target == "target")
      return Error{"input 'target' has the name of the attached loss's target; rename it"};
  }
  return graph.batch > 0 ? Status(Success{}) : otherBatch(graph, spec, *first, *first);
}

} // namespace sluice
