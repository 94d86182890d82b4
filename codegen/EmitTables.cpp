// SPDX-License-Identifier: Apache-2.0
// What the emitted program tells the runtime about itself (runtime/Program.h): variables, inputs, plan, and main.
#include "codegen/Document.h"
#include "ir/Cache.h"
#include "ir/TensorName.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mlir;
using namespace sluice;
using namespace sluice::codegen;

namespace {

StringRef moduleWord(const Document &d, StringRef key, StringRef missing) {
  auto word = d.module->getAttrOfType<StringAttr>(key);
  return word ? word.getValue() : missing;
}

std::string initOf(train::VariableOp variable) {
  // Constants that the module holds itself are in the weights file as well.
  if (variable.getValue())
    return "Init::File";
  switch (variable.getInit()) {
  case train::Init::File:
    return "Init::File";
  case train::Init::Zero:
    return "Init::Zero";
  case train::Init::One:
    return "Init::One";
  case train::Init::Kaiming:
    return "Init::Kaiming";
  case train::Init::Xavier:
    return "Init::Xavier";
  case train::Init::Copy:
    return "Init::Copy";
  case train::Init::Norm:
    return "Init::Norm";
  }
  return "Init::File";
}

const char *roleOf(train::VariableOp variable) {
  static const char *const names[] = {"Role::Parameter", "Role::State", "Role::Constant", "Role::Optimizer",
                                      "Role::Gradient"};
  return variable->hasAttr(train::cacheAttribute) ? "Role::Cache" : names[static_cast<int>(variable.getRole())];
}

/// The variable that a running average begins as; null for others.
train::VariableOp sourceOf(const Document &d, train::VariableOp variable) {
  auto source = variable->getAttrOfType<FlatSymbolRefAttr>(train::copyOfAttribute);
  return source ? d.module.lookupSymbol<train::VariableOp>(source.getAttr()) : train::VariableOp();
}

/// The last fields of a variable that is held in fewer bits.
std::string formOf(train::VariableOp variable) {
  const auto quantized = train::attr::get<train::attr::Quantized>(variable);
  if (!quantized)
    return "";
  const Quantization form = quantized.form();
  static const char *const codings[] = {"", ", Coding::Asymmetric", ", Coding::NormalFloat"};
  return llvm::formatv(", nullptr, {{{0}, {1}, {2}, {3}, {4}{5}}", form.bits, form.group, form.dimension, form.rows,
                       form.columns, codings[static_cast<int>(form.coding)])
      .str();
}

/// The last fields of a variable that is a rank's share of a parameter, or of what belongs to one: that one's slot, or,
/// where no rank has it whole, its type.
std::string wholeOf(const Document &d, train::VariableOp variable) {
  auto symbol = variable->getAttrOfType<FlatSymbolRefAttr>(train::shareOfAttribute);
  auto parameter = symbol ? d.module.lookupSymbol<train::VariableOp>(symbol.getAttr()) : variable;
  if (parameter.isShare())
    return ", nullptr, {}, device(0, " + shapeText(parameter.wholeType()) + ")";
  return symbol ? ", nullptr, {}, " + d.nameOf(d.variableBuffer(symbol.getValue())) : std::string();
}

/// Exports hold a running average in place of what it averages: its row has that one's place in the template.
void printVariables(const Document &d, llvm::raw_ostream &out) {
  llvm::DenseSet<Operation *> averaged; // which is exported in their place
  for (train::VariableOp variable : d.variables)
    if (train::VariableOp source = sourceOf(d, variable))
      averaged.insert(source);
  out << "static const Variable variables[] = {\n";
  for (train::VariableOp variable : d.variables) {
    Value buffer = d.variableBuffer(variable.getSymName());
    train::VariableOp source = sourceOf(d, variable), exported = source ? source : variable;
    int64_t offset =
        d.options.exportOffset && !averaged.contains(variable) ? d.options.exportOffset(exported.getSymName()) : -1;
    out << "    {" << stringLiteral(train::tensorName(variable)) << ", " << d.nameOf(buffer) << ", " << roleOf(variable)
        << ", " << initOf(variable) << ", " << variable.getFanIn() << ", " << variable.getFanOut() << ", " << offset
        << (source ? ", " + stringLiteral(train::tensorName(source)) : std::string()) << formOf(variable)
        << wholeOf(d, variable) << "},\n";
  }
  out << "    {nullptr, none, Role::Constant, Init::Zero}, // end\n};\n\n";
}

/// Other names of variables. Returns their number.
int printTiedNames(const Document &d, llvm::raw_ostream &out) {
  int count = 0;
  for (train::VariableOp variable : d.variables) {
    auto tied = variable->getAttrOfType<ArrayAttr>(train::tiedNamesAttribute);
    if (!tied)
      continue;
    for (auto name : tied.getAsRange<StringAttr>())
      out << (count++ ? "" : "// What modules that share them call variables.\nstatic const TiedName tied[] = {\n")
          << "    {" << stringLiteral(train::tensorName(variable)) << ", " << stringLiteral(name.getValue()) << "},\n";
  }
  out << (count ? "};\n\n" : "");
  return count;
}

/// Products of narrow matrices beside weights. Returns their number.
int printAdapters(const Document &d, llvm::raw_ostream &out) {
  const auto nameOf = [&](StringAttr symbol) {
    auto variable = d.module.lookupSymbol<train::VariableOp>(symbol);
    return variable && d.variableBuffer(symbol.getValue()) ? stringLiteral(train::tensorName(variable)) : std::string();
  };
  const auto word = [](bool value) { return value ? "true" : "false"; };
  int count = 0;
  for (train::AdapterAttr adapter : train::adaptersOf(d.module)) {
    const std::string base = nameOf(adapter.getBase()), first = nameOf(adapter.getFirst()),
                      second = nameOf(adapter.getSecond());
    if (base.empty() || first.empty() || second.empty())
      continue;
    out << (count++ ? "" : "// What --export=FILE,merged adds to weights.\nstatic const Adapter adapters[] = {\n")
        << "    {" << base << ", " << first << ", " << second << ", " << shortest(adapter.getScale().getValueAsDouble())
        << ", " << word(adapter.getBaseTransposed()) << ", " << word(adapter.getFirstTransposed()) << ", "
        << word(adapter.getSecondTransposed()) << ", " << word(adapter.getShared())
        << (adapter.getMagnitude() ? ", " + nameOf(adapter.getMagnitude()) : std::string()) << "},\n";
  }
  out << (count ? "};\n\n" : "");
  return count;
}

/// How many there are.
size_t printEngines(const Document &d, llvm::raw_ostream &out) {
  const auto engines = train::enginesOf(d.module);
  if (engines.empty())
    return 0;
  out << "// The fastest engines of the profile that this program was compiled with.\n"
         "static const EngineChoice engines[] = {\n";
  for (const train::RecordedEngine &engine : engines)
    out << "    {" << stringLiteral(engine.convolution) << ", " << stringLiteral(engine.name) << ", " << engine.parts
        << "},\n";
  out << "};\n\n";
  return engines.size();
}

/// A host budget of 0 means none to the runtime, so that at least 1 stands where there is one.
void printMemory(const Document &d, llvm::function_ref<void(const Twine &, const Twine &)> line) {
  const int64_t host = d.step.bytesOf(sched::Space::Host), device = d.step.bytesOf(sched::Space::Device),
                budget = d.plan.getBudget();
  line("deviceBytes", Twine(device));
  line("hostBytes", Twine(host));
  if (d.options.oneMemory)
    line("hostBudget", Twine(std::max<int64_t>(1, budget - device)));
  else if (d.options.hostBudget >= 0)
    line("hostBudget", Twine(std::max<int64_t>(1, std::max(d.options.hostBudget, host))));
  std::string others;
  const auto add = [&](StringRef name, int64_t bytes) {
    if (bytes > 0)
      others += (Twine(others.empty() ? "." : ", .") + name + " = " + Twine(bytes)).str();
  };
  add("pool", d.step.getPool().value_or(0));
  for (const ArenaFacts &arena : arenaTable)
    if (arena.space > Space::Host)
      add(arena.name, d.step.bytesOf(sched::spaceOf(arena.space)));
  if (!others.empty())
    line("others", "{" + others + "}");
  line("deviceBase", Twine(*d.step.getBase()));
}

void printResults(const Document &d, int outputs, llvm::function_ref<void(const Twine &, const Twine &)> line) {
  line("loss", d.resultName(0));
  if (std::string correct = d.resultName(1); !correct.empty())
    line("correct", correct);
  if (std::string norm = d.resultName(2); !norm.empty())
    line("norm", norm);
  if (outputs) {
    line("outputs", "outputs" + d.buckets.back().ending);
    line("outputCount", Twine(outputs));
  }
  if (d.module->hasAttr(train::otherMeanAttribute))
    line("otherMean", "true");
}

/// What runs the program, or what a library knows it by.
void printEntry(const Document &d, llvm::raw_ostream &out) {
  const auto functions = [](const BucketPrograms &bucket) {
    return "step" + bucket.ending + ", " + (bucket.evaluate ? "evaluate" + bucket.ending : "nullptr");
  };
  std::string entry = "{makeKernels, " + functions(d.buckets.back());
  const bool ranks = d.module->hasAttr(train::ranksAttribute), several = d.buckets.size() > 1;
  if (ranks || several || d.decode)
    entry += !ranks ? ", nullptr" : d.options.target == Target::Cuda ? ", joinNccl" : ", joinMpi";
  std::string list;
  for (const BucketPrograms &bucket : d.buckets)
    list += (list.empty() ? "{" : ", {") + functions(bucket) + "}";
  if (several || d.decode)
    entry += several ? ", {" + list + "}" : ", {}";
  entry += d.decode ? ", evaluate_decode}" : "}";
  if (d.options.library.empty())
    out << "int main(int argc, char **argv) {\n  return run(argc, argv, program, " << entry << ");\n}\n";
  else
    out << "void sluice::insideLibrary() {}\nconst sluice_program *sluice::libraryProgram() {\n"
        << "  static const sluice_program library(program, " << entry << (d.options.dataFormats ? ", openFileData" : "")
        << ");\n  return &library;\n}\n"
        << "extern \"C\" __attribute__((visibility(\"default\"))) const sluice_program *sluice_program_"
        << d.options.library << "(void) {\n  return libraryProgram();\n}\n";
}

/// Buckets, turns and the decode step.
void printKindsOfStep(const Document &d, llvm::function_ref<void(const Twine &, const Twine &)> line) {
  const bool turns = train::hasTurns(d.module);
  if (d.module->hasAttr(train::classWeightsAttribute))
    line("classWeights", "classWeights" + (turns ? d.buckets.back().ending : ""));
  if (d.buckets.size() > 1) {
    line(turns ? "turns" : "buckets", turns ? "turns" : "buckets");
    line(turns ? "turnCount" : "bucketCount", Twine(d.buckets.size()));
  }
  if (d.decode) {
    line("decode", "&decodeShape");
    line("places", d.nameOf(d.variableBuffer(train::placesName)));
  }
}

void printProgram(const Document &d, llvm::raw_ostream &out, int inputs, int rows, int actions) {
  const int work = printWork(d, out), kept = printKept(d, out), tied = printTiedNames(d, out),
            adapters = printAdapters(d, out), engines = static_cast<int>(printEngines(d, out));
  const int outputs = printOutputs(d, out);
  const auto seconds = [](FloatAttr value) { return llvm::formatv("{0:E}", value.getValueAsDouble()).str(); };
  static const char *const rules[] = {"Sgd", "Adam", "AdamW", "Adagrad", "RmsProp", "Lamb", "Lion"};
  auto rule = train::symbolizeUpdateRule(moduleWord(d, "train.optimizer", "sgd"));
  // In the order of the fields, which C++ asks for.
  auto line = [&](const Twine &field, const Twine &value) { out << "    ." << field << " = " << value << ",\n"; };
  auto table = [&](const char *rows, const char *count, int number) {
    if (number)
      line(rows, rows), line(count, Twine(number));
  };
  out << "const Program program = {\n";
  line("model", stringLiteral(d.options.model));
  line("commandLine", stringLiteral(d.options.commandLine));
  line("strategy", stringLiteral(d.plan.getStrategy().str()));
  if (!d.options.identity.empty())
    line("identity", stringLiteral(d.options.identity));
  if (!d.options.preparation.empty())
    line("preparation", stringLiteral(d.options.preparation));
  line("batch", Twine(d.batch()));
  printMemory(d, line);
  line("threads", Twine(d.options.threads));
  if (d.options.level)
    line("level", Twine(d.options.level));
  if (d.options.workspaceLimit)
    line("workspaceLimit", Twine(d.options.workspaceLimit));
  line("precision", Twine("Precision::") + moduleWord(d, "train.precision", "fp32").upper());
  table("engines", "engineCount", engines);
  line("events", Twine(d.events.size()));
  line("predictedSecondsPerStep", seconds(d.plan.getSeconds()));
  line("predictedSecondsOfLongest", seconds(d.plan.getLongest()));
  line("variables", "variables");
  line("variableCount", Twine(d.variables.size()));
  table("tied", "tiedCount", tied);
  table("adapters", "adapterCount", adapters);
  line("inputs", "inputs" + d.buckets.back().ending);
  line("inputCount", Twine(inputs));
  line("plan", "plan");
  line("planRows", Twine(rows));
  line("actions", "actions");
  line("actionRows", Twine(actions));
  table("work", "workRows", work);
  table("kept", "keptCount", kept);
  printResults(d, outputs, line);
  printUpdates(d, line);
  if (d.options.weightsFile)
    line("weightsFile", stringLiteral(d.options.weightsName));
  if (!d.options.exportTemplate.empty())
    line("exportTemplate", stringLiteral(d.options.exportTemplate));
  line("optimizer", Twine("Program::Optimizer::") + rules[static_cast<size_t>(rule.value_or(train::UpdateRule::Sgd))]);
  printKindsOfStep(d, line);
  out << "};\n\n} // namespace\n\n";
  printEntry(d, out);
}

} // namespace

std::string codegen::emitTables(const Document &d) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "\n// ---- What the runtime knows about this program.\n";
  printVariables(d, out);
  int inputs = printInputs(d, out);
  int rows = printPlan(d, out);
  int actions = printActions(d, out);
  printProgram(d, out, inputs, rows, actions);
  return text;
}
