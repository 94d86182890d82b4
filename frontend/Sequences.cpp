// SPDX-License-Identifier: Apache-2.0
// Ops of sequences and optionals: lists of names, of which nothing is left but views and joins of tensors.
#include "frontend/Attributes.h"
#include "frontend/Flattening.h"
#include <algorithm>

namespace sluice {
namespace {

/// Loops that insert into a sequence copy its names every trip.
constexpr size_t longestSequence = 4096;

Outputs one(Bound bound) { return std::vector<Bound>{std::move(bound)}; }

Outputs sequenceOf(std::vector<std::string> names) {
  if (names.size() > longestSequence)
    return Error{"its sequence has " + std::to_string(names.size()) + " tensors, more than the " +
                 std::to_string(longestSequence) + " that are supported"};
  return one({Bound::Sequence, std::move(names)});
}

Outputs tensorOf(Result<std::string> name) { return name ? one(tensorBound(*name)) : name.takeError(); }

/// Input `input` as a position from -size to `last`, negative ones counted from the end; `otherwise` where it is
/// absent.
Result<int64_t> positionOf(Flattening &flat, const Structure &structure, int input, int64_t size, int64_t last,
                           int64_t otherwise) {
  if (!structure.has(input))
    return otherwise;
  auto name = flat.tensor(structure, input);
  auto at = name ? flat.number(*name, "its position") : name.takeError();
  if (at && (*at < -size || *at > last))
    return Error{"position " + std::to_string(*at) + " is outside a sequence of " + std::to_string(size) + " tensors"};
  return at && *at < 0 ? Result<int64_t>(*at + size) : at;
}

Outputs takeSequenceEmpty(Flattening &, const Structure &) { return sequenceOf({}); }

Outputs takeSequenceConstruct(Flattening &flat, const Structure &structure) {
  std::vector<std::string> names;
  for (int i = 0; i < structure.node.input_size(); ++i) {
    auto name = flat.tensor(structure, i);
    if (!name)
      return name.takeError();
    names.push_back(*name);
  }
  return sequenceOf(std::move(names));
}

Outputs takeSequenceInsert(Flattening &flat, const Structure &structure) {
  auto names = flat.sequence(structure, 0);
  auto added = names ? flat.tensor(structure, 1) : names.takeError();
  if (!added)
    return added.takeError();
  const int64_t size = static_cast<int64_t>(names->size());
  auto at = positionOf(flat, structure, 2, size, size, size);
  if (!at)
    return at.takeError();
  names->insert(names->begin() + *at, *added);
  return sequenceOf(std::move(*names));
}

Outputs takeSequenceErase(Flattening &flat, const Structure &structure) {
  auto names = flat.sequence(structure, 0);
  if (!names)
    return names.takeError();
  const int64_t size = static_cast<int64_t>(names->size());
  auto at = positionOf(flat, structure, 1, size, size - 1, size - 1);
  if (!at)
    return at.takeError();
  if (names->empty())
    return Error{"its sequence is empty"};
  names->erase(names->begin() + *at);
  return sequenceOf(std::move(*names));
}

Outputs takeSequenceAt(Flattening &flat, const Structure &structure) {
  auto names = flat.sequence(structure, 0);
  if (!names)
    return names.takeError();
  const int64_t size = static_cast<int64_t>(names->size());
  auto at = positionOf(flat, structure, 1, size, size - 1, -1);
  if (!at)
    return at.takeError();
  return *at < 0 ? Outputs(Error{"input 1, the position, is missing"})
                 : one(tensorBound((*names)[static_cast<size_t>(*at)]));
}

Outputs takeSequenceLength(Flattening &flat, const Structure &structure) {
  auto names = flat.sequence(structure, 0);
  if (!names)
    return names.takeError();
  return tensorOf(flat.constant(firstOutput(structure.node), HostTensor::scalar(static_cast<int64_t>(names->size())),
                                onnx::TensorProto::INT64));
}

Outputs takeConcatFromSequence(Flattening &flat, const Structure &structure) {
  auto names = flat.sequence(structure, 0);
  if (!names)
    return names.takeError();
  if (names->empty())
    return Error{"its sequence is empty"};
  const Attributes attributes(structure.node);
  const int64_t axis = attributes.integer("axis", 0);
  const std::string name = firstOutput(structure.node);
  return tensorOf(attributes.integer("new_axis", 0) ? flat.stack(*names, axis, name)
                                                    : flat.add("Concat", *names, name, {{"axis", axis}}));
}

/// Lengths of the parts: one for all parts but a smaller last one, or one each; 1 where none are given.
Result<std::vector<int64_t>> lengthsOf(Flattening &flat, const Structure &structure, int64_t extent) {
  std::vector<int64_t> lengths;
  int64_t each = 1;
  if (structure.has(1)) {
    auto name = flat.tensor(structure, 1);
    const HostTensor *given = name ? flat.value(*name) : nullptr;
    if (!given || !given->integral || given->shape.size() > 1)
      return name
                 ? Error{"the lengths of the parts '" + *name + "' must be whole numbers that are known when compiling"}
                 : name.takeError();
    if (given->shape.size() == 1)
      return given->ints;
    each = given->ints[0];
  }
  if (each < 1 || (extent - 1) / each >= static_cast<int64_t>(longestSequence))
    return Error{"an extent of " + std::to_string(extent) + " in parts of " + std::to_string(each) + " are not 1 to " +
                 std::to_string(longestSequence) + " tensors"};
  for (int64_t start = 0; start < extent; start += each)
    lengths.push_back(std::min(each, extent - start));
  return lengths;
}

/// A slice for each part. keepdims counts only without lengths, when each part is one element of the dimension.
Outputs takeSplitToSequence(Flattening &flat, const Structure &structure) {
  auto x = flat.tensor(structure, 0);
  auto shape = x ? flat.shape(*x, "its input") : x.takeError();
  if (!shape)
    return shape.takeError();
  const Attributes attributes(structure.node);
  const int64_t rank = static_cast<int64_t>(shape->size()), axis = attributes.integer("axis", 0);
  if (axis < -rank || axis >= rank)
    return Error{"axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank)};
  const int64_t extent = (*shape)[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  auto lengths = lengthsOf(flat, structure, extent);
  if (!lengths)
    return lengths.takeError();
  const std::string name = firstOutput(structure.node);
  const bool squeezed = !structure.has(1) && !attributes.integer("keepdims", 1);
  auto integers = [&](int64_t number) {
    return flat.constant(name + "/bound", HostTensor::vector({number}), onnx::TensorProto::INT64);
  };
  auto along = integers(axis), start = integers(0);
  std::vector<std::string> parts;
  int64_t at = 0;
  for (int64_t length : *lengths) {
    if (length < 0 || length > extent - at)
      return Error{"part of length " + std::to_string(length) + " from " + std::to_string(at) +
                   " does not fit the extent " + std::to_string(extent)};
    auto end = integers(at += length);
    if (!along || !start || !end)
      return !along ? along.takeError() : !start ? start.takeError() : end.takeError();
    auto part = flat.add("Slice", {*x, *start, *end, *along}, name);
    if (part && squeezed)
      part = flat.addView("Squeeze", *part, axis, name);
    if (!part)
      return part.takeError();
    parts.push_back(*part);
    start = end;
  }
  if (at != extent)
    return Error{"its parts have " + std::to_string(at) + " of the " + std::to_string(extent) + " elements"};
  return sequenceOf(std::move(parts));
}

Outputs takeOptional(Flattening &flat, const Structure &structure) {
  if (!structure.has(0))
    return one({Bound::Nothing, {}});
  auto bound = flat.input(structure, 0);
  return bound ? one(*bound) : bound.takeError();
}

Outputs takeOptionalHasElement(Flattening &flat, const Structure &structure) {
  auto bound = structure.has(0) ? flat.input(structure, 0) : Result<Bound>(Bound{Bound::Nothing, {}});
  if (!bound)
    return bound.takeError();
  return tensorOf(flat.constant(firstOutput(structure.node), HostTensor::scalar(bound->kind != Bound::Nothing),
                                onnx::TensorProto::BOOL));
}

Outputs takeOptionalGetElement(Flattening &flat, const Structure &structure) {
  auto bound = flat.input(structure, 0);
  if (!bound)
    return bound.takeError();
  return bound->kind == Bound::Nothing ? Outputs(Error{"reads an optional that is empty"}) : one(*bound);
}

} // namespace

void addSequences(TakeAparts &table) {
  table["SequenceEmpty"] = takeSequenceEmpty;
  table["SequenceConstruct"] = takeSequenceConstruct;
  table["SequenceInsert"] = takeSequenceInsert;
  table["SequenceErase"] = takeSequenceErase;
  table["SequenceAt"] = takeSequenceAt;
  table["SequenceLength"] = takeSequenceLength;
  table["SplitToSequence"] = takeSplitToSequence;
  table["ConcatFromSequence"] = takeConcatFromSequence;
  table["Optional"] = takeOptional;
  table["OptionalHasElement"] = takeOptionalHasElement;
  table["OptionalGetElement"] = takeOptionalGetElement;
}

} // namespace sluice
