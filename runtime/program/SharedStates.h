// SPDX-License-Identifier: Apache-2.0
// Optimizer states of which each rank has a share (sluicec --shard=states): one at a time they are whole again where
// rank 0 saves them, so that checkpoints are those of a program whose ranks have all states each.
#pragma once

#include "runtime/program/Arguments.h"
#include "runtime/program/TensorIO.h"

namespace sluice {

/// Logical bytes of what checkpoints have of the variable, in order, in pieces. Of a share: in rank 0, while all others
/// are in sendShares(), which comes to the same variables in the same order.
void readSaved(Session &session, const Variable &variable, const TakePiece &take);

/// In ranks that keep no checkpoints: sends the shares of all variables that one holds, while rank 0 saves it. Does
/// nothing where states are whole or nothing is saved.
void sendShares(Session &session, const Program &program, const Arguments &arguments);

/// Fills the variable from those bytes, of a share its own. `give` is asked for all of them, as for a tensor.
void writeSaved(Session &session, const Variable &variable, const GivePiece &give);

} // namespace sluice
