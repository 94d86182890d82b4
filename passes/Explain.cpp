// SPDX-License-Identifier: Apache-2.0
// Formats `train.plan`, wherever it is: on @step, or on the scheduled program.
#include "passes/Explain.h"

#include "passes/PlanAttribute.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace sluice;

static std::string mebibytes(int64_t bytes) { return llvm::formatv("{0:F1} MiB", bytes / 1048576.0); }

std::string sluice::explain(ModuleOp module) {
  DictionaryAttr plan;
  for (Operation &op : *module.getBody())
    if (auto attribute = op.getAttrOfType<DictionaryAttr>(planAttributeName))
      plan = attribute;
  if (!plan)
    return "no plan at this level; use --emit=planned or a later one\n";
  PlanSummary s = summaryOfAttribute(plan);
  std::string text;
  llvm::raw_string_ostream out(text);
  out << llvm::formatv("{0,-44} {1,12} {2,12}  {3,-10} {4}\n", "activation", "bytes", "ops", "action", "reason");
  int64_t freed = 0;
  for (auto row : plan.getAs<ArrayAttr>("decisions").getAsRange<DictionaryAttr>()) {
    auto number = [&](StringRef key) { return row.getAs<IntegerAttr>(key).getInt(); };
    StringRef action = row.getAs<StringAttr>("action").getValue();
    std::string life = std::to_string(number("first")) + ".." + std::to_string(number("last"));
    out << llvm::formatv("{0,-44} {1,12} {2,12}  {3,-10} {4}\n", row.getAs<StringAttr>("name").getValue().take_front(44), number("bytes"), life, action,
                         row.getAs<StringAttr>("reason").getValue());
    freed += action == "keep" ? 0 : number("bytes");
  }
  out << "\nstrategy " << plan.getAs<StringAttr>("strategy").getValue() << ": " << mebibytes(freed) << " of activations leave the device in between\n";
  out << llvm::formatv("keep needs {0}, of which {1} live through the whole step; no plan of whole tensors goes below {2}\n", mebibytes(s.keepArena),
                       mebibytes(s.base), mebibytes(s.floor));
  out << llvm::formatv("predicted step: {0:F1} ms (keep {1:F1} ms, lower bound {2:F1} ms)\n", s.seconds * 1e3, s.keepSeconds * 1e3, s.lowerBound * 1e3);
  return text;
}
