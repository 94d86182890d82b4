// SPDX-License-Identifier: Apache-2.0
// What messages between ranks take, and what follows for what all ranks compute together. The model of a message is
// Hockney's (latency and rate) with an overhead of each message that its sender and receiver spend, as in LogGP: R.
// Hockney, The communication challenge for MPP, Parallel Computing 20 (1994); A. Alexandrov et al., LogGP, SPAA 1995.
#pragma once

#include "passes/planner/Problem.h"
#include "runtime/Result.h"

namespace sluice::planner {

/// A network, or the memory of one machine, as one rank sees it.
struct Interconnect {
  std::string name, provenance;
  double rate = 0;      ///< bytes per second that a rank sends while it receives as many; 0: unknown
  Seconds latency = 0;  ///< from one rank to another, of the smallest message
  Seconds overhead = 0; ///< of each message, one after the other, in the rank that sends or receives it
  /// Seconds that compute loses per second of communication beside it, from 0 to 1: where ranks copy and add up with a
  /// core that computes.
  double contention = 0;
};

/// A shipped one by name ("ethernet-100g"), or a file: {"version":1, "interconnect", "provenance", "rate",
/// "latency_seconds", "overhead_seconds", "contention"}, the last three 0 where they are missing. Errors name key and
/// value.
Result<Interconnect> loadInterconnect(const std::string &nameOrFile);

/// Shipped ones as (name, JSON text); generated at build time from passes/profiles/interconnects.
const std::vector<std::pair<std::string, std::string>> &shippedInterconnects();

/// Of so many messages at once, of so many bytes each, while as many come in.
Seconds messageSeconds(const Interconnect &between, double messages, double bytes);

/// Of a sum over ranks as runtime/host/Collective.cpp makes it: in pieces, each sent whole to all others, or in shares
/// to and fro where the room does not hold what all others send. 0 for one rank.
Seconds sumSeconds(const Interconnect &between, Bytes bytes, int ranks);

/// Of giving all ranks what each has: a share of so many bytes together.
Seconds gatherSeconds(const Interconnect &between, Bytes bytes, int ranks);

/// The same of each byte of what comes from the shares of all ranks, as a link; one rank has all of it at once.
Link gatherLink(const Interconnect &between, int ranks);

/// What the ops that sum and gather take for so many ranks, and visitors from their shares, and what compute loses
/// meanwhile.
void setExchanges(Problem &problem, const Interconnect &between, int ranks);

/// An op that all ranks run together, and the first position behind it that touches its buffers; the number of ops if
/// none does.
struct Exchange {
  int op, before;
};
/// In the order of ops.
std::vector<Exchange> exchangesOf(const Problem &problem);

} // namespace sluice::planner
