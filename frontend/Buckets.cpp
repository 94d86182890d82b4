// SPDX-License-Identifier: Apache-2.0
// The module of the largest bucket takes in the functions of the others, whose reads then name its variables.
#include "frontend/Buckets.h"

#include "frontend/HostTensor.h"
#include "ir/Buckets.h"
#include "ir/Train.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace sluice {

namespace {

/// One bucket's import.
struct Imported {
  std::string name, extents; ///< "tokens=128", "128"
  OwningOpRef<ModuleOp> module;

  func::FuncOp function(StringRef symbol) const { return module.get().lookupSymbol<func::FuncOp>(symbol); }
  /// Of all inputs and targets.
  int64_t elements() const {
    int64_t sum = 0;
    for (Type type : function("step").getArgumentTypes())
      sum += train::elements(type);
    return sum;
  }
};

StringRef argumentName(func::FuncOp function, unsigned i) {
  auto name = function.getArgAttrOfType<StringAttr>(i, "train.name");
  return name ? name.getValue() : "";
}

/// Attributes of modules that were imported alike differ in what ids may be at most.
Status mergeAttributes(const Imported &into, const Imported &from) {
  ModuleOp module = into.module.get(), other = from.module.get();
  for (BlockArgument argument : from.function("step").getArguments()) {
    const StringRef name = argumentName(from.function("step"), argument.getArgNumber());
    const train::IdLimit one = train::idLimitOf(module, name), limit = train::idLimitOf(other, name);
    if (limit.isThere() != one.isThere() || limit.lower != one.lower || limit.upper != one.upper)
      return Error{"ids of '" + name.str() + "' have other bounds in bucket '" + from.name + "' than in '" + into.name +
                   "'; give that dimension one extent"};
  }
  if (module->getDiscardableAttrDictionary() != other->getDiscardableAttrDictionary())
    return Error{"what the model computes in bucket '" + from.name + "' differs from '" + into.name +
                 "' in more than extents; give that dimension one extent"};
  return Success{};
}

/// Whether two variables of one name are the same.
bool isSame(train::VariableOp one, train::VariableOp other) {
  return one.getRole() == other.getRole() && one.getInit() == other.getInit() && one.getType() == other.getType() &&
         one.getValueAttr() == other.getValueAttr() && one.getFanIn() == other.getFanIn() &&
         one.getFanOut() == other.getFanOut() && one.getHomeAttr() == other.getHomeAttr() &&
         one->getDiscardableAttrDictionary() == other->getDiscardableAttrDictionary();
}

/// Puts a bucket's functions and what they read into the module of the largest.
class Merge {
public:
  Merge(Imported &into, Imported &from) : into(into), from(from), symbols(into.module.get()) {}

  Result<train::Bucket> run() {
    if (Status attributes = mergeAttributes(into, from); !attributes)
      return attributes.takeError();
    for (auto variable : llvm::make_early_inc_range(from.module.get().getOps<train::VariableOp>()))
      if (Status taken = takeVariable(variable); !taken)
        return taken.takeError();
    train::Bucket bucket{from.name, "", ""};
    for (auto [symbol, name] : {std::pair{"step", &bucket.step}, {"evaluate", &bucket.evaluate}})
      *name = takeFunction(from.function(symbol), symbol);
    return bucket;
  }

private:
  std::string freeSymbol(std::string wanted) {
    while (symbols.lookup(wanted))
      wanted += "_";
    return wanted;
  }

  /// A constant of other values than the one of its name gets another; what is trained cannot.
  Status takeVariable(train::VariableOp variable) {
    const StringAttr symbol = variable.getSymNameAttr();
    auto known = symbols.lookup<train::VariableOp>(symbol);
    if (known && isSame(known, variable))
      return Success{};
    if (known && (variable.getRole() != train::Role::Constant || known.getRole() != train::Role::Constant ||
                  !variable.getValueAttr()))
      return Error{"'" + symbol.str() + "' of shape " +
                   shapeText(cast<RankedTensorType>(variable.getType()).getShape().vec()) + " in bucket '" + from.name +
                   "' is not the same tensor in bucket '" + into.name + "', where it has the shape " +
                   shapeText(cast<RankedTensorType>(known.getType()).getShape().vec()) +
                   "; give that dimension one extent"};
    variable->remove();
    into.module.get().getBody()->getOperations().insert(into.function("step")->getIterator(), variable);
    if (known)
      variable.setSymName(freeSymbol(symbol.str() + "." + from.extents));
    symbols.insert(variable);
    if (known)
      renamed[symbol] = FlatSymbolRefAttr::get(variable.getSymNameAttr());
    return Success{};
  }

  std::string takeFunction(func::FuncOp function, const std::string &symbol) {
    function->remove();
    into.module.get().getBody()->push_back(function);
    function.setSymName(freeSymbol(symbol + "." + from.extents));
    symbols.insert(function);
    for (auto read : function.getOps<train::ReadOp>())
      if (auto other = renamed.lookup(read.getVariableAttr().getAttr()))
        read.setVariableAttr(other);
    return function.getSymName().str();
  }

