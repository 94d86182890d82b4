// SPDX-License-Identifier: Apache-2.0
// Verifiers of the attributes that passes attach (attr:: in Train.h), see the dialect's description. Later passes read
// them unchecked.
#include "ir/Buckets.h"
#include "ir/Train.h"

using namespace mlir;
using namespace sluice::train;

/// A2. Storages (passes/analysis/Storages.h) takes the list at its word: a type that differs, or two results in one
/// operand's bytes, would be a kernel that writes over what another result holds.
static LogicalResult verifyInPlace(Operation *op, Attribute value) {
  auto list = dyn_cast<DenseI64ArrayAttr>(value);
  if (!list || list.size() != op->getNumResults())
    return op->emitOpError() << "needs '" << attr::InPlace::getNameStr() << "' with an operand for each of its "
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

static LogicalResult verifyOffsets(Operation *op, Attribute value) {
  auto list = dyn_cast<DenseI64ArrayAttr>(value);
  if (!list || list.size() != op->getNumResults() + 1 ||
      llvm::any_of(list.asArrayRef(), [](int64_t n) { return n < -1; }))
    return op->emitOpError() << "needs '" << attr::Offsets::getNameStr() << "' with an offset, or -1, for each of its "
                             << op->getNumResults() << " results and for its workspace, has " << value;
  return success();
}

LogicalResult AlgorithmAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr, int64_t parts,
                                    int64_t granted) {
  if (parts < 1 || granted < 0)
    return emitError() << "an algorithm has parts >= 1 and granted bytes >= 0, not " << parts << " and " << granted;
  return success();
}

LogicalResult ViewAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, int64_t offset,
                               ArrayRef<int64_t> steps) {
  auto positive = [](int64_t n) { return n >= 1; };
  if (shape.size() < 2 || steps.size() + 1 != shape.size() || offset < 0 || !llvm::all_of(shape, positive) ||
      !llvm::all_of(steps, positive)) // V1
    return emitError() << "a view has two dimensions or more of one element or more each, a step of 1 or more for each "
                          "but the last, and an offset of 0 or more";
  return success();
}

LogicalResult QuantizedAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, int64_t bits,
                                    int64_t group, int64_t dimension, Coding coding) {
  const bool halves = bits == 16 && group == 0 && dimension == 0;
  const bool groups = (bits == 8 || bits == 4) && group >= 1 && (dimension == 0 || dimension == 1);
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1 || (!halves && !groups)) // Q1
    return emitError() << "a matrix of two positive extents is held in 16 bits, groups of 0 along 0, or in 8 or 4 "
                          "bits, groups of 1 or more along dimension 0 or 1, not in "
                       << bits << " bits, groups of " << group << " along " << dimension;
  if ((halves && coding != Coding::Symmetric) || (coding == Coding::NormalFloat && bits != 4)) // Q2
    return emitError() << "no elements of " << bits << " bits are " << stringifyCoding(coding);
  return success();
}

sluice::Quantization QuantizedAttr::form() const {
  return {static_cast<int>(getBits()),
          getGroup(),
          static_cast<int>(getDimension()),
          getShape()[0],
          getShape()[1],
          static_cast<sluice::Coding>(getCoding())};
}

RankedTensorType QuantizedAttr::heldType() const {
  if (getBits() == 16)
    return RankedTensorType::get(getShape(), BFloat16Type::get(getContext()));
  return RankedTensorType::get({form().bytes()}, IntegerType::get(getContext(), 8));
}

LogicalResult CostAttr::verify(function_ref<InFlightDiagnostic()> emitError, FloatAttr seconds, int64_t workspace,
                               AlgorithmAttr, ArrayRef<CostAttr> alternatives) {
  if (!(seconds.getValueAsDouble() >= 0) || workspace < 0)
    return emitError() << "a cost has seconds and workspace bytes >= 0, not " << seconds.getValueAsDouble() << " and "
                       << workspace;
  for (CostAttr other : alternatives)
    if (!other.getAlgorithm() || !other.getAlternatives().empty())
      return emitError() << "an alternative names its algorithm, and has no alternatives of its own: " << other;
  return success();
}

CostAttr CostAttr::inUse() const { return get(getContext(), getSeconds(), getWorkspace(), {}, {}); }

static LogicalResult verifyOrdinal(Operation *op, NamedAttribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!number || !number.getType().isInteger(64) || number.getInt() < 0)
    return op->emitOpError() << "needs '" << attribute.getName().getValue() << "' >= 0, has " << attribute.getValue();
  if (attribute.getName() == attr::Backward::getNameStr() && isForward(op))
    return op->emitOpError() << "is both the forward op " << attr::get<attr::Forward>(op) << " and a backward op of "
                             << number;
  return success();
}

