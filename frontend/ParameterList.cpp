// SPDX-License-Identifier: Apache-2.0
// What --list-parameters prints.
#include "frontend/OnnxImport.h"

#include "frontend/FrozenForms.h"
#include "ir/TensorName.h"
#include "ir/Train.h"
#include "runtime/Printable.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace sluice {

/// Bytes of a name in a table.
static constexpr size_t longestShown = 300;

static std::string tiedText(train::VariableOp variable) {
  std::string names;
  if (auto tied = variable->getAttrOfType<ArrayAttr>(train::tiedNamesAttribute))
    for (auto name : tied.getAsRange<StringAttr>())
      names += (names.empty() ? "; also '" : "', '") + name.str();
  return names.empty() ? "" : names + "'";
}

std::string listParameters(ModuleOp module, const OnnxFile *file) {
  std::string text;
  size_t width = 0;
  for (auto variable : module.getOps<train::VariableOp>())
    width = std::max(width, printable(train::tensorName(variable).str(), longestShown).size());
  for (auto variable : module.getOps<train::VariableOp>()) {
    std::string shape;
    for (int64_t extent : cast<RankedTensorType>(variable.getType()).getShape())
      shape += (shape.empty() ? "" : "x") + std::to_string(extent);
    std::string name = printable(train::tensorName(variable).str(), longestShown);
    text += llvm::formatv(
                "{0}  {1,-18}  {2,-9}  {3}\n", name + std::string(width - name.size(), ' '),
                shape.empty() ? "scalar" : shape, train::stringifyRole(variable.getRole()),
                printable(variable.getReason().value_or("").str() + tiedText(variable) + describeForm(variable, file),
                          longestShown))
                .str();
  }
  return text;
}

} // namespace sluice
