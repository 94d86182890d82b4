// SPDX-License-Identifier: Apache-2.0
// home-variables: variables whose home is not the device, optimizer states and parameters, and parameters of which each
// of several ranks has a share. Each comes right before every op that reads it, in steps and evaluations, from its home
// or from all ranks, and is dropped after it, or goes back where the op has changed it; of a share the op changes what
// lies there.
// Adam's states are twice the bytes of the parameters, and idle but for one op a step; a parameter is used three times,
// for its layer forward and backward and for its update. Without a home they are part of the base, which no plan takes
// away. Where all that an update changes is in host memory, it runs there instead, see HomeUpdates.h.
#include "passes/HomeUpdates.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"

#include "ir/Buckets.h"
#include "passes/analysis/Storages.h"
#include "passes/planner/Profile.h"
#include "runtime/Ranks.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

namespace sluice {
#define GEN_PASS_DEF_HOMEVARIABLES
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// Whether an op does no more than look at its operand.
bool isView(Operation *op) { return op->getNumResults() == 1 && viewSource(op->getResult(0)); }

/// The ops that read a value, or a view of it, in program order of the value and then of each view.
void findReaders(Value value, llvm::SetVector<Operation *> &readers) {
  for (Operation *user : value.getUsers())
    if (isView(user))
      findReaders(user->getResult(0), readers);
    else
      readers.insert(user);
}

/// Of variables that may leave those that do: in their order, as many bytes as the share says up to each.
struct Leaving {
  const int share; ///< of allShares
  int64_t due = 0, taken = 0;

  bool takes(int64_t bytes) {
    due += bytes * share;
    const bool takes = (2 * taken + bytes) * allShares <= 2 * due;
    taken += takes ? bytes : 0;
    return takes;
  }
};

/// Parameters with their states. With one share for both a group leaves as a whole, so that its update runs at home.
class Groups {
public:
  explicit Groups(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>())
      for (auto update : function.getOps<UpdateOp>())
        for (Value state : update.getStates())
          parameters[variableOf(state).getValue()] = variableOf(update.getParameter()).getValue();
  }

  StringRef of(VariableOp variable) const {
    const auto found = parameters.find(variable.getSymName());
    return found == parameters.end() ? variable.getSymName() : StringRef(found->second);
  }

private:
  llvm::StringMap<StringRef> parameters; ///< by state
};

void share(ModuleOp module, UpdateOp update, int ranks) {
  auto variable = module.lookupSymbol<VariableOp>(variableOf(update.getParameter()).getAttr());
  const auto whole = cast<RankedTensorType>(variable.getType());
  const auto type = RankedTensorType::get({shareOf(whole.getNumElements(), 0, ranks).count}, whole.getElementType());
  variable->setAttr(wholeAttribute, TypeAttr::get(whole));
  variable.setType(type);
  update.getResult(0).setType(type);
}

/// Of parameters that reduce-gradients gathers nowhere; how many there are.
int shareParameters(ModuleOp module) {
  const auto least = module->getAttrOfType<IntegerAttr>(sharesAttribute);
  if (!least || !module->hasAttr(parameterSharesAttribute))
    return 0;
  int count = 0;
  for (func::FuncOp step : stepsOf(module))
    for (auto update : step.getOps<UpdateOp>())
      if (update.getSharded() && update.getResult(0).use_empty()) {
        share(module, update, static_cast<int>(least.getInt()));
        ++count;
      }
  return count;
}

/// What `value`, a view of a variable, is of `here`.
Value viewOf(OpBuilder &b, Value value, Value here) {
  if (!viewSource(value))
    return here;
  Operation *view = value.getDefiningOp();
  Value source = viewOf(b, view->getOperand(0), here);
  Operation *copy = b.clone(*view);
  copy->setOperand(0, source);
  return copy->getResult(0);
}

struct HomeVariables : sluice::impl::HomeVariablesBase<HomeVariables> {
  using HomeVariablesBase::HomeVariablesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (stepsOf(module).empty())
      return;
    const Space home = states == Space::Device ? parameters : states;
    const int shared = shareParameters(module);
    shares += shared;
    const bool isShared = shared > 0, isAway = home != Space::Device;
    if (!isShared && !isAway)
      return;
    if (isShared && isAway) {
      module.emitError() << "has shares of parameters on the devices of all ranks and variables at home in '"
                         << factsOf(home).name << "'; leave one of both out";
      return signalPassFailure();
    }
    if (isAway && failed(giveHomes(module, home)))
      return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>())
      bringVariables(function);
  }

