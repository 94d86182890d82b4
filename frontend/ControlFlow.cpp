// SPDX-License-Identifier: Apache-2.0
// If, Loop, Scan and SequenceMap: which bodies they come to. Trips that are known are counted before the first one;
// where a condition that the body computes may end a loop, the limits on what is unrolled end those that it does not.
#include "frontend/Attributes.h"
#include "frontend/Flattening.h"
#include <algorithm>
#include <limits>

namespace sluice {
namespace {

/// Names of what is the same for all ops of one node begin as its first output.
std::string named(const Structure &structure, const char *what) { return firstOutput(structure.node) + "/" + what; }

Outputs takeIf(Flattening &flat, const Structure &structure) {
  auto name = flat.tensor(structure, 0);
  auto condition = name ? flat.number(*name, "its condition") : name.takeError();
  if (!condition)
    return condition.takeError();
  const onnx::GraphProto *branch = structure.graph(*condition ? "then_branch" : "else_branch");
  return branch ? flat.instantiate(*branch, {}, structure.scope) : Error{"the branch that it takes is missing"};
}

/// What a loop has between two trips.
struct Trips {
  std::string condition;
  std::vector<Bound> carried;
  std::vector<std::vector<std::string>> scanned; ///< a tensor a trip, for each output of which all are kept
};

/// Runs the body once; its outputs are the next condition, what is carried, what is kept.
Status takeTrip(Flattening &flat, const Structure &structure, const onnx::GraphProto &body, int64_t trip,
                Trips &trips) {
  // A number by the standard; exports of PyTorch declare a vector of one, and use it as such.
  const bool isVector = body.input_size() > 0 && body.input(0).type().tensor_type().shape().dim_size() == 1;
  auto number =
      flat.constant(named(structure, "trip"), isVector ? HostTensor::vector({trip}) : HostTensor::scalar(trip),
                    onnx::TensorProto::INT64);
  if (!number)
    return number.takeError();
  std::vector<Bound> inputs = {tensorBound(*number), tensorBound(trips.condition)};
  inputs.insert(inputs.end(), trips.carried.begin(), trips.carried.end());
  Outputs outputs = flat.instantiate(body, inputs, structure.scope);
  if (!outputs)
    return outputs.takeError();
  const size_t carried = trips.carried.size();
  for (size_t i = 0; i < outputs->size(); ++i)
    if ((i == 0 || i > carried) && (*outputs)[i].kind != Bound::Tensor)
      return Error{"output " + std::to_string(i) + " of its body must be a tensor"};
  trips.condition = (*outputs)[0].names[0];
  trips.carried.assign(outputs->begin() + 1, outputs->begin() + 1 + static_cast<long>(carried));
  for (size_t i = 0; i < trips.scanned.size(); ++i)
    trips.scanned[i].push_back((*outputs)[1 + carried + i].names[0]);
  return Success{};
}

/// What a loop of no trip keeps: nothing, of a shape that only its body knows.
Result<std::string> emptyOutput(Flattening &flat, const std::string &name) {
  return flat.constant(name, HostTensor::vector({}), onnx::TensorProto::FLOAT);
}

/// What a trip leaves as the condition: the one before it, true whatever that was, or what its nodes compute.
enum class NextCondition { Same, True, Computed };

bool isTrue(const onnx::TensorProto &value) {
  return value.raw_data().empty() ? value.int32_data_size() > 0 && value.int32_data(0) != 0 : value.raw_data()[0] != 0;
}

/// Looks at the body alone, through Identity nodes back from its first output. What it does not understand is Computed:
/// then the trips are not counted before, and the limits end the loop while it is unrolled.
NextCondition nextCondition(const onnx::GraphProto &body) {
  std::string name = body.output(0).name();
  for (int i = body.node_size() - 1; i >= 0; --i) { // in the standard's order, values are made before they are read
    const onnx::NodeProto &node = body.node(i);
    if (std::find(node.output().begin(), node.output().end(), name) == node.output().end())
      continue;
    const onnx::TensorProto *value = node.op_type() == "Constant" ? Attributes(node).tensor("value") : nullptr;
    if (value && isTrue(*value))
      return NextCondition::True;
    if (node.op_type() != "Identity" || node.input_size() != 1)
      return NextCondition::Computed;
    name = node.input(0);
  }
  for (const onnx::TensorProto &initializer : body.initializer())
    if (initializer.name() == name)
      return isTrue(initializer) ? NextCondition::True : NextCondition::Computed;
  return body.input_size() < 2 || name == body.input(1).name() ? NextCondition::Same : NextCondition::Computed;
}

/// The limits before a loop that only its trip count ends.
Status checkLoop(Flattening &flat, const onnx::GraphProto &body, const std::string &condition, int64_t most) {
  const HostTensor *known = flat.value(condition);
  const bool begins = known && known->size() == 1 && known->integral && known->ints[0] != 0;
  if (!begins || nextCondition(body) == NextCondition::Computed)
    return Success{};
  if (most == std::numeric_limits<int64_t>::max())
    return Error{"never ends: it has no trip count, and its body leaves the condition true"};
  return flat.checkTrips(most, body);
}

/// Loop's inputs are a trip count, a condition and what is carried; the first two may be missing, which means no limit
/// and true. Outputs are what is carried after the last trip, then a stack for each output that all trips keep.
Outputs takeLoop(Flattening &flat, const Structure &structure) {
  const onnx::GraphProto *body = structure.graph("body");
  Trips trips;
  int64_t most = std::numeric_limits<int64_t>::max();
  for (int i = 2; i < structure.node.input_size(); ++i) {
    auto bound = flat.input(structure, i);
    if (!bound)
      return bound.takeError();
    trips.carried.push_back(*bound);
  }
  const size_t carried = trips.carried.size();
  if (!body || static_cast<size_t>(body->output_size()) < 1 + carried)
    return Error{"its body has fewer outputs than a condition and the " + std::to_string(carried) + " carried values"};
  trips.scanned.resize(static_cast<size_t>(body->output_size()) - 1 - carried);
  if (structure.has(0)) {
    auto name = flat.tensor(structure, 0);
    auto count = name ? flat.number(*name, "its trip count") : name.takeError();
    if (!count)
      return count.takeError();
    most = *count;
  }
  auto condition = structure.has(1)
                       ? flat.tensor(structure, 1)
                       : flat.constant(named(structure, "goes-on"), HostTensor::scalar(1), onnx::TensorProto::BOOL);
  if (!condition)
    return condition.takeError();
  trips.condition = *condition;
  if (Status fits = checkLoop(flat, *body, *condition, most); !fits)
    return fits.takeError();
  // The condition must be known before each trip: what data decide cannot be unrolled.
  for (int64_t trip = 0; trip < most; ++trip) {
    auto goesOn = flat.number(trips.condition, "its condition before trip " + std::to_string(trip));
    if (!goesOn)
      return goesOn.takeError();
    if (!*goesOn)
      break;
    if (Status taken = takeTrip(flat, structure, *body, trip, trips); !taken)
      return taken.takeError();
  }
  std::vector<Bound> outputs = std::move(trips.carried);
  for (size_t i = 0; i < trips.scanned.size(); ++i) {
    const std::string name = named(structure, "scanned");
    auto stacked = trips.scanned[i].empty() ? emptyOutput(flat, name) : flat.stack(trips.scanned[i], 0, name);
    if (!stacked)
      return stacked.takeError();
    outputs.push_back(tensorBound(*stacked));
  }
  return outputs;
}

/// A Scan's tensors and how it walks along them.
struct Walk {
  std::vector<std::string> tensors;
  std::vector<int64_t> axes, backwards;
  int64_t trips = 0;
};

int64_t entry(const std::vector<int64_t> &list, size_t i) { return i < list.size() ? list[i] : 0; }

/// The scanned inputs, which come after the states. All must have one extent along their axes, for that is the number
/// of trips.
Result<Walk> walkOf(Flattening &flat, const Structure &structure, int states) {
  const Attributes attributes(structure.node);
  Walk walk{{}, attributes.integers("scan_input_axes"), attributes.integers("scan_input_directions"), 0};
  for (int i = states; i < structure.node.input_size(); ++i) {
    auto name = flat.tensor(structure, i);
    auto shape = name ? flat.shape(*name, "its scanned input") : name.takeError();
    if (!shape)
      return shape.takeError();
    const int64_t rank = static_cast<int64_t>(shape->size()), axis = entry(walk.axes, walk.tensors.size());
    if (axis < -rank || axis >= rank)
      return Error{"axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank)};
    const int64_t extent = (*shape)[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
    if (!walk.tensors.empty() && extent != walk.trips)
      return Error{"its scanned inputs have " + std::to_string(walk.trips) + " and " + std::to_string(extent) +
                   " elements along their axes"};
    walk.trips = extent;
    walk.tensors.push_back(*name);
  }
  return walk;
}

/// The states, and the elements of the scanned tensors at one trip.
Outputs inputsOf(Flattening &flat, const Structure &structure, const Walk &walk, int64_t trip,
                 std::vector<Bound> states) {
  for (size_t i = 0; i < walk.tensors.size(); ++i) {
    const int64_t at = entry(walk.backwards, i) ? walk.trips - 1 - trip : trip;
    auto index = flat.constant(named(structure, "index"), HostTensor::scalar(at), onnx::TensorProto::INT64);
    auto element = index ? flat.add("Gather", {walk.tensors[i], *index}, named(structure, "element"),
                                    {{"axis", entry(walk.axes, i)}})
                         : index;
    if (!element)
      return element.takeError();
    states.push_back(tensorBound(*element));
  }
  return states;
}

/// Scan has no condition, so that its trips are counted before the first one. Outputs are the states after the last
/// trip, then the stacks; a stack that runs backwards is turned when all its elements are there.
Outputs takeScan(Flattening &flat, const Structure &structure) {
  constexpr int64_t firstWithoutBatch = 9;
  const onnx::GraphProto *body = structure.graph("body");
  const Attributes attributes(structure.node);
  const int64_t scans = attributes.integer("num_scan_inputs", 0);
  if (flat.opset() < firstWithoutBatch)
    return Error{"its form of opset 8 is not supported; convert the model with onnx.version_converter"};
  if (scans < 1 || scans > structure.node.input_size())
    return Error{"num_scan_inputs of " + std::to_string(scans) + " does not fit its " +
                 std::to_string(structure.node.input_size()) + " inputs"};
  const int states = structure.node.input_size() - static_cast<int>(scans);
  if (!body || body->output_size() < states)
    return Error{"its body has fewer outputs than the " + std::to_string(states) + " states"};
  Result<Walk> walk = walkOf(flat, structure, states);
  if (!walk)
    return walk.takeError();
  if (Status fits = flat.checkTrips(walk->trips, *body); !fits)
    return fits.takeError();
  std::vector<Bound> carried;
  for (int i = 0; i < states; ++i) {
    auto name = flat.tensor(structure, i);
    if (!name)
      return name.takeError();
    carried.push_back(tensorBound(*name));
  }
  // A list for each scanned output, with one tensor a trip.
  std::vector<std::vector<std::string>> kept(static_cast<size_t>(body->output_size() - states));
  for (int64_t trip = 0; trip < walk->trips; ++trip) {
    Outputs inputs = inputsOf(flat, structure, *walk, trip, carried);
    Outputs outputs = inputs ? flat.instantiate(*body, *inputs, structure.scope) : inputs.takeError();
    if (!outputs)
      return outputs;
    carried.assign(outputs->begin(), outputs->begin() + states);
    for (size_t i = 0; i < kept.size(); ++i) {
      Bound &element = (*outputs)[static_cast<size_t>(states) + i];
      if (element.kind != Bound::Tensor)
        return Error{"output " + std::to_string(states + static_cast<int>(i)) + " of its body must be a tensor"};
      kept[i].push_back(element.names[0]);
    }
  }
  const std::vector<int64_t> axes = attributes.integers("scan_output_axes"),
                             backwards = attributes.integers("scan_output_directions");
  for (size_t i = 0; i < kept.size(); ++i) {
    if (entry(backwards, i))
      std::reverse(kept[i].begin(), kept[i].end());
    auto stacked = flat.stack(kept[i], entry(axes, i), named(structure, "scanned"));
    if (!stacked)
      return stacked.takeError();
    carried.push_back(tensorBound(*stacked));
  }
  return carried;
}

/// The body once for each element of the first sequence; of other inputs that are tensors, the whole each time.
Outputs takeSequenceMap(Flattening &flat, const Structure &structure) {
  const onnx::GraphProto *body = structure.graph("body");
  auto first = flat.sequence(structure, 0);
  if (!first || !body)
    return first ? Error{"its body is missing"} : first.takeError();
  std::vector<Bound> inputs, mapped(static_cast<size_t>(body->output_size()), Bound{Bound::Sequence, {}});
  for (int i = 0; i < structure.node.input_size(); ++i) {
    auto bound = flat.input(structure, i);
    if (!bound)
      return bound.takeError();
    if (bound->kind == Bound::Sequence && bound->names.size() != first->size())
      return Error{"its sequences have " + std::to_string(first->size()) + " and " +
                   std::to_string(bound->names.size()) + " elements"};
    inputs.push_back(*bound);
  }
  for (size_t at = 0; at < first->size(); ++at) {
    std::vector<Bound> elements;
    for (const Bound &bound : inputs)
      elements.push_back(bound.kind == Bound::Sequence ? tensorBound(bound.names[at]) : bound);
    Outputs outputs = flat.instantiate(*body, elements, structure.scope);
    if (!outputs)
      return outputs;
    for (size_t i = 0; i < mapped.size(); ++i) {
      if ((*outputs)[i].kind != Bound::Tensor)
        return Error{"output " + std::to_string(i) + " of its body must be a tensor"};
      mapped[i].names.push_back((*outputs)[i].names[0]);
    }
  }
  return mapped;
}

} // namespace

void addControlFlow(TakeAparts &table) {
  table["If"] = takeIf;
  table["Loop"] = takeLoop;
  table["Scan"] = takeScan;
  table["SequenceMap"] = takeSequenceMap;
}

} // namespace sluice
