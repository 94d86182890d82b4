// SPDX-License-Identifier: Apache-2.0
// build-backward, in order:
//  1. number the forward ops and find the values that depend on a trained parameter;
//  2. walk the forward ops backwards; each builds its gradient ops from the gradients of its results;
//  3. when the last op that reads a parameter has built its gradients, place the parameter's update there, or what
//  joins its gradient to the sum over a step's batches, and to the norm of all gradients that updates then wait for, as
//  they do for the check of all gradients of a loss that is scaled;
//  4. let the other functions read running averages where there are some.
// Updates follow their gradient at once where nothing else has to be known first: gradients of all parameters together
// would take as many bytes as the parameters.
#include "ir/Buckets.h"
#include "ir/TensorName.h"
#include "passes/AveragedReads.h"
#include "passes/Passes.h"
#include "runtime/LossScale.h"
#include "runtime/Ranks.h"

#include "llvm/ADT/MapVector.h"

namespace sluice {
#define GEN_PASS_DEF_BUILDBACKWARD
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// What the module asks of updates.
struct UpdateRequest {
  UpdateRule rule;
  bool clipNorm, accumulate, average, scale;
  int shares;  ///< of the states, ranks that have one each at least; 0: states are whole
  bool weighs; ///< the loss of a batch by its targets that count, instead of its gradients
};

/// What the sweeps over the steps of a module, one for each bucket of shapes or each turn, have in common.
struct SharedVariables {
  llvm::StringMap<VariableOp> made;   ///< by the names that they were made under
  llvm::DenseSet<VariableOp> reached; ///< parameters that have a gradient in some step
};

/// One sweep over a step. Gradients of values are kept by key(), so that reads of one variable share theirs; gradient
/// ops are appended in front of the terminator, in reverse order of the forward ops.
class Sweep : public Gradients {
public:
  Sweep(ModuleOp module, func::FuncOp step, UpdateRequest request, SharedVariables &shared)
      : symbols(module), step(step), request(request), shared(shared), trains(module, step.getSymName()) {}

  LogicalResult run();

  Value of(Value value) override { return gradients.lookup(key(value)); }
  bool wanted(Value value) override { return trained.contains(value); }
  void add(OpBuilder &builder, Location loc, Value value, Value gradient) override {
    Value &sum = gradients[key(value)];
    sum = sum ? AddOp::create(builder, loc, sum, gradient).getResult() : gradient;
  }

private:
  /// All reads of one variable share the gradient of the first.
  Value key(Value value) {
    auto read = value.getDefiningOp<ReadOp>();
    return read ? firstRead.try_emplace(read.getVariableAttr().getAttr(), value).first->second : value;
  }
  bool readsTrained(Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value of) { return trained.contains(of); });
  }
  VariableOp parameter(Value value) {
    auto read = value.getDefiningOp<ReadOp>();
    auto variable = read ? symbols.lookup<VariableOp>(read.getVariable()) : VariableOp();
    return variable && trains(variable) ? variable : VariableOp();
  }
  /// A gradient whose update waits for all of them.
  struct Waiting {
    Location loc;
    VariableOp parameter;
    Value gradient;
  };

  static Value read(OpBuilder &builder, VariableOp variable) {
    return ReadOp::create(builder, NameLoc::get(variable.getSymNameAttr()), variable.getType(), variable.getSymName());
  }

  LogicalResult markTrained();
  void seed(OpBuilder &builder, Value loss);
  VariableOp addScalar(Location loc, StringRef name, Role role, Init init);
  void check(OpBuilder &builder);
  LogicalResult differentiate(OpBuilder &builder, Operation *op);
  VariableOp addVariable(VariableOp parameter, StringRef suffix, Role role, Init init, RankedTensorType type);
  void finishGradient(OpBuilder &builder, Location loc, VariableOp parameter, Value gradient);
  void addNorm(OpBuilder &builder, const Waiting &one);
  void update(OpBuilder &builder, Location loc, VariableOp parameter, Value gradient);
  void updateFinished(OpBuilder &builder, Operation *op);
  void updateAll(OpBuilder &builder);

  SymbolTable symbols;
  func::FuncOp step;
  UpdateRequest request;
  SharedVariables &shared;
  TrainedBy trains;
  bool anyReached = false; ///< a parameter has a gradient
  Value norm;              ///< of the gradients so far
  Value scale;             ///< of the loss; null: it is not scaled
  SmallVector<Waiting> waiting;
  SmallVector<Operation *> forward;
  llvm::DenseSet<Value> trained;
  llvm::DenseMap<Value, Value> gradients;
  llvm::DenseMap<StringAttr, Value> firstRead;
  llvm::DenseMap<VariableOp, int> pendingReaders; ///< forward ops whose gradient ops may still read the parameter
};

