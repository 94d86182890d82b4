// SPDX-License-Identifier: Apache-2.0
// Runs single passes of Sluice on textual IR, for tests and for looking at levels.
#include "ir/Sched.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include "tools/Failure.h"
#include "tools/Version.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  sluice::reportCrashes("sluice-opt");
  // MLIR's driver installs LLVM's handlers of the same signals, which call this one first.
  llvm::sys::AddSignalHandler([](void *) { sluice::crash("crashed"); }, nullptr);
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &out) { out << sluice::versionText("sluice-opt") << "\n"; });
  mlir::DialectRegistry registry;
  registry.insert<sluice::train::TrainDialect, sluice::sched::SchedDialect, mlir::func::FuncDialect,
                  mlir::arith::ArithDialect, mlir::math::MathDialect>();
  sluice::registerSluicePasses();
  sluice::registerSluicePipeline();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "sluice-opt: passes of Sluice\n", registry));
}
