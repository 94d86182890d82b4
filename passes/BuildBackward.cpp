// SPDX-License-Identifier: Apache-2.0
// build-backward, in order:
//  1. number the forward ops and find the values that depend on a trained parameter;
//  2. walk the forward ops backwards; each builds its gradient ops from the gradients of its results;
//  3. when the last op that reads a parameter has built its gradients, place the parameter's update there.
#include "ir/TensorName.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace sluice {
#define GEN_PASS_DEF_BUILDBACKWARD
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

class Sweep : public Gradients {
public:
  Sweep(ModuleOp module, func::FuncOp step, UpdateRule rule) : symbols(module), step(step), rule(rule) {}

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
  VariableOp parameter(Value value) {
    auto read = value.getDefiningOp<ReadOp>();
    auto variable = read ? symbols.lookup<VariableOp>(read.getVariable()) : VariableOp();
    return variable && variable.getRole() == Role::Parameter ? variable : VariableOp();
  }
  LogicalResult markTrained();
  void seed(OpBuilder &builder, Value loss);
  LogicalResult differentiate(OpBuilder &builder, Operation *op);
  void update(OpBuilder &builder, Location loc, VariableOp variable, Value gradient);
  void updateFinished(OpBuilder &builder, Operation *op);

  SymbolTable symbols;
  func::FuncOp step;
  UpdateRule rule;
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
    if (!llvm::any_of(op.getOperands(), [&](Value v) { return trained.contains(v); }))
      continue;
    if (isa<UpdateStatisticsOp>(op))
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

/// A loss op builds its gradient by itself; anything else that the step returns starts from a gradient of one.
void Sweep::seed(OpBuilder &builder, Value loss) {
  if (isa_and_nonnull<SoftmaxCrossEntropyOp, MseOp, BceWithLogitsOp>(loss.getDefiningOp()))
    return;
  OpBuilder atModule(step);
  auto one = VariableOp::create(atModule, loss.getLoc(), "train/one", Role::Constant, Init::One,
                                cast<RankedTensorType>(loss.getType()), ElementsAttr(), 0, 0, StringAttr());
  symbols.insert(one);
  add(builder, loss.getLoc(), loss, ReadOp::create(builder, loss.getLoc(), loss.getType(), one.getSymName()));
}

void Sweep::update(OpBuilder &builder, Location loc, VariableOp variable, Value gradient) {
  OpBuilder atModule(variable);
  atModule.setInsertionPointAfter(variable);
  SmallVector<Attribute> states;
  SmallVector<StringRef> suffixes =
      rule == UpdateRule::Sgd ? SmallVector<StringRef>{"/momentum"} : SmallVector<StringRef>{"/exp_avg", "/exp_avg_sq"};
  for (StringRef suffix : suffixes) {
    auto state =
        VariableOp::create(atModule, variable.getLoc(), (variable.getSymName() + suffix).str(), Role::Optimizer,
                           Init::Zero, variable.getType(), ElementsAttr(), 0, 0, StringAttr());
    symbols.insert(state);
    if (variable->hasAttr(tensorNameAttribute))
      state->setAttr(tensorNameAttribute, builder.getStringAttr(tensorName(variable) + suffix));
    states.push_back(FlatSymbolRefAttr::get(state.getSymNameAttr()));
  }
  UpdateOp::create(builder, loc, FlatSymbolRefAttr::get(variable.getSymNameAttr()), gradient,
                   UpdateRuleAttr::get(builder.getContext(), rule), builder.getArrayAttr(states));
}

/// Step 3.
void Sweep::updateFinished(OpBuilder &builder, Operation *op) {
  llvm::SmallSetVector<VariableOp, 4> variables;
  llvm::SmallDenseMap<VariableOp, Value> reads;
  for (Value operand : op->getOperands())
    if (VariableOp variable = parameter(operand)) {
      variables.insert(variable);
      reads[variable] = operand;
    }
  for (VariableOp variable : variables)
    if (--pendingReaders[variable] == 0)
      if (Value gradient = of(reads[variable]))
        update(builder, op->getLoc(), variable, gradient);
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

LogicalResult Sweep::run() {
  if (failed(markTrained()))
    return failure();
  Block &block = step.getBody().front();
  Operation *terminator = block.getTerminator();
  OpBuilder builder(terminator);
  Value loss = terminator->getOperand(0);
  if (!trained.contains(loss))
    return step.emitError() << "no trained parameter reaches the loss; --list-parameters shows what is trained";
  seed(builder, loss);
  for (Operation *op : llvm::reverse(forward)) { // step 2
    if (!llvm::any_of(op->getOperands(), [&](Value v) { return trained.contains(v); }) || !isa<Differentiable>(op))
      continue;
    if (failed(differentiate(builder, op)))
      return failure();
  }
  return success();
}

struct BuildBackward : sluice::impl::BuildBackwardBase<BuildBackward> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (!step || step.getBody().empty() || step.getBody().front().getTerminator()->getNumOperands() != 1) {
      module.emitError() << "needs a function @step that returns the loss";
      return signalPassFailure();
    }
    auto name = module->getAttrOfType<StringAttr>("train.optimizer");
    auto rule = symbolizeUpdateRule(name ? name.getValue() : "sgd");
    if (!rule) {
      module.emitError() << "knows no optimizer '" << name.getValue() << "'; there are sgd, adam and adamw";
      return signalPassFailure();
    }
    size_t before = step.getBody().front().getOperations().size();
    if (failed(Sweep(module, step, *rule).run()))
      return signalPassFailure();
    gradientOps = step.getBody().front().getOperations().size() - before;
  }
};

} // namespace
