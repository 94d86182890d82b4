// SPDX-License-Identifier: Apache-2.0
// Formats `train.plan`, wherever it is: on @step, or on the scheduled program.
#include "passes/Explain.h"

#include "passes/PlanAttribute.h"

#include "runtime/common/Printable.h"

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
  const char *layout = "{0,-32} {1,-36} {2,12} {3,10}  {4,-14} {5,9}  {6}\n";
  out << llvm::formatv(layout, "activation", "node", "bytes", "ops", "action", "cost ms", "reason");
  int64_t freed = 0, idle = 0;
  for (auto row : plan.getAs<ArrayAttr>("decisions").getAsRange<DictionaryAttr>()) {
    auto number = [&](StringRef key) { return row.getAs<IntegerAttr>(key).getInt(); };
    auto word = [&](StringRef key) {
      return row.getAs<StringAttr>(key) ? row.getAs<StringAttr>(key).getValue() : StringRef();
    };
    auto milliseconds = [&](StringRef key) {
      auto value = row.getAs<FloatAttr>(key);
      return value && value.getValueAsDouble() > 0 ? llvm::formatv("{0:F2}", value.getValueAsDouble() * 1e3).str()
                                                   : std::string();
    };
    StringRef action = word("action"), codec = word("codec");
    std::string named = (action + (codec.empty() ? "" : " ") + codec).str(), reason = word("reason").str();
    if (std::string stall = milliseconds("stall"); !stall.empty())
      reason += (reason.empty() ? "" : "; ") + ("compute waits " + stall + " ms for it");
    if (row.contains("frees_nothing")) {
      reason += (reason.empty() ? "" : "; ") + std::string("FREES NOTHING: the plan's peak has room for it");
      ++idle;
    }
    std::string life = std::to_string(number("first")) + ".." + std::to_string(number("last"));
    out << llvm::formatv(layout, printable(word("name").take_front(32).str()),
                         printable(word("node").take_front(36).str()), number("bytes"), life, named,
                         milliseconds("seconds"), reason);
    freed += action == "keep" ? 0 : number("bytes");
  }
  out << "\nstrategy " << plan.getAs<StringAttr>("strategy").getValue() << ": " << mebibytes(freed)
      << " of activations leave the device in between\n";
  if (idle)
    out << idle << (idle == 1 ? " action frees" : " actions free") << " nothing that the plan's peak needs\n";
  out << llvm::formatv(
      "keep needs {0}, of which {1} live through the whole step; no plan of whole tensors goes below {2}\n",
      mebibytes(s.keepArena), mebibytes(s.base), mebibytes(s.floor));
  out << llvm::formatv("predicted step: {0:F1} ms (keep {1:F1} ms, lower bound {2:F1} ms)\n", s.seconds * 1e3,
                       s.keepSeconds * 1e3, s.lowerBound * 1e3);
  return text;
}
