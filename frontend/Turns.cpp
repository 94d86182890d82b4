// SPDX-License-Identifier: Apache-2.0
// Turns have the variables of one import, so that there is nothing to merge; arguments and attributes there is.
#include "frontend/Turns.h"

#include "frontend/HostTensor.h"
#include "frontend/Refusals.h"
#include "ir/Buckets.h"
#include "ir/TensorName.h"
#include "ir/Train.h"
#include "runtime/Printable.h"

using namespace mlir;

namespace sluice {

DictionaryAttr takeOutputAttributes(ModuleOp module, bool leave) {
  Builder b(module.getContext());
  NamedAttrList list;
  for (const char *name :
       {train::outputsAttribute, train::otherMeanAttribute, train::lossInputsAttribute, train::classWeightsAttribute})
    if (Attribute found = module->getAttr(name)) {
      list.append(name, found);
      if (!leave)
        module->removeAttr(name);
    }
  return list.getDictionary(module.getContext());
}

static StringAttr argumentName(func::FuncOp function, unsigned i) {
  return function.getArgAttrOfType<StringAttr>(i, "train.name");
}

Status shareArguments(ModuleOp module) {
  struct Argument {
    StringAttr name;
    Type type;
    Location loc;
  };
  std::vector<Argument> all;
  for (auto function : module.getOps<func::FuncOp>())
    for (BlockArgument argument : function.getArguments()) {
      const StringAttr name = argumentName(function, argument.getArgNumber());
      const auto known = llvm::find_if(all, [&](const Argument &other) { return other.name == name; });
      if (known == all.end())
        all.push_back({name, argument.getType(), argument.getLoc()});
      else if (known->type != argument.getType())
        return Error{"two turns compare with '" + name.str() + "', one of shape " +
                     shapeText(cast<RankedTensorType>(known->type).getShape().vec()) + ", one of shape " +
                     shapeText(cast<RankedTensorType>(argument.getType()).getShape().vec()) +
                     " or of other elements; target=NAME in loss=... names another"};
    }
  Builder b(module.getContext());
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < all.size(); ++i) {
      const unsigned count = function.getNumArguments();
      unsigned place = i;
      while (place < count && argumentName(function, place) != all[i].name)
        ++place;
      if (place == i && place < count)
        continue;
      const auto attributes = b.getDictionaryAttr(b.getNamedAttr("train.name", all[i].name));
      (void)function.insertArgument(i, all[i].type, attributes, all[i].loc);
      if (place == count)
        continue;
      function.getArgument(place + 1).replaceAllUsesWith(function.getArgument(i));
      (void)function.eraseArgument(place + 1);
    }
  return Success{};
}

Status noteTurns(ModuleOp module, const TrainingSpec &spec, const HandRoles &hand,
                 const std::vector<ImportedTurn> &imported, std::vector<std::string> &remarks) {
  if (spec.turns.empty())
    return Success{};
  std::vector<SmallVector<Attribute>> trained(spec.turns.size());
  Builder b(module.getContext());
  for (auto variable : module.getOps<train::VariableOp>()) {
    const std::string name = train::tensorName(variable).str();
    if (variable.getRole() != train::Role::Parameter)
      continue;
    const std::vector<size_t> turns = hand.turnsOf(name);
    if (turns.empty())
      return Error{"parameter '" + name + "' is in no turn"};
    if (turns.size() > 1)
      return Error{"parameter '" + name + "' is trained by the turns '" + spec.turns[turns[0]].name + "' and '" +
                   spec.turns[turns[1]].name +
                   "'; a parameter has one optimizer, so let train=REGEX of one turn match it"};
    trained[turns[0]].push_back(FlatSymbolRefAttr::get(variable.getSymNameAttr()));
    variable.setReasonAttr(
        b.getStringAttr("turn '" + spec.turns[turns[0]].name + "', " + variable.getReason().value_or("").str()));
  }
  std::vector<train::Bucket> list;
  for (size_t i = 0; i < spec.turns.size(); ++i) {
    const TurnRequest &turn = spec.turns[i];
    if (trained[i].empty())
      return Error{"--turn " + turn.name + ": train=" + turn.train +
                   " matches no whole name of a parameter; --list-parameters without --turn names them"};
    remarks.push_back("turn '" + turn.name + "': " + counted(trained[i].size(), "tensor") +
                      (turn.steps > 1 ? ", " + std::to_string(turn.steps) + " steps in a row" : ""));
    list.push_back({turn.name, imported[i].step, imported[i].evaluate, turn.steps, b.getArrayAttr(trained[i]),
                    imported[i].attributes});
  }
  train::setBuckets(module, list);
  return Success{};
}

} // namespace sluice