/// Step 1.
LogicalResult Sweep::markTrained() {
  Builder builder(step.getContext());
  for (Operation &op : step.getBody().front().without_terminator()) {
    if (isa<ReadOp>(op)) {
      if (parameter(op.getResult(0)))
        trained.insert(op.getResult(0));
      continue;
    }
    attr::set<attr::Forward>(&op, builder.getI64IntegerAttr(forward.size()));
    forward.push_back(&op);
    if (!readsTrained(&op) || isa<UpdateStatisticsOp>(op))
      continue;
    if (!isa<Differentiable>(op))
      return op.emitError() << "op '" << op.getName() << "' of node '" << nodeName(op.getLoc())
                            << "' has no gradient rule, but a trained parameter lies before it";
    for (Value result : op.getResults())
      trained.insert(result);
    llvm::SmallDenseSet<VariableOp> seen;
    for (Value operand : op.getOperands())
      if (VariableOp variable = parameter(operand); variable && seen.insert(variable).second)
        ++pendingReaders[variable];
  }
  return success();
}

/// A variable of the module for one number that outlives steps, in front of the step.
VariableOp Sweep::addScalar(Location loc, StringRef name, Role role, Init init) {
  VariableOp &scalar = shared.made[name];
  if (scalar)
    return scalar;
  OpBuilder atModule(step);
  scalar = VariableOp::create(atModule, loc, name, role, init, RankedTensorType::get({}, atModule.getF32Type()),
                              ElementsAttr(), 0, 0, StringAttr(), StringAttr());
  symbols.insert(scalar);
  return scalar;
}

/// A loss op builds its gradient by itself, from what it is scaled by; anything else that the step returns starts from
/// a gradient of one, of the scale, or of the batch's weight; no program has both.
void Sweep::seed(OpBuilder &builder, Value loss) {
  const Location loc = loss.getLoc();
  if (request.weighs) {
    auto weight = UnitWeightOp::create(builder, loc, RankedTensorType::get({}, builder.getF32Type()));
    attr::set<attr::Backward>(weight, builder.getI64IntegerAttr(forward.size() - 1));
    return add(builder, loc, loss, weight);
  }
  if (!request.scale && isa_and_nonnull<SoftmaxCrossEntropyOp, MseOp, BceWithLogitsOp, CtcLossOp>(loss.getDefiningOp()))
    return;
  auto first = request.scale ? addScalar(loc, lossScaleName, Role::Optimizer, Init::Zero)
                             : addScalar(loc, "train/one", Role::Constant, Init::One);
  const Value gradient = ReadOp::create(builder, loc, first.getType(), first.getSymName());
  scale = request.scale ? gradient : Value();
  add(builder, loc, loss, gradient);
}

/// A variable that belongs to the parameter.
VariableOp Sweep::addVariable(VariableOp parameter, StringRef suffix, Role role, Init init, RankedTensorType type) {
  VariableOp &made = shared.made[(parameter.getSymName() + suffix).str()];
  if (made)
    return made;
  OpBuilder behind(parameter);
  behind.setInsertionPointAfter(parameter);
  made = VariableOp::create(behind, parameter.getLoc(), (parameter.getSymName() + suffix).str(), role, init, type,
                            ElementsAttr(), 0, 0, StringAttr(), StringAttr());
  symbols.insert(made);
  if (parameter->hasAttr(tensorNameAttribute))
    made->setAttr(tensorNameAttribute, behind.getStringAttr(tensorName(parameter) + suffix));
  return made;
}

