// SPDX-License-Identifier: Apache-2.0
// See KernelRecords.h; Node and OpRole of the runtime say the same of a record.
#include "ir/KernelRecords.h"

#include "runtime/OpRoleTable.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

std::string sluice::train::recordedNode(HasKernel kernel) {
  return nodeName(kernel->getLoc()) + sched::factsOf(roleOf(kernel)).ending;
}

int sluice::train::recordedCalls(HasKernel kernel) {
  auto isObject = [](sched::CallAttr call) { return !call.getKernel().empty(); };
  return std::max(1, static_cast<int>(llvm::count_if(kernel.kernelCalls(), isObject)));
}

std::string sluice::train::arithmeticOf(Operation *op) {
  auto aware = dyn_cast<PrecisionAware>(op);
  if (!aware || aware.precisionPreference() != PrecisionPreference::Product)
    return "fp32";
  if (Type factor = op->getOperand(0).getType(); isHalf(factor))
    return cast<RankedTensorType>(factor).getElementType().isF16() ? "fp16" : "bf16";
  auto precision = op->getParentOfType<ModuleOp>()->getAttrOfType<StringAttr>("train.precision");
  return precision && precision.getValue() == "tf32" ? "tf32" : "fp32";
}
