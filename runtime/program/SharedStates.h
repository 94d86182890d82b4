// SPDX-License-Identifier: Apache-2.0
// Optimizer states and parameters of which each rank has a share (sluicec --shard): one at a time they are whole again
// where rank 0 saves or exports them, so that files are those of a program whose ranks have all of each.
#pragma once

#include "runtime/program/Arguments.h"
#include "runtime/program/TensorIO.h"

namespace sluice {

/// Whether each of several ranks has a share of the parameters alone, which all gather whenever a batch reads them.
bool sharesParameters(const Program &program);

/// What reads variables of which other ranks have shares: rank 0 does `work`, in which readSaved() asks the others for
/// what they have. All ranks come here at the same point; others return when rank 0 has done. Without shares the work
/// alone, in rank 0.
void withShares(Session &session, const Program &program, const std::function<void()> &work);

/// Logical bytes of what checkpoints and exports have of the variable, in order, in pieces. Of a share within
/// withShares().
void readSaved(Session &session, const Variable &variable, const TakePiece &take);

/// Fills the variable from those bytes, of a share its own. `give` is asked for all of them, as for a tensor, or, where
/// it need not be, for the share alone.
void writeSaved(Session &session, const Variable &variable, const GivePiece &give, bool all = true);

} // namespace sluice
