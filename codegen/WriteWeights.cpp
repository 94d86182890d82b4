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

/// What a variable of `bytes` floats in the model is written as; a form of fewer bits is made when it is due, so that
/// one tensor's at a time is in memory.
static TensorToWrite weightOf(const std::string &name, VariableOp variable, std::string_view bytes) {
  const Tensor held = tensorOf(cast<RankedTensorType>(variable.getType()));
  const auto quantizedAs = train::attr::get<train::attr::Quantized>(variable);
  return {name, held.type, held.shape, [name, variable, bytes, quantizedAs](const TensorToWrite::Put &put) mutable {
            if (!variable.getValue() && !quantizedAs)
              return put(bytes.data(), bytes.size());
            const std::string own = variable.getValue()
                                        ? rawBytes(*variable.getValue())
                                        : quantized(quantizedAs.form(), name, [&](size_t first, void *to, size_t size) {
                                            std::memcpy(to, bytes.data() + first, size);
                                          });
            put(own.data(), own.size());
          }};
}

/// Bytes of the model are written from where they lie, constants of the module from a copy that lives as long as its
/// write: weights may be larger than memory. All sizes are compared before the file is begun.
Status codegen::writeWeights(const std::string &path, const std::string &identity, ModuleOp module,
                             const TensorSource &source) {
  std::vector<TensorToWrite> tensors;
  for (auto variable : module.getOps<VariableOp>()) {
    if (!fromFile(variable))
      continue;
    auto type = cast<RankedTensorType>(variable.getType());
    std::string name = tensorName(variable).str();
    auto origin = variable->getAttrOfType<StringAttr>(train::sourceAttribute);
    std::string_view bytes =
        variable.getValue() ? std::string_view() : source(origin ? origin.getValue() : StringRef(name));
    const auto form = train::attr::get<train::attr::Quantized>(variable);
    const int64_t needed = form ? 4 * ShapedType::getNumElements(form.getShape()) : train::bytes(type);
    if (!variable.getValue() && static_cast<int64_t>(bytes.size()) != needed)
      return Error{"the model holds " + std::to_string(bytes.size()) + " bytes for '" + name + "', " +
                   std::to_string(needed) + " are needed"};
    tensors.push_back(weightOf(name, variable, bytes));
  }
  try {
    writeSafetensors(path, {{"format", weightsFormat}, {"identity", identity}}, tensors);
  } catch (const std::exception &error) {
    return Error{error.what()};
  }
  return Success{};
}
