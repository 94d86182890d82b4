// SPDX-License-Identifier: Apache-2.0
// Import of a model written in ONNX's text form, for tests: the module, or the error without the path.
#pragma once

#include "frontend/OnnxImport.h"
#include "ir/Train.h"
#include "test/unit/frontend/TextModel.h"

namespace sluice {

struct ImportedModel {
  TemporaryFolder folder;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string error;
  ImportReport report;

  explicit ImportedModel(const onnx::ModelProto &model, const TrainingSpec &spec = {}) {
    std::string path = folder.write(model);
    Result<OnnxFile> file = OnnxFile::read(path);
    if (!file) {
      error = file.error();
      return;
    }
    auto imported = importOnnx(context, *file, spec, &report);
    if (imported)
      module = std::move(*imported);
    else
      error = imported.error();
  }

  mlir::func::FuncOp function(const char *name) { return module->lookupSymbol<mlir::func::FuncOp>(name); }
  train::VariableOp variable(const std::string &name) { return module->lookupSymbol<train::VariableOp>(name); }
  /// Ops of one kind in a function.
  template <typename Op> std::vector<Op> ops(const char *name = "step") {
    auto range = function(name).getOps<Op>();
    return {range.begin(), range.end()};
  }
  template <typename Op> Op only(const char *name = "step") {
    auto found = ops<Op>(name);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Op() : found[0];
  }
};

inline std::vector<int64_t> extents(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape().vec();
}

} // namespace sluice
