// SPDX-License-Identifier: Apache-2.0
// Writes records and waits, and leaves out those that the clocks show to be implied.
#include "passes/analysis/StreamClocks.h"

using namespace mlir;
using namespace sluice;
using sched::Stream;

static int &at(StreamClocks::Clock &clock, Stream stream) { return clock[static_cast<int>(stream)]; }

/// A stream knows where it is itself, of others nothing yet.
StreamClocks::StreamClocks(OpBuilder &b) : b(b) {
  for (int s = 0; s < streamCount; ++s) {
    known[s].fill(-1);
    known[s][s] = 0;
  }
}

void StreamClocks::issued(Stream stream) {
  waitsInGap[static_cast<int>(stream)].clear();
  ++at(of(stream), stream);
}

StreamClocks::Recorded StreamClocks::record(Location loc, Stream stream, const Twine &name) {
  waitsInGap[static_cast<int>(stream)].clear(); // what waits for this record relies on the waits before it
  auto op = sched::RecordOp::create(b, loc, b.getType<sched::EventType>(), stream, b.getStringAttr(name));
  const Recorded recorded{op, of(stream)};
  if (stream == Stream::Compute)
    lastCompute = recorded;
  return recorded;
}

/// Makes no wait that the stream's clock already has, and takes back those of the same gap that the new one implies:
/// each wait costs a call in every step.
void StreamClocks::wait(Location loc, Stream stream, Recorded recorded) {
  const Stream other = recorded.op.getStream();
  Clock &mine = of(stream);
  Clock theirs = recorded.clock;
  if (stream == other || at(mine, other) >= at(theirs, other))
    return;
  // An earlier wait in the same gap between two ops of this stream may say less than this one.
  auto &gap = waitsInGap[static_cast<int>(stream)];
  llvm::erase_if(gap, [&](auto &earlier) {
    const Clock clock = earlier.second;
    const bool implied = llvm::all_of(llvm::seq(0, streamCount), [&](int s) { return clock[s] <= theirs[s]; });
    if (implied)
      earlier.first.erase();
    return implied;
  });
  gap.push_back({sched::WaitOp::create(b, loc, stream, recorded.op.getEvent()), theirs});
  for (int s = 0; s < streamCount; ++s)
    mine[s] = std::max(mine[s], theirs[s]);
  ++at(mine, stream); // a later record of this stream says more than one before the wait
}

void StreamClocks::waitForCompute(Location loc, Stream stream, const Twine &name) {
  if (!lastCompute.op || lastCompute.clock != of(Stream::Compute))
    record(loc, Stream::Compute, name);
  wait(loc, stream, lastCompute);
}
