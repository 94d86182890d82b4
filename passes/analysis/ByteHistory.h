// SPDX-License-Identifier: Apache-2.0
// What happened last to every byte of the arenas, for verify-schedule: pieces of bytes with one history each, split
// where an access begins or ends. A write makes its bytes one piece again, so that all accesses together cost little
// more than their number.
#pragma once

#include "passes/analysis/Replay.h"

#include <map>
#include <vector>

namespace sluice {

/// Accesses are named by their index in Replay::accesses and are told in issue order. Only the last write of a byte and
/// the last read of each stream since then are kept: what comes before those is ordered before them already.
class ByteHistory {
public:
  /// Bytes of one history. Where they begin is the key under which the piece is kept.
  struct Piece {
    int64_t end;
    int write = -1;                                         ///< access that wrote last, -1: none
    std::array<int, streamCount> reads = forEachStream(-1); ///< since then, the last of each stream

    /// What an access of these bytes has to come after.
    llvm::SmallVector<int, 5> since(bool writes) const {
      llvm::SmallVector<int, 5> list;
      if (write >= 0)
        list.push_back(write);
      for (int read : reads)
        if (writes && read >= 0)
          list.push_back(read);
      return list;
    }
  };

  /// The pieces that make up the extent; valid until the next call.
  std::vector<Piece *> pieces(const Extent &bytes) {
    auto &list = spaces.try_emplace(bytes.space, Pieces{{0, {std::numeric_limits<int64_t>::max()}}}).first->second;
    split(list, bytes.end);
    std::vector<Piece *> found;
    for (auto at = split(list, bytes.begin); at != list.end() && at->first < bytes.end; ++at)
      found.push_back(&at->second);
    return found;
  }

  void read(const Extent &bytes, int stream, int access) {
    for (Piece *piece : pieces(bytes))
      piece->reads[stream] = access;
  }

  void write(const Extent &bytes, int access) {
    pieces(bytes);
    Pieces &list = spaces.at(bytes.space);
    list.erase(list.lower_bound(bytes.begin), list.lower_bound(bytes.end));
    list[bytes.begin] = Piece{bytes.end, access};
  }

private:
  using Pieces = std::map<int64_t, Piece>; ///< by the first byte

  /// The piece that begins at `at`, which is not negative.
  static Pieces::iterator split(Pieces &list, int64_t at) {
    auto piece = std::prev(list.upper_bound(at));
    if (piece->first == at || piece->second.end <= at)
      return piece->first == at ? piece : list.end();
    Piece rest = piece->second;
    piece->second.end = at;
    return list.emplace(at, rest).first;
  }

  std::map<sched::Space, Pieces> spaces;
};

} // namespace sluice