/// `word`, with its article, says what `value` should be.
template <typename Wanted> static LogicalResult verifyKind(Operation *op, NamedAttribute attribute, StringRef word) {
  if (isa<Wanted>(attribute.getValue()))
    return success();
  return op->emitOpError() << "needs '" << attribute.getName().getValue() << "' to be " << word << ", has "
                           << attribute.getValue();
}

static LogicalResult verifyQuantized(Operation *op, NamedAttribute attribute) {
  auto variable = dyn_cast<VariableOp>(op);
  auto quantized = dyn_cast<QuantizedAttr>(attribute.getValue());
  if (!variable || !quantized)
    return variable ? verifyKind<QuantizedAttr>(op, attribute, "a #train.quantized")
                    : op->emitOpError() << "is no variable, but has '" << attribute.getName().getValue() << "'";
  const auto type = cast<RankedTensorType>(variable.getType());
  if (type != quantized.heldType() && !(type.getElementType().isF32() && type.getShape() == quantized.getShape()))
    return op->emitOpError() << "is " << type << ", neither the floats of " << quantized << " nor "
                             << quantized.heldType();
  return success();
}

static LogicalResult verifyPlan(Operation *op, NamedAttribute attribute) {
  if (!isa<func::FuncOp, sluice::sched::ProgramOp>(op))
    return op->emitOpError() << "is no function and no program, but has '" << attribute.getName().getValue() << "'";
  return verifyKind<PlanAttr>(op, attribute, "a #train.plan");
}

// MLIR calls this for attributes of any op whose names begin with `train.`. Names that are not listed pass: who reads
// them looks at what they hold.
LogicalResult TrainDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == attr::Forward::getNameStr() || name == attr::Backward::getNameStr() || name == attr::Stage::getNameStr())
    return verifyOrdinal(op, attribute);   // A1
  if (name == attr::InPlace::getNameStr()) // A2
    return verifyInPlace(op, attribute.getValue());
  if (name == attr::Cost::getNameStr()) // A3
    return verifyKind<CostAttr>(op, attribute, "a #train.cost");
  if (name == attr::Recompute::getNameStr() && !isa<Recomputable>(op)) // A4
    return op->emitOpError() << "cannot run again, but is marked '" << name << "'";
  if (name == attr::Recompute::getNameStr() || name == attr::Inverse::getNameStr())
    return verifyKind<UnitAttr>(op, attribute, "without a value");
  if (name == attr::Algorithm::getNameStr()) // A5
    return verifyKind<AlgorithmAttr>(op, attribute, "a #train.algorithm");
  if (name == attr::Plan::getNameStr()) // A6
    return verifyPlan(op, attribute);
  if (name == attr::Offsets::getNameStr()) // A7
    return verifyOffsets(op, attribute.getValue());
  if (name == attr::Quantized::getNameStr()) // A8
    return verifyQuantized(op, attribute);
  if (name == attr::Rule::getNameStr())
    return verifyKind<StringAttr>(op, attribute, "a string");
  return success();
}

sluice::sched::Role sluice::train::roleOf(HasKernel op) {
  if (attr::has<attr::Recompute>(op))
    return sched::Role::Rerun;
  return attr::has<attr::Inverse>(op) ? sched::Role::Rebuild : op.role();
}

static constexpr llvm::StringLiteral idLimits = "train.id_limits";

IdLimit sluice::train::idLimitOf(ModuleOp module, StringRef input) {
  auto all = module->getAttrOfType<DictionaryAttr>(idLimits);
  auto known = all ? all.getAs<DenseI64ArrayAttr>(input) : DenseI64ArrayAttr();
  if (!known || known.size() < 2)
    return {};
  return {known[0], known[1], known.size() > 2 ? std::optional(known[2]) : std::nullopt};
}

/// Several ops may index with one input: its ids must lie in the intersection of their ranges. What one of them ignores
/// is let through for all.
void sluice::train::addIdLimit(ModuleOp module, StringRef input, IdLimit limit) {
  Builder b(module.getContext());
  const IdLimit known = idLimitOf(module, input);
  if (known.isThere()) { // where nothing is left, the last value that one of them allows is all that there is
    limit.lower = std::min(std::max(limit.lower, known.lower), std::max(limit.upper, known.upper) - 1);
    limit.upper = std::max(std::min(limit.upper, known.upper), limit.lower + 1);
  }
  SmallVector<int64_t> values = {limit.lower, limit.upper};
  if (std::optional<int64_t> either = limit.ignored ? limit.ignored : known.ignored)
    values.push_back(*either);
  auto all = module->getAttrOfType<DictionaryAttr>(idLimits);
  NamedAttrList list(all ? all : b.getDictionaryAttr({}));
  list.set(input, b.getDenseI64ArrayAttr(values));
  module->setAttr(idLimits, list.getDictionary(module.getContext()));
}

