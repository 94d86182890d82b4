// SPDX-License-Identifier: Apache-2.0
// ONNX graph -> train dialect, forward part only: variables, @step (forward and loss) and @evaluate (running
// statistics, dropout off, loss and, for softmax cross-entropy, the number of correct samples; last the output).
#ifndef SLUICE_FRONTEND_ONNX_IMPORT_H
#define SLUICE_FRONTEND_ONNX_IMPORT_H

#include "frontend/OnnxFile.h"
#include "frontend/TrainingSpec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/Result.h"
#include <string>
#include <vector>

namespace sluice {

/// What an import says besides.
struct ImportReport {
  std::vector<std::string> notes;   ///< where several nodes are refused, which and why, a line each
  std::vector<std::string> remarks; ///< what was decided that the file does not say, a line each
};

/// The module carries the spec as train.* attributes, which ir/TrainDialect.td lists. A variable bears the name of its
/// ONNX value; what two variables of one initializer are called says ir/TensorName.h. Errors begin with the file's
/// path. Control flow and sequences of `file` give way to the nodes that they come to.
Result<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(mlir::MLIRContext &context, OnnxFile &file,
                                                     const TrainingSpec &spec, ImportReport *report = nullptr);

/// One line per variable: name, shape, role and the reason for the role, and the form that --frozen gives it, with what
/// that takes from the values of the file, if one is given.
std::string listParameters(mlir::ModuleOp module, const OnnxFile *file = nullptr);

} // namespace sluice

#endif
