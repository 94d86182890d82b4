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
void PlannedPlaces::note(Operation *op, ArrayRef<StringRef> results, PlaceForm form, int step, int64_t before) const {
  SmallVector<int64_t> list;
  for (StringRef storage : results)
    list.push_back(find(storage, form, step));
  auto cost = attr::get<attr::Cost>(op);
  const int64_t place = find("", PlaceForm::Workspace, step);
  list.push_back(cost && cost.getWorkspace() > 0 && place >= 0 ? place + before : -1);
  set(op, list);
}

void PlannedPlaces::noteInWorkspace(Operation *arrival, int64_t before, int step) const {
  const int64_t place = find("", PlaceForm::Workspace, step);
  set(arrival, {place < 0 ? -1 : place + before, -1});
}

void PlannedPlaces::set(Operation *op, ArrayRef<int64_t> list) {
  forget(op);
  if (llvm::any_of(list, [](int64_t offset) { return offset >= 0; }))
    attr::set<attr::Offsets>(op, DenseI64ArrayAttr::get(op->getContext(), list));
}

IntegerAttr PlannedPlaces::of(Operation *op, unsigned index) {
  auto offsets = op ? train::attr::get<train::attr::Offsets>(op) : DenseI64ArrayAttr();
  return offsets && offsets[index] >= 0 ? Builder(op->getContext()).getI64IntegerAttr(offsets[index]) : IntegerAttr();
}

void PlannedPlaces::forget(Operation *op) { op->removeDiscardableAttr(attr::Offsets::getNameStr()); }
