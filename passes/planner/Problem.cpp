// SPDX-License-Identifier: Apache-2.0
// Refuses problems that no planner should see: indices out of range, negative or non-finite numbers, sums that leave 63
// bits.
#include "passes/planner/Program.h"

#include <algorithm>
#include <cmath>

namespace sluice::planner {

// Sums of sizes stay below this, so that no later addition can overflow.
static constexpr Bytes largestTotal = Bytes(1) << 60, largestAlignment = Bytes(1) << 30;

static bool badSeconds(Seconds s) { return !std::isfinite(s) || s < 0; }

/// Indices within the problem, figures that are finite and not negative.
static Status checkOp(const Problem &problem, int k) {
  const Op &op = problem.ops[k];
  const std::string who = "op " + std::to_string(k) + " '" + op.name + "' ";
  const int n = problem.buffers.size();
  if (badSeconds(op.seconds) || badSeconds(op.exchange))
    return Error{who + "takes " + std::to_string(op.seconds) + " seconds, and " + std::to_string(op.exchange) +
                 " of communication"};
  if (op.workspace < 0)
    return Error{who + "has a workspace of " + std::to_string(op.workspace) + " bytes"};
  for (const auto *list : {&op.reads, &op.writes, &op.sends})
    for (int b : *list)
      if (b < 0 || b >= n)
        return Error{who + "names buffer " + std::to_string(b) + ", there are " + std::to_string(n)};
  for (int b : op.sends)
    if (!problem.buffers[b].born)
      return Error{who + "sends buffer " + std::to_string(b) + " home, which is no gradient that goes there"};
  if (op.rerun) {
    const Rerun &rerun = *op.rerun;
    if (badSeconds(rerun.seconds) || rerun.workspace < 0)
      return Error{who + "runs again in " + std::to_string(rerun.seconds) + " seconds with " +
                   std::to_string(rerun.workspace) + " bytes of workspace"};
    for (int b : rerun.reads)
      if (b < 0 || b >= n)
        return Error{who + "reads buffer " + std::to_string(b) + " again, there are " + std::to_string(n)};
    for (int b : rerun.writes)
      if (std::find(op.writes.begin(), op.writes.end(), b) == op.writes.end())
        return Error{who + "writes buffer " + std::to_string(b) + " again, which it did not write first"};
  }
  for (const Alternative &a : op.alternatives)
    if (badSeconds(a.seconds) || a.workspace < 0 || a.workspace > largestTotal)
      return Error{who + "has an alternative of " + std::to_string(a.seconds) + " seconds and " +
                   std::to_string(a.workspace) + " bytes of workspace"};
  return Success{};
}

/// What is made in the step is sent by one op, after which none touches it.
static Status checkBorn(const Problem &problem, int k) {
  const Buffer &buffer = problem.buffers[k];
  const std::string who = "buffer " + std::to_string(k) + " '" + buffer.name + "' ";
  int senders = 0, touchedLater = 0, writers = 0;
  for (const Op &op : problem.ops) {
    const bool writes = std::count(op.writes.begin(), op.writes.end(), k) > 0;
    writers += writes;
    touchedLater += senders > 0 && (writes || std::count(op.reads.begin(), op.reads.end(), k) > 0);
    senders += std::count(op.sends.begin(), op.sends.end(), k) > 0;
  }
  if (senders != 1 || touchedLater > 0 || writers == 0 || buffer.dropped || buffer.activation || buffer.offloadable)
    return Error{who + "goes home for good after one op; " + std::to_string(writers) + " write it, " +
                 std::to_string(senders) + " send it, " + std::to_string(touchedLater) + " touch it later"};
  if (badSeconds(buffer.usedAtHome))
    return Error{who + "is used at home for " + std::to_string(buffer.usedAtHome) + " seconds"};
  return Success{};
}

/// One op writes a visitor and reads nothing of it, as if it had made it. What runs again has it in its workspace.
static Status checkVisitor(const Problem &problem, int k) {
  const Buffer &buffer = problem.buffers[k];
  const std::string who = "buffer " + std::to_string(k) + " '" + buffer.name + "' ";
  if (!buffer.visits)
    return buffer.dropped || buffer.born
               ? Status(Error{who + (buffer.born ? "is to go home for good" : "is to be dropped") +
                              ", which is for what visits the device"})
               : Success{};
  const bool fromRanks = problem.visitorsHome == Space::Device && buffer.dropped;
  if (!(fromRanks || factsOf(problem.visitorsHome).isHome) || problem.visitorsLink.d2h <= 0 ||
      problem.visitorsLink.h2d <= 0)
    return Error{who + "is at home in the arena '" + factsOf(problem.visitorsHome).name +
                 "', to which the profile knows no link"};
  if (buffer.born)
    return checkBorn(problem, k);
  int writers = 0, readers = 0;
  for (const Op &op : problem.ops) {
    const bool writes = std::count(op.writes.begin(), op.writes.end(), k) > 0;
    writers += writes;
    readers += std::count(op.reads.begin(), op.reads.end(), k) > 0;
    const std::vector<int> &again = op.writesWhen(true);
    if (writes && op.phase == Phase::Forward && op.recomputable && std::count(again.begin(), again.end(), k) > 0)
      return Error{who + "visits the device for the first run of op '" + op.name + "', which lists it for others, too"};
  }
  if (writers != 1 || readers > 0 || buffer.activation || buffer.offloadable)
    return Error{who + "visits the device for one op that writes it; " + std::to_string(writers) + " do, and " +
                 std::to_string(readers) + " read it"};
  return Success{};
}

/// As checkOp(); a mask has backward readers alone, an inversion has sources other than the buffer itself.
static Status checkBuffer(const Problem &problem, int k) {
  const Buffer &buffer = problem.buffers[k];
  const std::string who = "buffer " + std::to_string(k) + " '" + buffer.name + "' ";
  const int n = problem.ops.size();
  if (buffer.bytes < 0 || buffer.bytes > largestTotal)
    return Error{who + "has " + std::to_string(buffer.bytes) + " bytes"};
  for (int op : buffer.producers)
    if (op < 0 || op >= n)
      return Error{who + "names producer " + std::to_string(op) + ", there are " + std::to_string(n) + " ops"};
  for (const Encoding &e : buffer.encodings)
    for (int op : e.maskReaders)
      if (op < 0 || op >= n || problem.ops[op].phase == Phase::Forward)
        return Error{who + "names op " + std::to_string(op) + " as a reader of the mask in its encoding '" +
                     codecName(e.codec) + "'"};
  for (const Encoding &e : buffer.encodings)
    if (e.bytes < 0 || e.bytes > largestTotal || badSeconds(e.encodeSeconds) || badSeconds(e.decodeSeconds))
      return Error{who + "has encoding '" + codecName(e.codec) + "' of " + std::to_string(e.bytes) + " bytes"};
  for (const auto &[codec, error] : buffer.errors)
    if (!std::isfinite(error) || error < 0)
      return Error{who + "has an error of " + std::to_string(error) + " under '" + codecName(codec) + "'"};
  if (Status status = checkVisitor(problem, k); !status)
    return status;
  const std::optional<Inversion> &inversion = buffer.inversion;
  if (!inversion)
    return Success{};
  auto badBytes = [](Bytes bytes) { return bytes < 0 || bytes > largestTotal; };
  if (badBytes(inversion->sideBytes) || badBytes(inversion->workspace) || badSeconds(inversion->seconds))
    return Error{who + "is inverted in " + std::to_string(inversion->seconds) + " seconds with a side slot of " +
                 std::to_string(inversion->sideBytes) + " and a workspace of " + std::to_string(inversion->workspace) +
                 " bytes"};
  if (const double error = inversion->error.value_or(0); !std::isfinite(error) || error < 0)
    return Error{who + "has an error of " + std::to_string(error) + " under 'invert'"};
  if (inversion->sources.empty())
    return Error{who + "is inverted from nothing"};
  for (int source : inversion->sources)
    if (source < 0 || source == k || source >= static_cast<int>(problem.buffers.size()))
      return Error{who + "is inverted from buffer " + std::to_string(source) + ", there are " +
                   std::to_string(problem.buffers.size())};
  return Success{};
}

// All sizes together fit an int64_t with room to spare (largestTotal), so that sums of them are never checked again.
Status checkProblem(const Problem &problem) {
  Bytes total = problem.base;
  if (problem.base < 0 || problem.base > largestTotal)
    return Error{"base has " + std::to_string(problem.base) + " bytes"};
  if (problem.alignment < 1 || problem.alignment > largestAlignment)
    return Error{"alignment is " + std::to_string(problem.alignment) + ", it must be from 1 to " +
                 std::to_string(largestAlignment)};
  if (!factsOf(problem.home).isHome)
    return Error{std::string("nothing can be offloaded to the arena '") + factsOf(problem.home).name + "'"};
  for (const Link *link : {&problem.link, &problem.visitorsLink})
    for (double rate : {link->d2h, link->h2d, link->duplex, link->latency})
      if (badSeconds(rate))
        return Error{"link has a figure of " + std::to_string(rate)};
  for (const Link *link : {&problem.link, &problem.visitorsLink})
    if (!(link->contention.value_or(0) >= 0 && link->contention.value_or(0) <= 1))
      return Error{"link has a contention of " + std::to_string(*link->contention) +
                   " seconds a byte, it must be from 0 to 1"};
  for (const auto &[what, contention] :
       {std::pair("codecs have", problem.codecContention), {"copies that pack have", problem.packingContention}})
    if (!(contention >= 0 && contention <= 1))
      return Error{std::string(what) + " a contention of " + std::to_string(contention) + ", it must be from 0 to 1"};
  if (problem.errorBudget && !(*problem.errorBudget > 0 && std::isfinite(*problem.errorBudget)))
    return Error{"the error budget is " + std::to_string(*problem.errorBudget) + ", it must be above 0"};
  for (const auto &[codec, rate] : problem.codecRates)
    if (!std::isfinite(rate) || rate <= 0)
      return Error{"codec '" + codecName(codec) + "' has a rate of " + std::to_string(rate) + " bytes a second"};
  // Compared before it is added: a sum of two sizes from a file may not fit.
  auto exceeds = [&](Bytes bytes) {
    if (bytes > largestTotal - total)
      return true;
    total += bytes;
    return false;
  };
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k) {
    const Op &op = problem.ops[k];
    if (Status status = checkOp(problem, k); !status)
      return status;
    // The largest that the op may have, whichever alternative a plan takes.
    Bytes workspace = op.workspace;
    for (const Alternative &a : op.alternatives)
      workspace = std::max(workspace, a.workspace);
    if (exceeds(workspace) || (op.rerun && exceeds(op.rerun->workspace)))
      return Error{"workspaces and buffers exceed " + std::to_string(largestTotal) + " bytes at op " +
                   std::to_string(k)};
  }
  for (int k = 0; k < static_cast<int>(problem.buffers.size()); ++k) {
    if (Status status = checkBuffer(problem, k); !status)
      return status;
    // Raw or packed, whichever is larger.
    Bytes bytes = aligned(problem, problem.buffers[k].bytes);
    for (const Encoding &e : problem.buffers[k].encodings)
      bytes = std::max(bytes, aligned(problem, e.bytes));
    const std::optional<Inversion> &inversion = problem.buffers[k].inversion;
    if (exceeds(bytes) || (inversion && (exceeds(inversion->sideBytes) || exceeds(inversion->workspace))))
      return Error{"buffers exceed " + std::to_string(largestTotal) + " bytes at buffer " + std::to_string(k) + " '" +
                   problem.buffers[k].name + "'"};
  }
  return Success{};
}

} // namespace sluice::planner
