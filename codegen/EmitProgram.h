// SPDX-License-Identifier: Apache-2.0
// From a placed module to one readable C++ file.
#pragma once

#include "runtime/TargetTable.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace sluice::codegen {

/// What the emitted file says that the module does not.
struct EmitOptions {
  std::string model;       ///< file name of the model, for the preface
  std::string commandLine; ///< that made the file
  std::string identity;    ///< of the model
  std::string preparation; ///< of its weights, as Program has it; empty: the model says nothing
  Target target = Target::Host;
  int threads = 1;            ///< that the plan was made for
  int level = 0;              ///< that vendor primitives may use (runtime/CpuTable.h); 0: all that there is
  int64_t workspaceLimit = 0; ///< of the plan; 0: none that kernels ask for
  int64_t hostBudget = -1;    ///< of the plan; 0: the next batch alone; -1: no limit
  bool oneMemory = false;     ///< the plan has a budget, and it is of both arenas
  std::string library;        ///< identifier of a library's function; empty: it is a program
  bool dataFormats = false;   ///< a library reads files, too
  bool weightsFile = false;   ///< a weights file lies beside the program
  std::string weightsName;    ///< its name
  std::string exportTemplate; ///< name of the ONNX template beside the program; empty for none
  /// Byte offset of a variable's raw data in the export template, 0 without one; -1 of what is not the model's own.
  std::function<int64_t(llvm::StringRef variable)> exportOffset;
};

/// The whole source. `module` holds placed and verified programs @step and @evaluate and the train.variable symbols.
std::string emitProgram(mlir::ModuleOp module, const EmitOptions &options);

} // namespace sluice::codegen
