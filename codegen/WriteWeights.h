// SPDX-License-Identifier: Apache-2.0
// The safetensors file beside a program: first values that are not drawn or filled at start.
#pragma once

#include "ir/Train.h"
#include "runtime/Result.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <string>
#include <string_view>

namespace sluice::codegen {

/// A tensor of a model's file.
struct SourceTensor {
  std::string_view bytes; ///< row-major
  std::function<std::string()> form =
      nullptr; ///< of what the file holds in fewer bits, and not in `bytes`: makes that form
};

/// A model's tensor by name; without bytes and form where there is none.
using TensorSource = std::function<SourceTensor(llvm::StringRef name)>;

/// Whether any variable takes its first value from the file.
bool needsWeights(mlir::ModuleOp module);
/// Writes them under their variables' names, with the model's identity; the file appears when it is complete.
Status writeWeights(const std::string &path, const std::string &identity, mlir::ModuleOp module,
                    const TensorSource &source);

} // namespace sluice::codegen
