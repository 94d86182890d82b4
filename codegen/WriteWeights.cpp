// SPDX-License-Identifier: Apache-2.0
// Writes first values through the runtime's own safetensors writer, see WriteWeights.h.
#include "codegen/WriteWeights.h"

#include "ir/RuntimeTypes.h"
#include "ir/TensorName.h"
#include "runtime/files/Safetensors.h"

#include <cstring>

using namespace mlir;
using namespace sluice;
using namespace sluice::codegen;
using train::VariableOp;

static bool fromFile(VariableOp variable) { return variable.getValue() || variable.getInit() == train::Init::File; }

bool codegen::needsWeights(ModuleOp module) { return llvm::any_of(module.getOps<VariableOp>(), fromFile); }

/// The elements of a constant, as raw bytes in memory order.
static std::string rawBytes(ElementsAttr value) {
  std::string bytes;
  auto append = [&](auto element) { bytes.append(reinterpret_cast<const char *>(&element), sizeof element); };
  if (value.getElementType().isF32())
    for (float element : value.getValues<float>())
      append(element);
  else
    for (int64_t element : value.getValues<int64_t>())
      append(element);
  return bytes;
}

/// What is written of a variable that is no plain bytes of the model: a constant of the module, or a form of fewer
/// bits.
static std::string madeOf(const std::string &name, VariableOp variable, const SourceTensor &source) {
  if (variable.getValue())
    return rawBytes(*variable.getValue());
  if (source.form)
    return source.form();
  return quantized(train::attr::get<train::attr::Quantized>(variable).form(), name,
                   [&](size_t first, void *to, size_t size) { std::memcpy(to, source.bytes.data() + first, size); });
}

/// What a variable of floats in the model is written as; a form of fewer bits is made when it is due, so that one
/// tensor's at a time is in memory.
static TensorToWrite weightOf(const std::string &name, VariableOp variable, const SourceTensor &source) {
  const Tensor held = tensorOf(variable.wholeType());
  return {name, held.type, held.shape, [name, variable, source](const TensorToWrite::Put &put) mutable {
            if (!variable.getValue() && !train::attr::has<train::attr::Quantized>(variable))
              return put(source.bytes.data(), source.bytes.size());
            const std::string own = madeOf(name, variable, source);
            put(own.data(), own.size());
          }};
}

/// Bytes of the model are written from where they lie, constants of the module from a copy that lives as long as its
/// write: weights may be larger than memory. All sizes are compared before the file is begun.
Status codegen::writeWeights(const std::string &path, const std::string &identity, ModuleOp module,
                             const TensorSource &source) {
  std::vector<TensorToWrite> tensors;
  Metadata metadata = {{"format", weightsFormat}, {"identity", identity}};
  for (auto variable : module.getOps<VariableOp>()) {
    if (!fromFile(variable))
      continue;
    const RankedTensorType type = variable.wholeType();
    std::string name = tensorName(variable).str();
    auto origin = variable->getAttrOfType<StringAttr>(train::sourceAttribute);
    const SourceTensor tensor =
        variable.getValue() ? SourceTensor() : source(origin ? origin.getValue() : StringRef(name));
    const auto form = train::attr::get<train::attr::Quantized>(variable);
    const int64_t needed = form ? 4 * ShapedType::getNumElements(form.getShape()) : train::bytes(type);
    if (!variable.getValue() && !tensor.form && static_cast<int64_t>(tensor.bytes.size()) != needed)
      return Error{"the model holds " + std::to_string(tensor.bytes.size()) + " bytes for '" + name + "', " +
                   std::to_string(needed) + " are needed"};
    if (form)
      metadata[formKey(name)] = describe(form.form());
    tensors.push_back(weightOf(name, variable, tensor));
  }
  try {
    writeSafetensors(path, metadata, tensors);
  } catch (const std::exception &error) {
    return Error{error.what()};
  }
  return Success{};
}
