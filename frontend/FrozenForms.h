// SPDX-License-Identifier: Apache-2.0
// Which of the weights that are held fixed lie in fewer bits, and in which form: by --frozen, or as the file has them.
#ifndef SLUICE_FRONTEND_FROZEN_FORMS_H
#define SLUICE_FRONTEND_FROZEN_FORMS_H

#include "frontend/OnnxFile.h"
#include "frontend/TrainingSpec.h"
#include "ir/Train.h"
#include <string>
#include <vector>

namespace sluice {

/// A form as the attribute train.quantized.
train::QuantizedAttr formAttr(mlir::MLIRContext *context, const Quantization &form);

/// Gives a form (train.quantized) to those of `frozen`, variables that flags hold fixed, that are matrices of some
/// thousand elements and read by products alone, and says in `remarks` how many bytes that saves. An error where there
/// are none.
Status giveForms(mlir::ModuleOp module, const std::vector<train::VariableOp> &frozen, const FrozenForm &wanted,
                 std::vector<std::string> &remarks);

/// Says in `remarks` what the file holds in fewer bits, if it holds anything so.
void reportStored(mlir::ModuleOp module, const OnnxFile &file, std::vector<std::string> &remarks);

/// The form of a variable for --list-parameters, with what it takes from the values of the file, if one is given;
/// empty: floats.
std::string describeForm(train::VariableOp variable, const OnnxFile *file);

} // namespace sluice

#endif
