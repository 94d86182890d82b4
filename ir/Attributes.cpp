// SPDX-License-Identifier: Apache-2.0
// Verifier of the attributes that passes attach (attr:: in Train.h), see the dialect's description. Later passes read
// them unchecked.
#include "ir/Train.h"

using namespace mlir;
using namespace sluice::train;

static LogicalResult verifyInPlace(Operation *op, Attribute value) {
  auto list = dyn_cast<DenseI64ArrayAttr>(value);
  if (!list || list.size() != op->getNumResults())
    return op->emitOpError() << "needs '" << attr::inPlace << "' with an operand for each of its "
                             << op->getNumResults() << " results, has " << value;
  SmallVector<int64_t> taken;
  for (auto [result, operand] : llvm::zip(op->getResults(), list.asArrayRef())) {
    if (operand == -1)
      continue;
    if (operand < 0 || operand >= op->getNumOperands() || op->getOperand(operand).getType() != result.getType() ||
        llvm::is_contained(taken, operand))
      return op->emitOpError() << "cannot give result " << result.getResultNumber() << " of type " << result.getType()
                               << " the bytes of operand " << operand;
    taken.push_back(operand);
  }
  return success();
}

LogicalResult AlgorithmAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr, int64_t parts,
                                    int64_t granted) {
  if (parts < 1 || granted < 0)
    return emitError() << "an algorithm has parts >= 1 and granted bytes >= 0, not " << parts << " and " << granted;
  return success();
}

static LogicalResult verifyAlgorithm(Operation *op, Attribute value) {
  if (!isa_and_nonnull<AlgorithmAttr>(value))
    return op->emitOpError() << "needs '" << attr::algorithm << "' to be a #train.algorithm, has " << value;
  return success();
}

static LogicalResult verifyCost(Operation *op, Attribute value) {
  auto cost = dyn_cast<DictionaryAttr>(value);
  auto seconds = cost ? cost.getAs<FloatAttr>("seconds") : FloatAttr();
  auto workspace = cost ? cost.getAs<IntegerAttr>("workspace") : IntegerAttr();
  if (!seconds || !workspace || !(seconds.getValueAsDouble() >= 0) || workspace.getInt() < 0)
    return op->emitOpError() << "needs '" << attr::cost << "' of seconds and workspace bytes >= 0, has " << value;
  if (Attribute list = cost.get("alternatives"))
    for (Attribute other : isa<ArrayAttr>(list) ? cast<ArrayAttr>(list) : ArrayAttr::get(op->getContext(), {list}))
      if (failed(verifyCost(op, other)) || failed(verifyAlgorithm(op, cast<DictionaryAttr>(other).get("algorithm"))))
        return failure();
  return success();
}

LogicalResult TrainDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == attr::forward || name == attr::backward || name == attr::stage) { // A1
    auto number = dyn_cast<IntegerAttr>(value);
    if (!number || !number.getType().isInteger(64) || number.getInt() < 0)
      return op->emitOpError() << "needs '" << name << "' >= 0, has " << value;
    if (name == attr::backward && op->hasAttr(attr::forward))
      return op->emitOpError() << "is both the forward op " << op->getAttr(attr::forward) << " and a backward op of "
                               << value;
  }
  if (name == attr::inPlace) // A2
    return verifyInPlace(op, value);
  if (name == attr::cost) // A3
    return verifyCost(op, value);
  if (name == attr::recompute && !isa<Recomputable>(op)) // A4
    return op->emitOpError() << "cannot run again, but is marked '" << name << "'";
  if (name == attr::algorithm) // A5
    return verifyAlgorithm(op, value);
  return success();
}
