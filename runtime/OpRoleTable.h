// SPDX-License-Identifier: Apache-2.0
// What ops of a step are there for, in one table: the IR says it of every run, programs and both runtimes of every
// record, traces, profiles and reports print it. A new role is a row here and in ir/SchedDialect.td, and what gives it.
// Standard library only.
#pragma once

namespace sluice {

/// - Compute: an op of the model or of its gradient. Loss: what the step returns, or a part of it.
/// - Update: changes parameters, states or statistics, or prepares it.
/// - Rerun: computes again what was dropped. Rebuild: computes what was dropped from what came later, or keeps what
///   that needs. Check: looks whether what was rebuilt can be trusted.
/// - Reduce: adds up what all ranks have. Gather: gives all ranks what each of them has.
/// - Encode, Decode: packs and unpacks in device memory. Offload, Prefetch: copies between the arenas.
/// - Batch: brings the next batch.
enum class OpRole {
  Compute,
  Loss,
  Update,
  Rerun,
  Rebuild,
  Encode,
  Decode,
  Check,
  Reduce,
  Gather,
  Offload,
  Prefetch,
  Batch
};

/// The first one that copies have; runs have those before it.
constexpr OpRole firstOfCopies = OpRole::Offload;

/// By what timelines colour an op.
enum class TimelineKind { Kernel, Copy, Codec, Update };

struct OpRoleFacts {
  OpRole role;
  const char *name;   ///< the enumerator, for emitted source; the IR has it in lower case
  const char *ending; ///< of a node's name in traces and profiles, where a plan runs several ops of one name for it
  const char *note;   ///< above its call in generated programs
  TimelineKind shown;
  OpRole countedAs;      ///< in reports of what a plan's actions take
  bool together = false; ///< all ranks run it at once, on the stream for Collectives
};

/// In the order of the enumerators.
constexpr OpRoleFacts opRoleTable[] = {
    {OpRole::Compute, "Compute", "", "", TimelineKind::Kernel, OpRole::Compute},
    {OpRole::Loss, "Loss", "", "", TimelineKind::Kernel, OpRole::Loss},
    {OpRole::Update, "Update", "", "", TimelineKind::Update, OpRole::Update},
    {OpRole::Rerun, "Rerun", " (again)", "computed again instead of kept", TimelineKind::Kernel, OpRole::Rerun},
    {OpRole::Rebuild, "Rebuild", " (inverse)", "rebuilds what it read instead of keeping it", TimelineKind::Kernel,
     OpRole::Rebuild},
    {OpRole::Encode, "Encode", "", "", TimelineKind::Codec, OpRole::Encode},
    {OpRole::Decode, "Decode", "", "", TimelineKind::Codec, OpRole::Encode},
    {OpRole::Check, "Check", " (check)", "ends the step where what was rebuilt has lost its digits",
     TimelineKind::Kernel, OpRole::Rebuild},
    {OpRole::Reduce, "Reduce", "", "adds up what all ranks have", TimelineKind::Copy, OpRole::Reduce, true},
    {OpRole::Gather, "Gather", "", "gives all ranks what each has updated", TimelineKind::Copy, OpRole::Gather, true},
    {OpRole::Offload, "Offload", "", "", TimelineKind::Copy, OpRole::Offload},
    {OpRole::Prefetch, "Prefetch", "", "", TimelineKind::Copy, OpRole::Offload},
    {OpRole::Batch, "Batch", "", "", TimelineKind::Copy, OpRole::Batch},
};
constexpr int opRoleCount = sizeof(opRoleTable) / sizeof(opRoleTable[0]);

constexpr const OpRoleFacts &factsOf(OpRole role) { return opRoleTable[static_cast<int>(role)]; }

constexpr bool opRoleTableIsInOrder() {
  for (int i = 0; i < opRoleCount; ++i)
    if (static_cast<int>(opRoleTable[i].role) != i)
      return false;
  return true;
}
static_assert(opRoleTableIsInOrder(), "opRoleTable follows OpRole");

} // namespace sluice
