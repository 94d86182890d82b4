// SPDX-License-Identifier: Apache-2.0
// Shares travel a megabyte at a time. Rank 0 names a variable by where it lies, which is the same in all ranks, and
// gets the share of each in their order. Parameters are row-major, so that shares follow one another in files, too.
#include "runtime/program/SharedStates.h"

#include "runtime/Errors.h"

#include <algorithm>
#include <stdexcept>

namespace sluice {

static constexpr int64_t pieceElements = int64_t{1} << 18;
static constexpr int64_t nothingMore = -1; ///< asked for: rank 0 has done

bool sharesParameters(const Program &program) {
  return std::any_of(program.variables, program.variables + program.variableCount, [](const Variable &variable) {
    return variable.role == Role::Parameter && variable.whole.present;
  });
}

static int64_t placeOf(const Variable &variable) {
  return static_cast<int64_t>(variable.tensor.offset) * arenaCount + indexOf(variable.tensor.space);
}

static Awaited awaitedOf(const char *name) { return {"a share that is saved", name}; }

/// From rank 0 to all others.
static void ask(Session &session, int64_t place, const char *name) {
  std::vector<Message> messages;
  for (int peer = 1; peer < session.state.ranks; ++peer)
    messages.push_back({peer, &place, sizeof place, true});
  session.ranks->exchange(messages, awaitedOf(name));
}

/// A message of one piece of a rank's share.
static void pass(Ranks &ranks, int peer, std::vector<float> &piece, bool sends, const char *name) {
  ranks.exchange({{peer, piece.data(), piece.size() * sizeof(float), sends}}, awaitedOf(name));
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
  ask(session, placeOf(variable), variable.name);
  std::vector<float> piece;
  for (int rank = 0; rank < session.state.ranks; ++rank)
    forEachPiece(shareOf(session, variable, rank), [&](int64_t first, int64_t count) {
      piece.resize(static_cast<size_t>(count));
      if (rank == session.state.rank)
        session.read(pieceOf(variable, first, count), piece.data());
      else
        pass(*session.ranks, rank, piece, /*sends=*/false, variable.name);
      take(piece.data(), piece.size() * sizeof(float));
    });
}

/// All that rank 0 asks for, until it has done.
static void answer(Session &session, const Program &program) {
  std::vector<float> piece;
  for (int64_t place = 0;;) {
    session.ranks->exchange({{0, &place, sizeof place, false}}, awaitedOf(nullptr));
    if (place == nothingMore)
      return;
    const Variable *variable = std::find_if(program.variables, program.variables + program.variableCount,
                                            [&](const Variable &one) { return placeOf(one) == place; });
    if (variable == program.variables + program.variableCount)
      throw std::logic_error(text("rank 0 asks for a share at place ", place, ", where there is none"));
    forEachPiece(shareOf(session, *variable, session.state.rank), [&](int64_t first, int64_t count) {
      piece.resize(static_cast<size_t>(count));
      session.read(pieceOf(*variable, first, count), piece.data());
      pass(*session.ranks, 0, piece, /*sends=*/true, variable->name);
    });
  }
}

void withShares(Session &session, const Program &program, const std::function<void()> &work) {
  if (session.state.rank > 0)
    return session.sharesStates ? answer(session, program) : void();
  work();
  if (session.sharesStates && session.ranks)
    ask(session, nothingMore, nullptr);
}

/// A file's checksum is of all bytes, so that those of other ranks are read as well. What a slot has behind the share
/// is 0: updates may take it along.
void writeSaved(Session &session, const Variable &variable, const GivePiece &give, bool all) {
  if (!variable.whole.present)
    return writeTensor(session, variable.tensor, give);
  std::vector<float> piece;
  for (int rank = 0; rank < session.state.ranks; ++rank) {
    const Share share = shareOf(session, variable, rank);
    const bool isOwn = rank == session.state.rank;
    forEachPiece(all || isOwn ? share : Share{0, 0}, [&](int64_t first, int64_t count) {
      piece.resize(static_cast<size_t>(count));
      give(static_cast<size_t>(share.first + first) * sizeof(float), piece.data(), piece.size() * sizeof(float));
      if (isOwn)
        session.write(pieceOf(variable, first, count), piece.data());
    });
  }
  const int64_t own = shareOf(session, variable, session.state.rank).count;
  forEachPiece({0, variable.tensor.shape.elements() - own}, [&](int64_t first, int64_t count) {
    piece.assign(static_cast<size_t>(count), 0);
    session.write(pieceOf(variable, own + first, count), piece.data());
  });
}

} // namespace sluice