/// A parameter's gradient is complete. The update follows here, or waits where it needs to know of all gradients: of
/// their norm, or whether a scaled loss has overflowed in one of them. The norm of gradients that are checked is taken
/// after the check, which divides them by the scale.
void Sweep::finishGradient(OpBuilder &builder, Location loc, VariableOp parameter, Value gradient) {
  if (request.accumulate) {
    VariableOp sum = addVariable(parameter, sumSuffix, Role::Gradient, Init::Zero, parameter.getType());
    gradient = AccumulateOp::create(builder, loc, gradient, read(builder, sum));
  }
  if (!request.clipNorm && !scale)
    return update(builder, loc, parameter, gradient);
  waiting.push_back({loc, parameter, gradient});
  if (!scale)
    addNorm(builder, waiting.back());
}

void Sweep::addNorm(OpBuilder &builder, const Waiting &one) {
  norm = GradientNormOp::create(builder, one.loc, RankedTensorType::get({}, builder.getF32Type()), one.gradient, norm);
}

/// What stands in front of all that reads gradients, and divides them by the scale.
void Sweep::check(OpBuilder &builder) {
  const Location loc = scale.getLoc();
  const auto gradients = llvm::map_to_vector(waiting, [](const Waiting &one) { return one.gradient; });
  auto good = addScalar(loc, goodStepsName, Role::Optimizer, Init::Zero),
       skipped = addScalar(loc, skippedStepsName, Role::Optimizer, Init::Zero);
  const Value goodSteps = read(builder, good), skippedSteps = read(builder, skipped);
  CheckGradientsOp::create(builder, loc, scale, goodSteps, skippedSteps, gradients);
  if (request.clipNorm)
    for (const Waiting &one : waiting)
      addNorm(builder, one);
}

