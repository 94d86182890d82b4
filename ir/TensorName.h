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

/// A flag of the module: the loss is no mean over the targets that are not ignored, or not known to be one.
constexpr const char *otherMeanAttribute = "train.other_mean";

/// Of the module, an array of names: the arguments that predictions do not depend on.
constexpr const char *lossInputsAttribute = "train.loss_inputs";

/// Of the module, for each of train.outputs that has a loss: weights of its classes, or none. No mixing of them then.
constexpr const char *classWeightsAttribute = "train.class_weights";

} // namespace sluice::train
