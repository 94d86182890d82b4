// SPDX-License-Identifier: Apache-2.0
// What the emitted program tells the runtime about its plan: what is in memory when, what actions cost, which
// activations codecs could be tried on, what its ops do, and what its updates have room for.
#include "codegen/Document.h"
#include "ir/KernelRecords.h"
#include "ir/PlanActions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mlir;
using namespace sluice;
using namespace sluice::codegen;

void codegen::printUpdates(const Document &d, llvm::function_ref<void(const Twine &, const Twine &)> line) {
  for (auto [field, attribute] : {std::pair{"accumulates", "train.accumulate"},
                                  {"averages", "train.average"},
                                  {"sharesGradients", train::gradientSharesAttribute}})
    if (d.module->hasAttr(attribute))
      line(field, "true");
  auto ranks = d.module->getAttrOfType<StringAttr>(train::ranksAttribute);
  if (!ranks)
    return;
  line("reduce", stringLiteral(ranks.getValue()));
  if (auto sums = d.module->getAttrOfType<IntegerAttr>(train::sumsAttribute); sums && ranks == train::orderedRanks)
    line("mostBatches", Twine(int64_t{1} << sums.getInt()));
  if (auto shares = d.module->getAttrOfType<IntegerAttr>(train::sharesAttribute))
    line("leastRanks", Twine(shares.getInt()));
  if (auto together = d.module->getAttrOfType<IntegerAttr>(train::normRanksAttribute))
    line("normRanks", Twine(together.getInt()));
}

/// A row for each buffer that steps use, in order of buffers. A tensor that leaves the device has a row there and one
/// in the host's arena, which is told as `offload`.
int codegen::printPlan(const Document &d, llvm::raw_ostream &out) {
  llvm::StringMap<StringRef> actions;
  for (train::DecisionAttr decision : d.plan.getDecisions())
    actions[decision.getStorage().getValue()] =
        train::isGathered(d.module, decision) ? "gather" : train::stringifyActionKind(decision.getAction());
  int count = 0;
  out << "// What is in memory in which steps, for --plan.\nstatic const PlanRow plan[] = {\n";
  for (auto buffer : d.step.getBody().getOps<sched::BufferOp>()) {
    if (!buffer.getFirst())
      continue;
    auto action = actions.find(buffer.getName());
    StringRef word = action != actions.end() ? action->second : buffer.onDevice() ? "" : "offload";
    out << "    {" << stringLiteral(buffer.getName()) << ", " << stringLiteral(train::nodeName(buffer.getLoc())) << ", "
        << stringLiteral(word.str()) << ", " << buffer.getBytes() << ", " << *buffer.getFirst() << ", "
        << *buffer.getLast() << (buffer.onDevice() ? "" : ", true") << "},\n";
    ++count;
  }
  out << "    {\"\", \"\", \"\", 0, 0, 0}, // end\n};\n\n";
  return count;
}

/// As which role the ops of an action are counted; nothing runs for a form that a layer leaves anyway.
static std::string roleText(const ActionFacts &action, const CodecFacts *codec) {
  const bool runs = !action.needsCodec || (codec && codec->made);
  return std::string("OpRole::") + factsOf(runs ? action.role : OpRole::Compute).name;
}

/// Decisions are added up by action and kind of codec, whatever its rate: measured times come of launches, which the
/// report adds up in the same way. The runtime's codec is noted only where packing is an op of its own.
int codegen::printActions(const Document &d, llvm::raw_ostream &out) {
  struct Sum {
    int tensors = 0;
    int64_t bytes = 0;
    double seconds = 0;
    std::string role;
    Codec codec = {};
  };
  std::map<std::string, Sum> sums;
  for (train::DecisionAttr decision : d.plan.getDecisions()) {
    if (decision.getAction() == train::ActionKind::Keep || train::isGathered(d.module, decision))
      continue;
    Codec codec = *parseForm(decision.getCodec().getValue()); // the plan's verifier has read it
    codec.rate = 0, codec.pool = 0;                           // whatever they are
    StringRef action = train::stringifyActionKind(decision.getAction());
    Sum &sum = sums[(action + (codec ? " " : "") + codecName(codec)).str()];
    sum.role = roleText(train::factsOf(decision.getAction()), factsOf(codec));
    sum.codec = codec && !factsOf(codec)->readDirectly ? codec : Codec{};
    ++sum.tensors;
    sum.bytes += decision.getBytes();
    sum.seconds += decision.getSeconds().getValueAsDouble();
  }
  out << "// What the plan's actions were predicted to cost a step, for the report.\nstatic const ActionRow actions[] "
         "= {\n";
  for (const auto &[action, sum] : sums)
    out << "    {" << stringLiteral(action) << ", " << sum.role << ", " << codecText(sum.codec) << ", " << sum.tensors
        << ", " << sum.bytes << ", " << llvm::formatv("{0:E}", sum.seconds) << "},\n";
  out << "    {\"\", OpRole::Compute, {}, 0, 0, 0}, // end\n};\n\n";
  return sums.size();
}

int codegen::printWork(const Document &d, llvm::raw_ostream &out) {
  struct Work {
    std::string node, op, arithmetic;
    int calls = 0;
    double flops = 0, bytes = 0;
  };
  std::vector<Work> works; // in the order of the step
  std::map<std::pair<std::string, std::string>, size_t> places;
  if (!d.step.getPlanned())
    return 0;
  for (Operation &op : d.module.lookupSymbol<func::FuncOp>(*d.step.getPlanned()).getOps()) {
    auto kernel = dyn_cast<train::HasKernel>(op);
    auto costed = dyn_cast<train::Costed>(op);
    if (!kernel || !costed)
      continue;
    const auto [place, fresh] = places.try_emplace({train::recordedNode(kernel), kernel.launchName()}, works.size());
    if (fresh)
      works.push_back({place->first.first, place->first.second, StringRef(train::arithmeticOf(&op)).upper()});
    Work &work = works[place->second];
    work.calls += train::recordedCalls(kernel);
    work.flops += static_cast<double>(costed.flops());
    work.bytes += static_cast<double>(costed.bytesMoved());
  }
  if (works.empty())
    return 0;
  out << "// What the ops of a step do, for --roofline.\nstatic const WorkRow work[] = {\n";
  for (const Work &work : works)
    out << "    {" << stringLiteral(work.node) << ", " << stringLiteral(work.op) << ", " << work.calls << ", "
        << llvm::formatv("{0:F0}, {1:F0}", work.flops, work.bytes) << ", Precision::" << work.arithmetic << "},\n";
  out << "};\n\n";
  return static_cast<int>(works.size());
}

int codegen::printKept(const Document &d, llvm::raw_ostream &out) {
  static const char *const compared[] = {"Comparison::None", "Comparison::AboveZero", "Comparison::Otherwise"};
  const std::vector<KeptBuffer> kept = d.keptActivations();
  if (kept.empty())
    return 0;
  out << "// Activations that stay and could be packed, for --profile-errors.\nstatic const KeptActivation kept[] = "
         "{\n";
  for (KeptBuffer row : kept)
    out << "    {" << stringLiteral(row.buffer.getName()) << ", " << d.nameOf(row.buffer.getBuffer()) << ", "
        << compared[static_cast<size_t>(row.compared)] << "},\n";
  out << "};\n\n";
  return kept.size();
}
