// SPDX-License-Identifier: Apache-2.0
// Shares travel a megabyte at a time. Parameters are row-major, so that shares follow one another in files, too.
#include "runtime/program/SharedStates.h"

#include "runtime/program/Checkpoint.h"

#include <algorithm>
#include <stdexcept>

namespace sluice {

static constexpr int64_t pieceElements = int64_t{1} << 18;

/// A message of one piece of a rank's share.
static void pass(Ranks &ranks, int peer, std::vector<float> &piece, bool sends, const Variable &variable) {
  ranks.exchange({{peer, piece.data(), piece.size() * sizeof(float), sends}},
                 {"the share of a state that is saved", variable.name});
}

/// Calls visit(first, count) for the pieces of a share, counted from the share's first element.
template <typename Visit> static void forEachPiece(Share share, Visit &&visit) {
  for (int64_t first = 0; first < share.count; first += pieceElements)
    visit(first, std::min(pieceElements, share.count - first));
}

static Tensor pieceOf(const Variable &variable, int64_t first, int64_t count) {
  Tensor piece = variable.tensor;
  piece.offset += static_cast<size_t>(first) * sizeof(float);
  piece.shape = {count};
  return piece;
}

static Share shareOf(const Session &session, const Variable &variable, int rank) {
  if (variable.whole.layout != Layout::RowMajor)
    throw std::logic_error(text("'", variable.name, "' has shares of a tensor that is not row-major"));
  return shareOf(variable.whole.shape.elements(), rank, session.state.ranks);
}

void readSaved(Session &session, const Variable &variable, const TakePiece &take) {
  if (!variable.whole.present)
    return readTensor(session, variable.tensor, take);
  std::vector<float> piece;
  for (int rank = 0; rank < session.state.ranks; ++rank)
    forEachPiece(shareOf(session, variable, rank), [&](int64_t first, int64_t count) {
      piece.resize(static_cast<size_t>(count));
      if (rank == session.state.rank)
        session.read(pieceOf(variable, first, count), piece.data());
      else
        pass(*session.ranks, rank, piece, /*sends=*/false, variable);
      take(piece.data(), piece.size() * sizeof(float));
    });
}

void sendShares(Session &session, const Program &program, const Arguments &arguments) {
  if (!session.sharesStates || !arguments.checkpoint)
    return;
  std::vector<float> piece;
  for (int i = 0; i < program.variableCount; ++i)
    if (const Variable &variable = program.variables[i];
        variable.whole.present && isSaved(variable, arguments.checkpointTrainedOnly))
      forEachPiece(shareOf(session, variable, session.state.rank), [&](int64_t first, int64_t count) {
        piece.resize(static_cast<size_t>(count));
        session.read(pieceOf(variable, first, count), piece.data());
        pass(*session.ranks, 0, piece, /*sends=*/true, variable);
      });
}

/// The file's checksum is of all bytes, so that those of other ranks are read as well.
void writeSaved(Session &session, const Variable &variable, const GivePiece &give) {
  if (!variable.whole.present)
    return writeTensor(session, variable.tensor, give);
  std::vector<float> piece;
  for (int rank = 0; rank < session.state.ranks; ++rank) {
    const Share share = shareOf(session, variable, rank);
    forEachPiece(share, [&](int64_t first, int64_t count) {
      piece.resize(static_cast<size_t>(count));
      give(static_cast<size_t>(share.first + first) * sizeof(float), piece.data(), piece.size() * sizeof(float));
      if (rank == session.state.rank)
        session.write(pieceOf(variable, first, count), piece.data());
    });
  }
}

} // namespace sluice