private:
  /// The profile is asked for first: without a link to the home no time could be predicted. That nothing moves is a
  /// remark, since a user who named a home expects otherwise.
  LogicalResult giveHomes(ModuleOp module, Space home) {
    if (parameters != Space::Device && parameters != home) {
      module.emitError() << "optimizer states are at home in '" << factsOf(home).name << "', parameters in '"
                         << factsOf(parameters).name << "'; give both one home";
      return failure();
    }
    Result<planner::Profile> known = planner::loadDevice(device, profile, home);
    if (!known) {
      module.emitError() << known.error();
      return failure();
    }
    findWhatStays(module);
    const auto [statesGone, parametersGone] = sendHome(module, factsOf(home).name);
    bool assumed = false;
    for (auto function : module.getOps<func::FuncOp>())
      if (updatesAtHome && home == Space::Host)
        assumed |= updateAtHome(function, *known);
    if (assumed)
      module.emitRemark() << "the profile does not say how fast updates are in host memory ('rates.host_bandwidth'): "
                          << "predicted with " << llvm::formatv("{0:F0}", planner::assumedHostBandwidth / 1e9)
                          << " GB/s";
    if (states != Space::Device && stateShare > 0 && statesGone == 0)
      module.emitRemark() << "no optimizer state leaves the device for " << factsOf(home).label << ": those below "
                          << smallestMoved << " bytes stay";
    if (parameters != Space::Device && parameterShare > 0 && parametersGone == 0)
      module.emitRemark() << "no parameter leaves the device for " << factsOf(home).label
                          << ": vectors and those below " << smallestMoved << " bytes stay";
    return success();
  }

  /// How many states and parameters have their home there from now on.
  std::pair<int, int> sendHome(ModuleOp module, StringRef home) {
    const bool together = states == parameters && stateShare == parameterShare;
    const Groups groups(module);
    llvm::StringMap<int64_t> sizes;
    SmallVector<VariableOp> may;
    for (auto variable : module.getOps<VariableOp>())
      if (mayLeave(variable)) {
        may.push_back(variable);
        sizes[groups.of(variable)] += bytes(variable.getType());
      }
    Leaving leavingStates{stateShare}, leavingParameters{parameterShare}, leavingGroups{stateShare};
    llvm::StringMap<bool> gone;
    std::pair<int, int> count = {0, 0};
    for (VariableOp variable : may) {
      const bool isState = variable.getRole() == Role::Optimizer;
      const auto [group, isNew] = gone.try_emplace(groups.of(variable), false);
      if (together && isNew)
        group->second = leavingGroups.takes(sizes[groups.of(variable)]);
      if (!together)
        group->second = (isState ? leavingStates : leavingParameters).takes(bytes(variable.getType()));
      if (!group->second)
        continue;
      variable.setHome(home);
      ++variables, ++(isState ? count.first : count.second);
    }
    return count;
  }

  /// What a function returns as it is stays, and what several ops change in turn.
  void findWhatStays(ModuleOp module) {
    stays.clear();
    const auto note = [&](Value value) {
      if (FlatSymbolRefAttr variable = variableOf(viewedValue(value)))
        stays.insert(variable.getValue());
    };
    for (auto function : module.getOps<func::FuncOp>())
      for (Operation &op : function.getBody().front()) {
        if (isa<func::ReturnOp>(op))
          llvm::for_each(op.getOperands(), note);
        if (isa<ChangesVariables>(op))
          for (Value result : op.getResults())
            if (!result.use_empty())
              note(result);
      }
  }

  /// Whether it is large, and of what was given a home: optimizer states, averages among them; parameters, those that
  /// are held fixed among them. Vectors of these, biases and scales, are few bytes, and inversions read them.
  bool mayLeave(VariableOp variable) const {
    const bool isMatrix =
        cast<RankedTensorType>(variable.getType()).getRank() > 1 || attr::has<attr::Quantized>(variable);
    if (stays.contains(variable.getSymName()) || bytes(variable.getType()) < smallestMoved)
      return false;
    switch (variable.getRole()) {
    case Role::Optimizer:
      return states != Space::Device;
    case Role::Parameter:
    case Role::Constant:
      return parameters != Space::Device && isMatrix;
    case Role::State: // steps change them as they go, evaluations store keys and values in them
    case Role::Gradient:
      return false;
    }
    return false;
  }

  /// Whether their times are by an assumption.
  bool updateAtHome(func::FuncOp function, const planner::Profile &known) {
    ModuleOp module = getOperation();
    const auto isAtHome = [&](StringRef symbol) {
      return module.lookupSymbol<VariableOp>(symbol).getHome().has_value();
    };
    HomeUpdates updates(function, known, isAtHome);
    for (auto update : llvm::to_vector(function.getOps<UpdateOp>()))
      atHome += updates.take(update);
    return updates.assumes();
  }

  /// By op, what it reads: for an update the parameter and its states.
  void bringVariables(func::FuncOp function) {
    llvm::MapVector<Operation *, SmallVector<ReadOp>> readsOf;
    SmallVector<ReadOp> reads;
    for (auto read : function.getOps<ReadOp>())
      if (auto variable = getOperation().lookupSymbol<VariableOp>(read.getVariable());
          variable && (variable.getHome() || variable.isShare()) &&
          !isa<HostHandleType>(read.getResult().getType())) // at home there is no copy
        reads.push_back(read);
    for (ReadOp read : reads) {
      llvm::SetVector<Operation *> readers;
      findReaders(read.getResult(), readers);
      for (Operation *reader : readers)
        readsOf[reader].push_back(read);
    }
    for (auto &[reader, list] : readsOf)
      bring(reader, list);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (op.use_empty() && (isView(&op) || llvm::is_contained(reads, &op)))
        op.erase();
  }

  /// The copies as close to the op as can be: apply-plan moves them apart where the plan has room. All that it has
  /// changed leaves before compute waits for the first, so that their copies run one after the other.
  void bring(Operation *reader, ArrayRef<ReadOp> reads) {
    OpBuilder before(reader), after(reader->getContext());
    for (ReadOp read : reads) {
      Value here = arrive(before, read, isa<UpdateOp>(reader));
      for (OpOperand &operand : reader->getOpOperands())
        if (viewedValue(operand.get()) == read.getResult())
          operand.set(viewOf(before, operand.get(), here));
    }
    after.setInsertionPointAfter(reader);
    SmallVector<Value> stored;
    if (auto changes = dyn_cast<ChangesVariables>(reader))
      for (OpResult result : reader->getResults())
        if (auto arrival =
                reader->getOperand(changes.changedOperand(result.getResultNumber())).getDefiningOp<PrefetchOp>())
          stored.push_back(store(after, result, arrival));
    for (Value handle : stored)
      AwaitOp::create(after, reader->getLoc(), handle);
  }

  /// From a home, or from all ranks; of a share what updates read.
  Value arrive(OpBuilder &b, ReadOp read, bool updates) {
    const Type type = read.getResult().getType();
    auto variable = getOperation().lookupSymbol<VariableOp>(read.getVariable());
    const Type held = variable.isShare() ? Type(variable.getType())
                                         : HostHandleType::get(b.getContext(), cast<RankedTensorType>(type));
    Value there = ReadOp::create(b, read.getLoc(), held, read.getVariable());
    if (!variable.isShare())
      return PrefetchOp::create(b, read.getLoc(), type, there);
    return updates ? there : GatherSharesOp::create(b, read.getLoc(), type, there);
  }

  static Value store(OpBuilder &b, OpResult result, PrefetchOp arrival) {
    auto read = arrival.getHandle().getDefiningOp<ReadOp>();
    auto variable = SymbolTable::lookupNearestSymbolFrom<VariableOp>(read, read.getVariableAttr());
    return OffloadOp::create(b, read.getLoc(), arrival.getHandle().getType(), result, StringAttr(),
                             variable.getHomeAttr(), read.getVariableAttr());
  }

  llvm::StringSet<> stays;
};

} // namespace
