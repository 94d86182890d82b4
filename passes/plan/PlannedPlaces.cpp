// SPDX-License-Identifier: Apache-2.0
// Looks places up by storage, form and step, see PlannedPlaces.h.
#include "passes/plan/PlannedPlaces.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

PlannedPlaces::PlannedPlaces(PlanAttr plan) {
  for (PlaceAttr place : plan.getPlaces())
    offsets[{place.getStorage().getValue(), place.getForm(), place.getStep()}] = place.getOffset();
}

int64_t PlannedPlaces::find(StringRef storage, PlaceForm form, int step) const {
  const auto found = offsets.find({storage, form, step});
  return found == offsets.end() ? -1 : found->second;
}

/// Offsets of the results, then of the workspace; -1 where the plan places none. An op that runs twice has those of the
/// step at hand, so that what it inherited is forgotten first.
void PlannedPlaces::note(Operation *op, ArrayRef<StringRef> results, PlaceForm form, int step) const {
  SmallVector<int64_t> list;
  for (StringRef storage : results)
    list.push_back(find(storage, form, step));
  auto cost = attr::get<attr::Cost>(op);
  list.push_back(cost && cost.getWorkspace() > 0 ? find("", PlaceForm::Workspace, step) : -1);
  forget(op);
  if (llvm::any_of(list, [](int64_t offset) { return offset >= 0; }))
    attr::set<attr::Offsets>(op, DenseI64ArrayAttr::get(op->getContext(), list));
}

IntegerAttr PlannedPlaces::of(Operation *op, unsigned index) {
  auto offsets = op ? train::attr::get<train::attr::Offsets>(op) : DenseI64ArrayAttr();
  return offsets && offsets[index] >= 0 ? Builder(op->getContext()).getI64IntegerAttr(offsets[index]) : IntegerAttr();
}

void PlannedPlaces::forget(Operation *op) { op->removeDiscardableAttr(attr::Offsets::getNameStr()); }
