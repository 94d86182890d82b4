// SPDX-License-Identifier: Apache-2.0
// Moves whole tensors between an arena and files in logical (row-major) order, a few megabytes at a time, whatever the
// tensor's physical layout: the program's own memory stays small beside its arenas.
#pragma once

#include "runtime/Program.h"

#include <functional>

namespace sluice {

/// All elements of the tensor, of 1, 4 or 8 bytes each, from logical (row-major) to physical order and back. Both
/// places hold tensor.bytes() bytes and share none.
void toPhysical(const Tensor &tensor, const void *logical, void *physical);
void toLogical(const Tensor &tensor, const void *physical, void *logical);

/// Reads a tensor out of its arena: `take` gets its logical bytes in order, in pieces.
using TakePiece = std::function<void(const void *data, size_t bytes)>;
void readTensor(Session &session, const Tensor &tensor, const TakePiece &take);

/// Writes a tensor into its arena: `give` fills the piece of its logical bytes that begins at byte `first`. Pieces come
/// in order and hold whole elements.
using GivePiece = std::function<void(size_t first, void *to, size_t bytes)>;
void writeTensor(Session &session, const Tensor &tensor, const GivePiece &give);

/// The same of a variable as files of weights have it, Variable::asFloats(); of shares see readSaved() and writeSaved()
/// in SharedStates.h. A form of fewer bits becomes floats when
/// it is read, and is made of them when it is written; its bytes are in memory once more meanwhile, and of the floats
/// some rows.
void readWeights(Session &session, const Variable &variable, const TakePiece &take);
void writeWeights(Session &session, const Variable &variable, const GivePiece &give);

} // namespace sluice