static constexpr llvm::StringLiteral adapterList = "train.adapters";

template <typename Attr> static SmallVector<Attr> listOf(ModuleOp module, StringRef name) {
  auto list = module->getAttrOfType<ArrayAttr>(name);
  return list ? llvm::to_vector(list.getAsRange<Attr>()) : SmallVector<Attr>();
}

template <typename Attr> static void setList(ModuleOp module, StringRef name, ArrayRef<Attr> attributes) {
  SmallVector<Attribute> list(attributes.begin(), attributes.end());
  module->setAttr(name, Builder(module.getContext()).getArrayAttr(list));
}

SmallVector<OutputAttr> sluice::train::outputsOf(ModuleOp module) {
  return listOf<OutputAttr>(module, outputsAttribute);
}
void sluice::train::setOutputs(ModuleOp module, ArrayRef<OutputAttr> outputs) {
  setList(module, outputsAttribute, outputs);
}
SmallVector<AdapterAttr> sluice::train::adaptersOf(ModuleOp module) { return listOf<AdapterAttr>(module, adapterList); }
void sluice::train::setAdapters(ModuleOp module, ArrayRef<AdapterAttr> adapters) {
  setList(module, adapterList, adapters);
}

// By type and maker, not by position: which scalars a function returns depends on what the module asks for.
ReturnedValue sluice::train::returnedValue(OpOperand &returned) {
  const auto isKept = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank() > 0; };
  const auto isNorm = [](Value value) { return isa_and_nonnull<GradientNormOp, SharesNormOp>(value.getDefiningOp()); };
  const auto isPart = [&](OpOperand &operand) {
    const auto type = cast<RankedTensorType>(operand.get().getType());
    return operand.getOperandNumber() > 0 && type.getRank() == 0 && !type.getElementType().isInteger() &&
           !isNorm(operand.get());
  };
  const auto before = returned.getOwner()->getOpOperands().take_front(returned.getOperandNumber());
  if (isKept(returned.get()))
    return {true, static_cast<unsigned>(llvm::count_if(before, [&](OpOperand &o) { return isKept(o.get()); }))};
  if (isPart(returned))
    return {false, firstPart + static_cast<unsigned>(llvm::count_if(before, isPart))};
  return {false, returned.getOperandNumber() == 0 ? 0u : isNorm(returned.get()) ? 2u : 1u};
}

static constexpr llvm::StringLiteral sharedInputs = "train.shared";

bool sluice::train::isShared(ModuleOp module, StringRef input) {
  auto names = module->getAttrOfType<ArrayAttr>(sharedInputs);
  return names && llvm::is_contained(names.getAsValueRange<StringAttr>(), input);
}

void sluice::train::setShared(ModuleOp module, ArrayRef<StringRef> inputs) {
  if (!inputs.empty())
    module->setAttr(sharedInputs, Builder(module.getContext()).getStrArrayAttr(inputs));
}

static constexpr llvm::StringLiteral recordedEngines = "train.engines";

// No verifier knows the list [[convolution, engine, parts], ..]: entries of another form are left out, and programs
// then ask the library's own ranking.
SmallVector<RecordedEngine> sluice::train::enginesOf(ModuleOp module) {
  SmallVector<RecordedEngine> engines;
  auto all = module->getAttrOfType<ArrayAttr>(recordedEngines);
  for (Attribute one : all ? all.getValue() : ArrayRef<Attribute>()) {
    auto parts = dyn_cast<ArrayAttr>(one);
    if (!parts || parts.size() != 3)
      continue;
    auto convolution = dyn_cast<StringAttr>(parts[0]), name = dyn_cast<StringAttr>(parts[1]);
    auto count = dyn_cast<IntegerAttr>(parts[2]);
    if (convolution && name && count)
      engines.push_back({convolution.getValue(), name.getValue(), count.getInt()});
  }
  return engines;
}

void sluice::train::setEngines(ModuleOp module, ArrayRef<RecordedEngine> engines) {
  Builder b(module.getContext());
  SmallVector<Attribute> all;
  for (const RecordedEngine &engine : engines)
    all.push_back(b.getArrayAttr(
        {b.getStringAttr(engine.convolution), b.getStringAttr(engine.name), b.getI64IntegerAttr(engine.parts)}));
  module->setAttr(recordedEngines, b.getArrayAttr(all));
}
