// SPDX-License-Identifier: Apache-2.0
// The name of a variable's tensor in files and reports.
#pragma once

#include "ir/Train.h"

namespace sluice::train {

/// Set where the symbol could not be the tensor's name, since one of the module's functions has it.
constexpr const char *tensorNameAttribute = "train.tensor_name";

/// Other names of the tensor in PyTorch's state_dict (an array of strings), where modules share it.
constexpr const char *tiedNamesAttribute = "train.tied_names";

/// What safetensors files, logs and lists call the variable: its ONNX name.
inline llvm::StringRef tensorName(VariableOp variable) {
  auto name = variable->getAttrOfType<mlir::StringAttr>(tensorNameAttribute);
  return name ? name.getValue() : variable.getSymName();
}

} // namespace sluice::train
