// SPDX-License-Identifier: Apache-2.0
// The name of a variable's tensor in files and reports, and its way there. A variable has three: its symbol, which the
// module's functions and variables share, the name that users see, and the initializer that has its first value.
//
//  1. frontend/Variables.cpp: Source::name is the ONNX value's, Source::initializer the one in the file. The symbol is
//     the name, with `/value` or `/statistic` behind it where a function or another variable has that
//     (Variables::symbolFor).
//  2. Passes and sched.buffer variable(@symbol) go by the symbol alone. Optimizer state is called symbol + suffix
//     (stateSuffixes() in Train.h).
//  3. codegen/EmitTables.cpp prints tensorName() into the program's table of variables (Variable::name in
//     runtime/Program.h), by which checkpoints are written and read (runtime/program/Checkpoint.h says which), reports
//     and --group go.
//  4. First values come by sourceAttribute, else by that name, from the model's file (codegen/WriteWeights.cpp); so
//  does
//     the place of a tensor in the template of --export (tools/Emit.cpp).
#pragma once

#include "ir/Train.h"

namespace sluice::train {

/// Of a variable, a string: its name where the symbol could not be that, since one of the module's functions has it.
constexpr const char *tensorNameAttribute = "train.tensor_name";

/// Other names of the tensor in PyTorch's state_dict (an array of strings), where modules share it.
constexpr const char *tiedNamesAttribute = "train.tied_names";

/// Of a variable, a string: the initializer of the file that has its first value, where that is not the symbol. Two
/// variables of one initializer both begin with its values, and are saved under names of their own.
constexpr const char *sourceAttribute = "train.source";

/// What safetensors files, logs and lists call the variable: its ONNX name, or where two variables share an
/// initializer, of one of them that name with `/statistic` or `/value` behind it.
inline llvm::StringRef tensorName(VariableOp variable) {
  auto name = variable->getAttrOfType<mlir::StringAttr>(tensorNameAttribute);
  return name ? name.getValue() : variable.getSymName();
}

/// A flag of the module: the loss is no mean over the targets that are not ignored, or not known to be one.
constexpr const char *otherMeanAttribute = "train.other_mean";

/// Of the module, an array of names: the arguments that predictions do not depend on.
constexpr const char *lossInputsAttribute = "train.loss_inputs";

/// Of the module, a string: what sluice-split computes in parts, for reports.
constexpr const char *partsAttribute = "train.parts";

/// Of the module, for each of train.outputs that has a loss: weights of its classes, or none. No mixing of them then.
constexpr const char *classWeightsAttribute = "train.class_weights";

} // namespace sluice::train
