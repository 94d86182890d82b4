// SPDX-License-Identifier: Apache-2.0
// What holds the content of a value from some op on, for apply-plan: the value itself, or what replaced it last.
#pragma once

#include "ir/Train.h"

#include "llvm/ADT/DenseMap.h"

namespace sluice {

/// Values are followed by their roots: views of a root have no content of their own.
class NewestValues {
public:
  /// From here on, readers of what was `root` take `now`.
  void replace(mlir::Value root, mlir::Value now);
  /// As replace(), where readers of what `now` itself held stay with it: results of an op that runs again. Null: `root`
  /// holds its content itself.
  void set(mlir::Value root, mlir::Value now) { version[root] = now; }
  /// What replaced a root last; null where nothing did.
  mlir::Value replacement(mlir::Value root) const { return version.lookup(root); }

  /// The newest version of `value` at the builder's place; views of a value that came back are made again.
  mlir::Value of(mlir::OpBuilder &b, mlir::Value value) const;
  /// Lets the op read the newest versions of its operands.
  void read(mlir::OpBuilder &b, mlir::Operation *op) const;

private:
  llvm::DenseMap<mlir::Value, mlir::Value> version;  ///< original root -> what replaces it from here on
  llvm::DenseMap<mlir::Value, mlir::Value> replaced; ///< and back
};

} // namespace sluice
