// SPDX-License-Identifier: Apache-2.0
// Whether buffers may be away when the plan says, and with the action and codec that it names; see PlanCheck.h.
#include "passes/planner/PlanCheck.h"

#include <algorithm>
#include <iterator>

namespace sluice::planner {

/// Positions of each absence in order, and after those of the one before.
Status PlanCheck::order(int b, const Decision &d) const {
  const bool often = factsOf(d.action).absences == Absences::Several;
  if (d.absences.empty() || (!often && d.absences.size() > 1))
    return Error{buffer(b) + " is away " + std::to_string(d.absences.size()) + " times, its action allows " +
                 (often ? "one or more" : "one")};
  for (size_t i = 0; i < d.absences.size(); ++i) {
    Status status = Success{};
    switch (d.absences[i].kind()) {
    case AbsenceKind::AroundEnd:
      status = visit(b, d, d.absences[i]);
      break;
    case AbsenceKind::Between:
      status = between(b, d, i);
      break;
    }
    if (!status)
      return status;
  }
  return Success{};
}

/// An absence between two accesses, or after the last one that needs the raw bytes.
Status PlanCheck::between(int b, const Decision &d, size_t i) const {
  const int n = problem.ops.size();
  const bool returns = factsOf(d.action).returns;
  const int earliest = d.action == Action::Offload ? -1 : 0; // what arrives from outside leaves at once
  const Absence &a = d.absences[i];
  if (problem.buffers[b].visits)
    return Error{buffer(b) + " visits the device, and is away from op " + std::to_string(a.freeBefore) + " to " +
                 std::to_string(a.returnAfter) + " of a step: only around its end"};
  if (a.leaveAfter < earliest || a.freeBefore <= a.leaveAfter || a.freeBefore >= n)
    return Error{buffer(b) + " leaves after op " + std::to_string(a.leaveAfter) + " and is free before " +
                 std::to_string(a.freeBefore)};
  if (returns && (a.returnAfter < a.freeBefore || a.neededBy <= a.returnAfter || a.neededBy >= n))
    return Error{buffer(b) + " is free before op " + std::to_string(a.freeBefore) + ", comes back after op " +
                 std::to_string(a.returnAfter) + " and is needed by " + std::to_string(a.neededBy)};
  if (!returns && (a.returnAfter != -1 || a.neededBy >= n || (a.neededBy != -1 && a.neededBy < a.freeBefore)))
    return Error{buffer(b) + " is encoded for good before op " + std::to_string(a.freeBefore) + ", comes back after " +
                 std::to_string(a.returnAfter) + " and is decoded before " + std::to_string(a.neededBy)};
  if (i == 0)
    return Success{};
  const Absence &before = d.absences[i - 1];
  if (a.freeBefore <= before.neededBy || (a.leaveAfter != before.leaveAfter && a.leaveAfter < before.neededBy))
    return Error{buffer(b) + " leaves again after op " + std::to_string(a.leaveAfter) + " and is free before " +
                 std::to_string(a.freeBefore) + ", it is back by " + std::to_string(before.neededBy)};
  return Success{};
}

/// A visitor is there from before its first use until after its last.
Status PlanCheck::visit(int b, const Decision &d, const Absence &a) const {
  const int n = problem.ops.size();
  if (!problem.buffers[b].visits)
    return Error{buffer(b) + " leaves after op " + std::to_string(a.leaveAfter) + " and is needed by " +
                 std::to_string(a.neededBy) + ": only what visits the device is away around the end of the step"};
  if (d.action != Action::Offload || d.codec || d.absences.size() != 1)
    return Error{buffer(b) + " visits the device, which takes one absence and raw copies"};
  if (uses[b].empty())
    return Error{buffer(b) + " visits the device, and no op uses it"};
  const int first = runs[uses[b].front().run].position, last = runs[uses[b].back().run].position;
  if (a.returnAfter < -1 || a.returnAfter >= a.neededBy || a.neededBy > first || a.leaveAfter < last ||
      a.freeBefore <= a.leaveAfter || a.freeBefore > n)
    return Error{buffer(b) + ", used from op " + std::to_string(first) + " to " + std::to_string(last) +
                 ", comes after op " + std::to_string(a.returnAfter) + ", is needed by " + std::to_string(a.neededBy) +
                 ", leaves after op " + std::to_string(a.leaveAfter) + " and is free before " +
                 std::to_string(a.freeBefore)};
  return Success{};
}

/// Whether what comes back is what left.
static bool restoresBits(Codec codec) {
  const Codec::Kind exact[] = {Codec::None, Codec::Zvc, Codec::Mask, Codec::Argmax, Codec::Counter};
  return std::find(std::begin(exact), std::end(exact), codec.kind) != std::end(exact);
}

/// Each use of the buffer against one absence: nothing is written once it was copied, used while it is away, or read by
/// the forward half after it was rounded. Uses of an inversion count as those of the run behind it.
Status PlanCheck::absence(int b, const Decision &d, size_t i) const {
  const Absence &a = d.absences[i];
  const bool returns = factsOf(d.action).returns;
  const bool inverts = d.action == Action::Invert, rounds = inverts || !restoresBits(d.codec);
  const std::string from = inverts ? "an inversion" : codecName(d.codec);
  for (const Use &use : uses[b]) {
    const Run &run = runs[use.run];
    if (rounds && use.writes && run.position < a.freeBefore && problem.ops[run.op].phase != Phase::Forward)
      return Error{op(run.op) + " of the backward half writes " + buffer(b) + ", which then comes back from " + from};
    if (run.position > a.leaveAfter && run.position < a.freeBefore && use.writes)
      return Error{op(run.op) + " writes " + buffer(b) + ", of which a copy was made after op " +
                   std::to_string(a.leaveAfter) + ", before it is free at " + std::to_string(a.freeBefore)};
    if (returns && run.position >= a.freeBefore && run.position < a.neededBy)
      return Error{op(run.op) + " uses " + buffer(b) + " at position " + std::to_string(run.position) + ", away from " +
                   std::to_string(a.freeBefore) + " until " + std::to_string(a.neededBy)};
    if (use.inverts && (!returns || inverts) && run.position >= a.freeBefore &&
        (!returns || run.position == a.neededBy))
      return Error{"an inversion reads " + buffer(b) + " at position " + std::to_string(run.position) +
                   ", where it is not on the device since " + std::to_string(a.freeBefore)};
    if (!returns && run.position >= a.freeBefore && problem.ops[run.op].phase == Phase::Forward)
      return Error{op(run.op) + " uses " + buffer(b) + " raw at position " + std::to_string(run.position) +
                   ", encoded since " + std::to_string(a.freeBefore)};
    if (rounds && run.position >= a.neededBy && !run.again && problem.ops[run.op].phase == Phase::Forward)
      return Error{op(run.op) + " of the forward half uses " + buffer(b) + " after it came back from " + from};
    if (!returns && use.writes && run.position >= a.freeBefore)
      return Error{op(run.op) + " writes " + buffer(b) + " at position " + std::to_string(run.position) +
                   ", encoded since " + std::to_string(a.freeBefore)};
  }
  return Success{};
}

Status PlanCheck::absences(int b, const Decision &d) const {
  if (Status status = order(b, d); !status || problem.buffers[b].visits)
    return status;
  for (size_t i = 0; i < d.absences.size(); ++i)
    if (Status status = absence(b, d, i); !status)
      return status;
  return Success{};
}

/// Whether the problem offers the action for the buffer at all.
Status PlanCheck::allowed(int b, const Decision &d) const {
  const Buffer &what = problem.buffers[b];
  if (what.visits)
    return Success{};
  const Codec::Kind kind = d.codec.kind;
  const bool direct = kind == Codec::Mask || kind == Codec::Argmax || kind == Codec::Counter;
  if (d.action == Action::Invert) {
    if (!what.inversion)
      return Error{buffer(b) + " has no inversion"};
    const Absence &a = d.absences.front();
    if (a.returnAfter + 1 != a.neededBy)
      return Error{buffer(b) + " is rebuilt after op " + std::to_string(a.returnAfter) + ", it must be just before " +
                   std::to_string(a.neededBy)};
    if (a.neededBy > what.inversion->latest)
      return Error{buffer(b) + " is rebuilt before op " + std::to_string(a.neededBy) +
                   ", parameters that it needs change at " + std::to_string(what.inversion->latest)};
    for (int source : what.inversion->sources)
      if (const Codec codec = plan.decisions[source].codec;
          !restoresBits(codec) && (codec.kind != Codec::Fp16 || !what.inversion->fromHalves))
        return Error{buffer(b) + " cannot be rebuilt from " + buffer(source) + ", which comes back from " +
                     codecName(codec)};
    return Success{};
  }
  if (d.action == Action::Offload) {
    if (!what.offloadable)
      return Error{buffer(b) + " may not be offloaded"};
    if (!packsFor(factsOf(problem.home), d.codec))
      return Error{buffer(b) + " is packed with '" + codecName(d.codec) + "' for the " + factsOf(problem.home).name +
                   " arena, whose copies cannot do that"};
    const auto &rates = problem.codecRates;
    if (d.codec && std::none_of(rates.begin(), rates.end(), [&](const auto &rate) { return rate.first == d.codec; }) &&
        (direct || std::none_of(what.encodings.begin(), what.encodings.end(),
                                [&](const Encoding &e) { return e.codec == d.codec; })))
      return Error{buffer(b) + " is copied with codec '" + codecName(d.codec) +
                   "', which the device does not have for it"};
    return Success{};
  }
  if (direct != (d.action == Action::Encode) ||
      std::none_of(what.encodings.begin(), what.encodings.end(), [&](const Encoding &e) { return e.codec == d.codec; }))
    return Error{buffer(b) + " has no encoding '" + codecName(d.codec) + "' for that action"};
  return Success{};
}

} // namespace sluice::planner
