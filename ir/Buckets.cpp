// SPDX-License-Identifier: Apache-2.0
// Sets of extents are [[name, @step, @evaluate], ..], turns dictionaries, the decode step [@decode, output]; all are
// plain values here.
#include "ir/Buckets.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

static constexpr llvm::StringLiteral extentList = "train.buckets", turnList = "train.turns";

static void addExtents(ArrayAttr entry, std::vector<Bucket> &buckets) {
  if (entry.size() != 3)
    return;
  const auto name = dyn_cast<StringAttr>(entry[0]);
  const auto step = dyn_cast<FlatSymbolRefAttr>(entry[1]), evaluate = dyn_cast<FlatSymbolRefAttr>(entry[2]);
  if (name && step && evaluate)
    buckets.push_back({name.str(), step.getValue().str(), evaluate.getValue().str()});
}

static void addTurn(DictionaryAttr entry, std::vector<Bucket> &buckets) {
  const auto name = entry.getAs<StringAttr>("name");
  const auto step = entry.getAs<FlatSymbolRefAttr>("step"), evaluate = entry.getAs<FlatSymbolRefAttr>("evaluate");
  const auto steps = entry.getAs<IntegerAttr>("steps");
  const auto trains = entry.getAs<ArrayAttr>("trains");
  if (!name || !step || !evaluate || !steps || steps.getInt() < 1 || !trains)
    return;
  auto attributes = entry.getAs<DictionaryAttr>("attributes");
  buckets.push_back({name.str(), step.getValue().str(), evaluate.getValue().str(), steps.getInt(), trains,
                     attributes ? attributes : DictionaryAttr::get(entry.getContext())});
}

// No verifier knows the lists: entries of another form are left out.
std::vector<Bucket> train::bucketsOf(ModuleOp module) {
  std::vector<Bucket> buckets;
  if (auto all = module->getAttrOfType<ArrayAttr>(extentList))
    for (auto entry : all.getAsRange<ArrayAttr>())
      addExtents(entry, buckets);
  else if (auto turns = module->getAttrOfType<ArrayAttr>(turnList))
    for (auto entry : turns.getAsRange<DictionaryAttr>())
      addTurn(entry, buckets);
  if (buckets.empty())
    buckets.push_back({"", "step", "evaluate"});
  return buckets;
}

static DictionaryAttr turnEntry(Builder &b, const Bucket &turn) {
  return b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(turn.name)),
                              b.getNamedAttr("step", FlatSymbolRefAttr::get(b.getContext(), turn.step)),
                              b.getNamedAttr("evaluate", FlatSymbolRefAttr::get(b.getContext(), turn.evaluate)),
                              b.getNamedAttr("steps", b.getI64IntegerAttr(turn.repeats)),
                              b.getNamedAttr("trains", turn.trains), b.getNamedAttr("attributes", turn.attributes)});
}

void train::setBuckets(ModuleOp module, ArrayRef<Bucket> buckets) {
  Builder b(module.getContext());
  SmallVector<Attribute> entries;
  const bool turns = !buckets.empty() && buckets.front().repeats > 0;
  for (const Bucket &bucket : buckets)
    entries.push_back(
        turns ? Attribute(turnEntry(b, bucket))
              : b.getArrayAttr({b.getStringAttr(bucket.name), FlatSymbolRefAttr::get(b.getContext(), bucket.step),
                                FlatSymbolRefAttr::get(b.getContext(), bucket.evaluate)}));
  module->setAttr(turns ? turnList : extentList, b.getArrayAttr(entries));
}

bool train::hasTurns(ModuleOp module) { return bucketsOf(module).front().repeats > 0; }

Attribute train::attributeOf(ModuleOp module, const Bucket &bucket, StringRef name) {
  return bucket.attributes ? bucket.attributes.get(name) : module->getAttr(name);
}

static constexpr llvm::StringLiteral decode = "train.decode";

std::optional<DecodeStep> train::decodeStepOf(ModuleOp module) {
  auto entry = module->getAttrOfType<ArrayAttr>(decode);
  if (!entry || entry.size() != 2)
    return std::nullopt;
  const auto function = dyn_cast<FlatSymbolRefAttr>(entry[0]);
  const auto output = dyn_cast<IntegerAttr>(entry[1]);
  return function && output ? std::optional(DecodeStep{function.getValue().str(), output.getInt()}) : std::nullopt;
}

void train::setDecodeStep(ModuleOp module, const DecodeStep &step) {
  Builder b(module.getContext());
  module->setAttr(decode, b.getArrayAttr({FlatSymbolRefAttr::get(b.getContext(), step.function),
                                          b.getI64IntegerAttr(step.output)}));
}

SmallVector<func::FuncOp> train::stepsOf(ModuleOp module) {
  SmallVector<func::FuncOp> steps;
  const std::vector<Bucket> buckets = bucketsOf(module);
  for (const Bucket &bucket : llvm::reverse(buckets))
    if (auto step = module.lookupSymbol<func::FuncOp>(bucket.step))
      steps.push_back(step);
  return steps;
}

TrainedBy::TrainedBy(ModuleOp module, StringRef step) {
  for (const Bucket &bucket : bucketsOf(module))
    if (bucket.step == step && bucket.trains) {
      own.emplace();
      for (auto symbol : bucket.trains.getAsRange<FlatSymbolRefAttr>())
        own->insert(symbol.getAttr());
    }
}

bool TrainedBy::operator()(VariableOp variable) const {
  return variable.getRole() == Role::Parameter && (!own || own->contains(variable.getSymNameAttr()));
}

std::string train::ofBucket(ModuleOp module, StringRef function) {
  for (const Bucket &bucket : bucketsOf(module))
    if (!bucket.name.empty() && (function == bucket.step || function == bucket.evaluate))
      return (bucket.repeats > 0 ? " of turn '" : " of bucket '") + bucket.name + "'";
  return "";
}