/// Operands and results are in the order of stateSuffixes(), the running average last. Variables are read here, not
/// where the step begins, so that reads say where the bytes are needed.
void Sweep::update(OpBuilder &builder, Location loc, VariableOp parameter, Value gradient) {
  SmallVector<Value> states;
  RankedTensorType type = parameter.getType();
  if (request.shares > 0) // that of the first rank, the longest
    type = RankedTensorType::get({shareOf(type.getNumElements(), 0, request.shares).count}, type.getElementType());
  auto keep = [&](StringRef suffix, Init init) {
    VariableOp state = addVariable(parameter, suffix, Role::Optimizer, init, type);
    if (request.shares > 0)
      state->setAttr(shareOfAttribute, FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
    states.push_back(read(builder, state));
    return state;
  };
  for (StringRef suffix : stateSuffixes(request.rule))
    keep(suffix, Init::Zero);
  if (request.average)
    keep(averageSuffix, Init::Copy)->setAttr(copyOfAttribute, FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
  SmallVector<Type> types(states.size() + 1, type);
  types.front() = parameter.getType();
  UpdateOp::create(builder, loc, types, gradient, norm, read(builder, parameter), states, request.rule, request.average,
                   request.shares > 0, IntegerAttr());
}

/// The updates that wait for all gradients, as part of what the last op's gradients are.
void Sweep::updateAll(OpBuilder &builder) {
  if (waiting.empty())
    return;
  Operation *terminator = step.getBody().front().getTerminator(), *last = terminator->getPrevNode();
  if (scale)
    check(builder);
  for (const Waiting &one : waiting)
    update(builder, one.loc, one.parameter, one.gradient);
  for (Operation *made = last->getNextNode(); made != terminator; made = made->getNextNode())
    attr::set<attr::Backward>(made, attr::get<attr::Backward>(last));
  if (!norm)
    return;
  terminator->insertOperands(terminator->getNumOperands(), norm);
  step.setType(builder.getFunctionType(step.getArgumentTypes(), terminator->getOperandTypes()));
}

/// Step 3.
void Sweep::updateFinished(OpBuilder &builder, Operation *op) {
  llvm::SmallMapVector<VariableOp, Value, 4> reads;
  for (Value operand : op->getOperands())
    if (VariableOp variable = parameter(operand))
      reads[variable] = operand;
  for (auto [variable, value] : reads)
    if (--pendingReaders[variable] == 0)
      if (Value gradient = of(value)) {
        finishGradient(builder, op->getLoc(), variable, gradient);
        anyReached = true, shared.reached.insert(variable);
      }
}

/// An op's gradient ops, and the updates that may follow them, in front of the terminator.
LogicalResult Sweep::differentiate(OpBuilder &builder, Operation *op) {
  Operation *terminator = op->getBlock()->getTerminator(), *last = terminator->getPrevNode();
  if (failed(cast<Differentiable>(op).buildGradients(builder, *this)))
    return op->emitError() << "cannot build the gradient of '" << op->getName() << "' of node '"
                           << nodeName(op->getLoc()) << "'";
  updateFinished(builder, op);
  for (Operation *made = last->getNextNode(); made != terminator; made = made->getNextNode())
    attr::set<attr::Backward>(made, attr::get<attr::Forward>(op));
  return success();
}

// Steps 1 to 3. Two errors say that nothing would be trained: no parameter leads to the loss, or all that do lead there
// through ops without a gradient. Without them the program would run and learn nothing.
LogicalResult Sweep::run() {
  if (failed(markTrained()))
    return failure();
  Block &block = step.getBody().front();
  Operation *terminator = block.getTerminator();
  OpBuilder builder(terminator);
  Value loss = terminator->getOperand(0);
  std::string ofOutput = ofBucket(cast<ModuleOp>(symbols.getOp()), step.getSymName());
  for (OutputAttr output : outputsOf(cast<ModuleOp>(symbols.getOp())))
    if (!output.getLoss().empty() && !trains.isOfTurn())
      ofOutput += (ofOutput.empty() ? " of output '" : ", '") + output.getName().str() + "'";
  if (!trained.contains(loss))
    return step.emitError() << "no trained parameter reaches the loss" << ofOutput
                            << "; --list-parameters shows what is trained";
  seed(builder, loss);
  for (Operation *op : llvm::reverse(forward)) // step 2
    if (readsTrained(op) && isa<Differentiable>(op) && failed(differentiate(builder, op)))
      return failure();
  if (!anyReached)
    return step.emitError() << "no gradient of the loss" << ofOutput
                            << " reaches a parameter: comparisons, rounding, positions and casts to integers between "
                               "them pass none; choose another value by --output=NAME";
  updateAll(builder);
  return success();
}

std::string knownRules() {
  std::string names;
  for (unsigned i = 0, last = getMaxEnumValForUpdateRule(); i <= last; ++i)
    names += (i == 0 ? "" : i < last ? ", " : " and ") + stringifyUpdateRule(static_cast<UpdateRule>(i)).str();
  return names;
}

struct BuildBackward : sluice::impl::BuildBackwardBase<BuildBackward> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const SmallVector<func::FuncOp> steps = stepsOf(module);
    const auto returnsNothing = [](func::FuncOp step) {
      return step.isExternal() || step.getBody().front().getTerminator()->getNumOperands() == 0;
    };
    if (steps.empty() || llvm::any_of(steps, returnsNothing)) {
      module.emitError() << "needs a function @step that returns the loss";
      return signalPassFailure();
    }
    auto name = module->getAttrOfType<StringAttr>("train.optimizer");
    auto rule = symbolizeUpdateRule(name ? name.getValue() : "sgd");
    if (!rule) {
      module.emitError() << "knows no optimizer '" << name.getValue() << "'; there are " << knownRules();
      return signalPassFailure();
    }
    auto shares = module->getAttrOfType<IntegerAttr>(sharesAttribute);
    const UpdateRequest request{*rule,
                                module->hasAttr("train.clip_norm"),
                                module->hasAttr("train.accumulate"),
                                module->hasAttr("train.average"),
                                halfOf(module) && halfOf(module).isF16(),
                                shares ? static_cast<int>(shares.getInt()) : 0,
                                module->hasAttr(normRanksAttribute)};
    SharedVariables shared;
    for (func::FuncOp step : steps) {
      gradientOps -= step.getBody().front().getOperations().size();
      if (failed(Sweep(module, step, request, shared).run()))
        return signalPassFailure();
      gradientOps += step.getBody().front().getOperations().size();
    }
    for (auto variable : module.getOps<VariableOp>())
      if (variable.getRole() == Role::Parameter && !shared.reached.contains(variable))
        attr::set<attr::Unreached>(variable, UnitAttr::get(module.getContext()));
    if (request.average)
      readAverages(module, steps);
  }
};

} // namespace
