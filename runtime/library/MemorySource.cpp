// SPDX-License-Identifier: Apache-2.0
// A pointer that is wrong cannot be known; everything else is checked before anything is read.
#include "runtime/library/MemorySource.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/files/Npy.h"

#include <cstring>

namespace sluice {

/// Bytes of one tensor: more is a mistake, and would not be counted rightly.
static constexpr int64_t most = int64_t{1} << 48;

static std::string shapeText(const int64_t *dims, int rank) { return numpyShape({dims, dims + rank}); }

static const char *typeText(sluice_type type) {
  return type == SLUICE_F32   ? typeName(DataType::F32)
         : type == SLUICE_I64 ? typeName(DataType::I64)
                              : "of no known type";
}

void MemorySource::take(int input, const sluice_tensor &tensor) {
  const Input &known = program.inputs[input];
  const std::string what = text("input '", known.name, "'");
  if (values[static_cast<size_t>(input)])
    throw UsageError(what + " is given twice");
  if (!tensor.data || tensor.rank < 0 || tensor.rank > Shape::maxRank || (tensor.rank > 0 && !tensor.shape))
    throw UsageError(text(what, " has no data, or no shape of at most ", Shape::maxRank, " dimensions"));
  if (tensor.type != (known.staging.type == DataType::I64 ? SLUICE_I64 : SLUICE_F32))
    throw UsageError(text(what, " is ", typeText(tensor.type), ", the model takes ", typeName(known.staging.type)));
  Shape shape = known.staging.shape;
  if (!known.shared) {
    if (!isKnown && tensor.rank > 0)
      count = tensor.shape[0];
    isKnown = true;
    shape.dims[0] = count;
    if (count < 1 || count > most / static_cast<int64_t>(sampleBytes(known)))
      throw UsageError(text(what, " has ", count, " samples"));
  }
  if (tensor.rank != shape.rank ||
      std::memcmp(tensor.shape, shape.dims, sizeof(int64_t) * static_cast<size_t>(shape.rank)))
    throw UsageError(text(what, " has the shape ", shapeText(tensor.shape, tensor.rank), ", the model takes ",
                          shapeText(shape.dims, shape.rank)));
  values[static_cast<size_t>(input)] = static_cast<const char *>(tensor.data);
}

void MemorySource::take(Tensors tensors, const char *kind, const std::vector<int> &places) {
  if (tensors.count != static_cast<int>(places.size()) || (tensors.count > 0 && !tensors.list))
    throw UsageError(text(tensors.list ? tensors.count : 0, " ", kind, " are given, the model has ", places.size()));
  for (int i = 0; i < tensors.count; ++i) {
    const sluice_tensor &tensor = tensors.list[i];
    int input = places[static_cast<size_t>(i)];
    if (tensor.name) {
      input = -1;
      for (const int place : places)
        if (!std::strcmp(program.inputs[place].name, tensor.name))
          input = place;
    }
    if (input < 0)
      throw UsageError(text("the model has no '", printable(tensor.name), "' among its ", kind));
    take(input, tensor);
  }
}

void MemorySource::show(Tensors inputs, const Tensors *targets) {
  std::vector<int> ofModel, ofLoss;
  for (int i = 0; i < program.inputCount; ++i)
    if (isTarget(program, i))
      ofLoss.push_back(i);
    else if (targets || isPredictedFrom(program, i))
      ofModel.push_back(i);
  values.assign(static_cast<size_t>(program.inputCount), nullptr);
  count = wanted;
  isKnown = wanted > 0;
  take(inputs, "inputs", ofModel);
  if (targets)
    take(*targets, "targets", ofLoss);
  if (count < 1)
    throw UsageError("there are no samples");
}

void MemorySource::read(int input, int64_t sample, char *to) const {
  const size_t bytes = sampleBytes(program.inputs[input]);
  const size_t place = program.inputs[input].shared ? 0 : static_cast<size_t>(sample);
  std::memcpy(to, values[static_cast<size_t>(input)] + place * bytes, bytes);
}

std::string MemorySource::name(int input, int64_t sample) const {
  return text("'", program.inputs[input].name, "': sample ", sample);
}

} // namespace sluice
