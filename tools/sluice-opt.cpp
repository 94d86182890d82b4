// SPDX-License-Identifier: Apache-2.0
// Runs single passes of Sluice on textual IR, for tests and for looking at levels.
#include "ir/Sched.h"
#include "passes/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<sluice::train::TrainDialect, sluice::sched::SchedDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
  sluice::registerSluicePasses();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "sluice-opt: passes of Sluice\n", registry));
}