  Imported &into, &from;
  SymbolTable symbols;
  llvm::DenseMap<StringAttr, FlatSymbolRefAttr> renamed;
};

/// All programs have one batch.
Status checkBatch(const Imported &largest, const Imported &other) {
  ModuleOp module = largest.module.get();
  func::FuncOp one = largest.function("step"), step = other.function("step");
  for (BlockArgument argument : one.getArguments()) {
    const unsigned i = argument.getArgNumber();
    const auto samples = [&](func::FuncOp function) {
      return cast<RankedTensorType>(function.getArgument(i).getType()).getDimSize(0);
    };
    if (!train::isShared(module, argumentName(one, i)) && samples(one) != samples(step))
      return Error{"all buckets have one batch, '" + largest.name + "' has " + std::to_string(samples(one)) +
                   " samples, '" + other.name + "' " + std::to_string(samples(step))};
    if (train::isShared(module, argumentName(one, i)) && one.getArgument(i).getType() != step.getArgument(i).getType())
      return Error{"'" + argumentName(one, i).str() + "', which all samples share, has one shape in all buckets"};
  }
  return Success{};
}

/// What fills up must not become classes.
Status checkClasses(const Imported &largest, const Imported &other) {
  const auto classesOf = [](func::FuncOp step) {
    std::vector<int64_t> list;
    for (auto loss : step.getOps<train::SoftmaxCrossEntropyOp>())
      list.push_back(cast<RankedTensorType>(loss.getX().getType()).getDimSize(1));
    return list;
  };
  const std::vector<int64_t> one = classesOf(largest.function("step")), others = classesOf(other.function("step"));
  for (size_t i = 0; i < std::min(one.size(), others.size()); ++i)
    if (one[i] != others[i])
      return Error{"a loss has " + std::to_string(one[i]) + " classes in bucket '" + largest.name + "' and " +
                   std::to_string(others[i]) + " in '" + other.name +
                   "'; --loss=token-cross-entropy takes the last dimension for the classes"};
  return Success{};
}

/// What a target is filled up with must not count.
Status checkTargets(const Imported &largest, const Imported &other, const TrainingSpec &spec) {
  if (endsInOwnLoss(spec))
    return Success{};
  func::FuncOp one = largest.function("step"), step = other.function("step");
  for (const OutputLoss &loss : lossesOf(spec))
    for (unsigned i = 0; i < one.getNumArguments(); ++i)
      if (argumentName(one, i) == loss.target && one.getArgument(i).getType() != step.getArgument(i).getType() &&
          !loss.ignoreIndex)
        return Error{"targets '" + loss.target + "' vary with the buckets, and --loss=" + toString(loss.kind) +
                     " would count what they are filled up with: " +
                     (loss.kind == AttachedLoss::Mse ? "it knows no targets that do not count"
                                                     : "say --ignore-index=-100, or another number that is no target")};
  return Success{};
}

} // namespace

Result<OwningOpRef<ModuleOp>> importBuckets(MLIRContext &context, OnnxFile &file, const TrainingSpec &spec,
                                            const DimBuckets &buckets, ImportReport &report) {
  if (buckets.names.empty())
    return importOnnx(context, file, spec, &report);
  std::vector<Imported> all;
  for (size_t i = 0; i < buckets.extents.size(); ++i) {
    TrainingSpec own = spec;
    for (size_t k = 0; k < buckets.names.size(); ++k)
      if (!own.dims.emplace(buckets.names[k], buckets.extents[i][k]).second)
        return Error{file.path() + ": --dim gives '" + buckets.names[k] + "' one extent and several"};
    ImportReport said;
    auto module = importOnnx(context, file, own, &said);
    report.notes = std::move(said.notes);
    if (!module)
      return Error{module.error() + " (bucket '" + buckets.nameOf(i) + "')"};
    for (std::string &remark : said.remarks)
      if (!llvm::is_contained(report.remarks, remark))
        report.remarks.push_back(std::move(remark));
    all.push_back({buckets.nameOf(i), buckets.extentsOf(i), std::move(*module)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Imported &a, const Imported &b) { return a.elements() < b.elements(); });
  Imported &largest = all.back();
  std::vector<train::Bucket> merged;
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    for (const Status &fits :
         {checkBatch(largest, all[i]), checkClasses(largest, all[i]), checkTargets(largest, all[i], spec)})
      if (!fits)
        return Error{file.path() + ": " + fits.error()};
    Result<train::Bucket> bucket = Merge(largest, all[i]).run();
    if (!bucket)
      return Error{file.path() + ": " + bucket.error()};
    merged.push_back(std::move(*bucket));
  }
  merged.push_back({largest.name, "step", "evaluate"});
  train::setBuckets(largest.module.get(), merged);
  return std::move(largest.module);
}

} // namespace sluice
