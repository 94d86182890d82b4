// SPDX-License-Identifier: Apache-2.0
// home-variables: optimizer states whose home is not the device. Only the step's own updates touch them, so that each
// comes right before its update and goes back right after it.
// Adam's states are twice the bytes of the parameters, and idle but for one op a step. Without a home they are part of
// the base, which no plan takes away.
#include "passes/Passes.h"

#include "ir/Buckets.h"
#include "passes/analysis/Storages.h"
#include "passes/planner/Profile.h"

#include "llvm/ADT/StringSet.h"

namespace sluice {
#define GEN_PASS_DEF_HOMEVARIABLES
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

struct HomeVariables : sluice::impl::HomeVariablesBase<HomeVariables> {
  using HomeVariablesBase::HomeVariablesBase;

  /// The profile is asked for first: without a link to the home no time could be predicted. That nothing moves is a
  /// remark, since a user who named a home expects otherwise.
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const auto steps = stepsOf(module);
    if (home == Space::Device || steps.empty())
      return;
    Result<planner::Profile> known = planner::loadDevice(device, profile, home);
    if (!known) {
      module.emitError() << known.error();
      return signalPassFailure();
    }
    sentAny = false;
    findWhatElseIsRead(module);
    for (func::FuncOp step : steps)
      for (auto update : llvm::make_early_inc_range(step.getOps<UpdateOp>()))
        sendStates(update);
    if (sentAny)
      return;
    module.emitRemark() << "no optimizer state leaves the device for " << factsOf(home).label << ": those below "
                        << smallestMoved << " bytes and those that evaluation reads stay";
  }

private:
  /// What is read by other ops than updates, in any function.
  void findWhatElseIsRead(ModuleOp module) {
    readElsewhere.clear();
    module.walk([&](ReadOp read) {
      if (!llvm::all_of(read->getUsers(), llvm::IsaPred<UpdateOp>))
        readElsewhere.insert(read.getVariable());
    });
  }

  /// The variable of a state that updates alone read, one in each step: averages are read by evaluation, too. Null: it
  /// stays.
  VariableOp sent(Value state) {
    auto read = state.getDefiningOp<ReadOp>();
    if (!read || bytes(state.getType()) < smallestMoved || !read->hasOneUse() ||
        readElsewhere.contains(read.getVariable()))
      return {};
    auto variable = getOperation().lookupSymbol<VariableOp>(read.getVariable());
    return variable && variable.getRole() == Role::Optimizer ? variable : VariableOp();
  }

  /// The copies as close to the update as can be: apply-plan moves them apart where the plan has room. All states leave
  /// before compute waits for the first, so that their copies run one behind the other.
  void sendStates(UpdateOp update) {
    OpBuilder before(update), after(update->getContext());
    after.setInsertionPointAfter(update);
    SmallVector<Value> stored;
    for (auto [result, operand] : llvm::enumerate(update->getOpOperands().take_back(update.getNumResults()))) {
      VariableOp variable = sent(operand.get());
      if (!variable)
        continue;
      variable.setHome(factsOf(home).name);
      auto read = operand.get().getDefiningOp<ReadOp>();
      auto type = cast<RankedTensorType>(operand.get().getType());
      auto handle = HostHandleType::get(type.getContext(), type);
      Location loc = read.getLoc();
      Value there = ReadOp::create(before, loc, handle, read.getVariable());
      operand.set(PrefetchOp::create(before, loc, type, there));
      read.erase();
      stored.push_back(OffloadOp::create(after, loc, handle, update.getResult(result), StringAttr(),
                                         after.getStringAttr(factsOf(home).name),
                                         FlatSymbolRefAttr::get(variable.getSymNameAttr())));
      ++variables;
      sentAny = true;
    }
    for (Value handle : stored)
      AwaitOp::create(after, update.getLoc(), handle);
  }

  bool sentAny = false;
  llvm::StringSet<> readElsewhere;
};

} // namespace
