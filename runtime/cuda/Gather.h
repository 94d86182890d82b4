// SPDX-License-Identifier: Apache-2.0
// The tensors of up to mostGathered kernels of one kind as the argument of one: a kernel of this kind always takes a
// list, which has one piece where nothing is gathered, so that gathering changes no bit.
#pragma once

#include "runtime/Gather.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"

#include <memory>

namespace sluice {

/// Launches that a stream keeps back.
class KeptLaunch {
public:
  virtual ~KeptLaunch() = default;
  virtual void launch(Stream &stream) = 0;
};

/// Of the session's compute stream; others keep nothing back.
struct GatherState {
  bool on = false;
  std::unique_ptr<KeptLaunch> kept; ///< may be null
};
GatherState &gatherState(Session &session);
inline bool gathers(Stream &stream) { return &stream == &stream.session.compute && gatherState(stream.session).on; }
/// Launches what is kept.
void launchKept(Stream &stream);

/// `Piece` has what its kernel wants to know of one tensor. Piece i has the blocks from firstBlock[i] on, each of
/// blockThreads threads that take `elements` elements in turn.
template <typename Piece> struct Pieces {
  static constexpr int64_t elements = 16;

  Piece piece[mostGathered];
  unsigned firstBlock[mostGathered + 1];
  int count;

  bool full() const { return count == mostGathered; }
  unsigned blocks() const { return firstBlock[count]; }
  /// `size` elements.
  void add(const Piece &added, int64_t size) {
    piece[count] = added;
    firstBlock[count + 1] = firstBlock[count] + blocksFor(size, elements * 256);
    ++count;
  }

#if defined(__CUDACC__)
  static_assert(blockThreads == 256, "what add() counts with");
  /// Whose block this is.
  __device__ int own() const {
    int low = 0;
    for (int high = count; high - low > 1;) {
      const int middle = (low + high) / 2;
      if (blockIdx.x >= firstBlock[middle])
        low = middle;
      else
        high = middle;
    }
    return low;
  }
  /// Of the blocks of piece i.
  __device__ int64_t thread(int i) const {
    return (blockIdx.x - firstBlock[i]) * static_cast<int64_t>(blockThreads) + threadIdx.x;
  }
  __device__ int64_t threads(int i) const {
    return (firstBlock[i + 1] - firstBlock[i]) * static_cast<int64_t>(blockThreads);
  }
#endif
};

/// How a kernel of lists is launched.
template <typename Piece>
using LaunchPieces = void (*)(cudaStream_t stream, const Pieces<Piece> &pieces, const DeviceState *state);

template <typename Piece> class KeptPieces : public KeptLaunch {
public:
  KeptPieces(Node node, const char *op, LaunchPieces<Piece> how, const DeviceState *state)
      : how(how), node(node), op(op), state(state), pieces() {}
  void launch(Stream &stream) override {
    stream.launch(pieces.count > 1 ? Node("several nodes", node.role) : node, op,
                  [&] { how(native(stream), pieces, state); });
  }

  const LaunchPieces<Piece> how;
  const Node node;
  const char *op;
  const DeviceState *state;
  Pieces<Piece> pieces;
};

/// Launches the kernel for one piece of `size` elements, or keeps it for a launch of several.
template <typename Piece>
void launchPiece(Stream &stream, Node node, const char *op, LaunchPieces<Piece> how, const Piece &piece, int64_t size) {
  const DeviceState *state = deviceState(stream);
  if (!gathers(stream)) {
    KeptPieces<Piece> alone(node, op, how, state);
    alone.pieces.add(piece, size);
    return alone.launch(stream);
  }
  std::unique_ptr<KeptLaunch> &kept = gatherState(stream.session).kept;
  auto *same = dynamic_cast<KeptPieces<Piece> *>(kept.get());
  if (!same || same->how != how || same->pieces.full()) {
    launchKept(stream);
    kept = std::make_unique<KeptPieces<Piece>>(node, op, how, state);
    same = static_cast<KeptPieces<Piece> *>(kept.get());
  }
  same->pieces.add(piece, size);
}

#if defined(__CUDACC__)

/// Four neighbours, of which `count` exist; 16 bytes at once where all do.
template <typename T> __device__ inline void loadFour(float (&to)[4], const T *from, int64_t count) {
  if (count >= 4)
    return loadVector(to, from);
  for (int i = 0; i < count; ++i)
    to[i] = widened(from[i]);
}
__device__ inline void storeFour(float *to, const float (&from)[4], int64_t count) {
  if (count >= 4)
    return storeVector(to, from);
  for (int i = 0; i < count; ++i)
    to[i] = from[i];
}

#endif

} // namespace sluice
