// SPDX-License-Identifier: Apache-2.0
// What the emitted program tells the runtime about batches: inputs and outputs of each bucket of shapes or turn, and
// what classes weigh.
#include "codegen/Document.h"
#include "ir/TensorName.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>

using namespace mlir;
using namespace sluice;
using namespace sluice::codegen;

/// Digits that read back as the same number.
std::string codegen::shortest(double number) {
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

namespace {

/// What kernels of any program index with an input: classes, rows of a table or elements of a row, the smallest number
/// of several.
train::IdLimit idsOf(const Document &d, StringRef input) {
  train::IdLimit found = train::idLimitOf(d.module, input);
  for (sched::ProgramOp program : d.programs()) {
    for (auto run : program.getBody().getOps<sched::RunOp>()) {
      const sched::IdsAttr ids = run.getIdsAttr();
      if (!ids || run.getIns()[ids.getIn()].getDefiningOp<sched::BufferOp>().getInput() != input)
        continue;
      found.upper = found.isThere() ? std::min(found.upper, ids.getLimit()) : ids.getLimit();
      found.lower = std::max<int64_t>(found.lower, 0);
      if (ids.getIgnored())
        found.ignored = ids.getIgnored();
    }
  }
  return found;
}

/// A constant of an input as a bucket has it.
std::string inputAs(const Document &d, const BucketPrograms &bucket, StringRef name, const std::string &constant) {
  const RankedTensorType type = d.inputType(bucket.step ? bucket.step : bucket.evaluate, name);
  if (!type || type == d.inputType(d.step, name) || constant == "none")
    return constant;
  return "as(" + constant + ", " + shapeText(type) + typeArguments(type) + ")";
}

/// Fields at the end of a row that have their defaults are left out. Returns the number of rows.
int printInputsOf(const Document &d, const BucketPrograms &bucket, llvm::raw_ostream &out) {
  int count = 0;
  llvm::StringSet<> ofLoss;
  if (auto names = d.module->getAttrOfType<ArrayAttr>(train::lossInputsAttribute))
    for (auto name : names.getAsRange<StringAttr>())
      ofLoss.insert(name.getValue());
  out << "static const Input inputs" << bucket.ending << "[] = {\n";
  for (auto [name, constant, staging] : d.inputs()) {
    const train::IdLimit ids = idsOf(d, name);
    const bool shared = train::isShared(d.module, name), ofLossOnly = ofLoss.contains(name), shifted = ids.lower != 0;
    out << "    {" << stringLiteral(name) << ", {" << inputAs(d, bucket, name, constant + "[0]") << ", "
        << inputAs(d, bucket, name, constant + "[1]") << "}, " << inputAs(d, bucket, name, staging) << ", "
        << integerLiteral(ids.upper);
    if (ids.ignored || ofLossOnly || shared || shifted)
      out << ", " << (ids.ignored ? std::to_string(*ids.ignored) : "Loss::none");
    if (ofLossOnly || shared || shifted)
      out << (shared ? ", true" : ", false");
    if (ofLossOnly || shifted)
      out << (ofLossOnly ? ", true" : ", false");
    out << (shifted ? ", " + integerLiteral(ids.lower) : "") << "},\n";
    ++count;
  }
  out << "};\n\n";
  return count;
}

/// Of the outputs as a bucket has them.
SmallVector<train::OutputAttr> outputsOf(const Document &d, const BucketPrograms &bucket) {
  const auto list = cast_or_null<ArrayAttr>(train::attributeOf(d.module, bucket.bucket, train::outputsAttribute));
  return list ? llvm::to_vector(list.getAsRange<train::OutputAttr>()) : SmallVector<train::OutputAttr>();
}

/// What classes weigh in the losses that weigh them: an array each, and one of all. Turns have their own.
void printClassWeights(const Document &d, const BucketPrograms &bucket, llvm::raw_ostream &out) {
  const auto all = cast_or_null<ArrayAttr>(train::attributeOf(d.module, bucket.bucket, train::classWeightsAttribute));
  if (!all)
    return;
  const std::string ending = bucket.bucket.repeats > 0 ? bucket.ending : "";
  std::string list;
  for (auto [number, weights] : llvm::enumerate(all.getAsRange<DenseF32ArrayAttr>())) {
    const std::string name = weights.empty() ? "nullptr" : "classWeights" + std::to_string(number) + ending;
    list += (list.empty() ? "" : ", ") + name;
    if (weights.empty())
      continue;
    out << "static const float " << name << "[] = {";
    llvm::interleaveComma(weights.asArrayRef(), out, [&](float weight) { out << shortest(weight); });
    out << "};\n";
  }
  for (size_t other = all.size(); other < outputsOf(d, bucket).size(); ++other)
    list += ", nullptr";
  out << "static const float *const classWeights" << ending << "[] = {" << list << "};\n\n";
}

/// What the program predicts and compares. Returns the number of rows.
int printOutputsOf(const Document &d, const BucketPrograms &bucket, llvm::raw_ostream &out) {
  int count = 0;
  for (auto [number, output] : llvm::enumerate(outputsOf(d, bucket))) {
    if (output.getLoss().getValue() == "none") // the model's own loss
      continue;
    const bool decoded = static_cast<int64_t>(number) == bucket.decodes;
    const int64_t kept = bucket.decodes < 0 ? output.getKept() : decoded ? 0 : -1;
    const auto orNone = [](const std::string &name) { return name.empty() ? std::string("none") : name; };
    out << (count++ ? ""
                    : "// What evaluate leaves, and what it is compared with.\nstatic const Output outputs" +
                          bucket.ending + "[] = {\n")
        << "    {" << stringLiteral(output.getName().str()) << ", " << orNone(d.keptName(bucket.evaluate, kept)) << ", "
        << d.inputNumber(output.getTarget().getValue()) << ", "
        << (output.getLoss().empty() ? "nullptr" : stringLiteral(output.getLoss().str())) << ", "
        << shortest(output.getWeight().getValueAsDouble()) << ", "
        << orNone(output.getPart() < 0 ? "" : d.resultName(train::firstPart + output.getPart())) << ", "
        << (output.getProbabilities() ? "true" : "false") << "},\n";
  }
  out << (count ? "};\n\n" : "");
  return count;
}

std::string predictedSeconds(const BucketPrograms &bucket) {
  const auto plan = train::attr::get<train::attr::Plan>(bucket.step ? bucket.step : bucket.evaluate);
  return llvm::formatv("{0:E}", plan.getSeconds().getValueAsDouble()).str();
}

/// A row of the type Bucket.
void printBucket(const BucketPrograms &bucket, int outputs, llvm::raw_ostream &out) {
  out << "{" << stringLiteral(bucket.name) << ", inputs" << bucket.ending << ", "
      << (outputs ? "outputs" + bucket.ending : "nullptr") << ", " << predictedSeconds(bucket) << "}";
}

/// The shapes that a batch may have.
void printBuckets(const Document &d, int outputs, llvm::raw_ostream &out) {
  out << "// The shapes that a batch may have.\nstatic const Bucket buckets[] = {\n";
  for (const BucketPrograms &bucket : d.buckets) {
    out << "    ";
    printBucket(bucket, outputs, out);
    out << ",\n";
  }
  out << "};\n\n";
}

void printDecodeShape(const Document &d, int outputs, llvm::raw_ostream &out) {
  printOutputsOf(d, *d.decode, out);
  out << "// The shape of a decode step.\nstatic const Bucket decodeShape = ";
  printBucket(*d.decode, outputs, out);
  out << ";\n\n";
}

/// Whether an evaluation counts right answers.
bool countsAnswers(const BucketPrograms &turn) {
  if (turn.evaluate)
    for (auto buffer : turn.evaluate.getBody().getOps<sched::BufferOp>())
      if (buffer.getResult() && *buffer.getResult() == 1)
        return true;
  return false;
}

/// What alternates; `outputs`: how many each has.
void printTurns(const Document &d, ArrayRef<int> outputs, llvm::raw_ostream &out) {
  out << "// Steps alternate: so many of a turn, then those of the next.\nstatic const TrainingTurn turns[] = {\n";
  for (auto [turn, count] : llvm::zip(d.buckets, outputs)) {
    const auto has = [&](const char *name) { return train::attributeOf(d.module, turn.bucket, name) != nullptr; };
    out << "    {" << stringLiteral(turn.name) << ", " << turn.bucket.repeats << ", "
        << (count ? "outputs" + turn.ending : "nullptr") << ", " << count << ", "
        << (has(train::otherMeanAttribute) ? "true" : "false") << ", "
        << (has(train::classWeightsAttribute) ? "classWeights" + turn.ending : "nullptr") << ", "
        << (countsAnswers(turn) ? "true" : "false") << ", " << predictedSeconds(turn) << "},\n";
  }
  out << "};\n\n";
}

} // namespace

int codegen::printInputs(const Document &d, llvm::raw_ostream &out) {
  int count = 0;
  const ArrayRef<BucketPrograms> all(d.buckets); // turns have the same inputs
  for (const BucketPrograms &bucket : train::hasTurns(d.module) ? all.take_back() : all)
    count = printInputsOf(d, bucket, out);
  if (d.decode)
    printInputsOf(d, *d.decode, out);
  return count;
}

int codegen::printOutputs(const Document &d, llvm::raw_ostream &out) {
  SmallVector<int> counts;
  for (const BucketPrograms &bucket : d.buckets)
    counts.push_back(printOutputsOf(d, bucket, out));
  const bool turns = train::hasTurns(d.module);
  const ArrayRef<BucketPrograms> all(d.buckets);
  for (const BucketPrograms &bucket : turns ? all : all.take_back())
    printClassWeights(d, bucket, out);
  if (turns)
    printTurns(d, counts, out);
  else if (d.buckets.size() > 1)
    printBuckets(d, counts.back(), out);
  if (d.decode)
    printDecodeShape(d, counts.back(), out);
  return counts.back();
}
