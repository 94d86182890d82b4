// SPDX-License-Identifier: Apache-2.0
// The streams of a step, in one table: the IR, the planner, generated programs and both runtimes go through it.
// A new stream is a row here and in ir/SchedDialect.td, a member of Session, and the code that runs on it.
// Standard library only.
#pragma once

#include <array>

namespace sluice {

/// A stream is a queue of work that runs in order, beside the other streams.
enum class StreamId { Compute, ToHost, ToDevice, Codec };

/// What a stream carries: kernels, copies from the device, copies to the device, or kernels that pack and unpack beside
/// those of the step.
enum class StreamWork { Kernels, CopiesOut, CopiesIn, Codecs };

struct StreamFacts {
  StreamId id;
  const char *name;   ///< in IR, plans and messages
  const char *label;  ///< in traces and reports
  const char *member; ///< of Session, as generated programs write it
  StreamWork work;
  /// Cuda: the stream has the greatest priority, because its kernels are few blocks that would wait for those of a
  /// kernel that fills the device. Host: see leaveRunningThreadsAlone() in host/Stream.cpp.
  bool urgent;
};

/// In the order of the enumerators. Compute is first: programs begin and end on it.
constexpr StreamFacts streamTable[] = {
    {StreamId::Compute, "compute", "compute", "compute", StreamWork::Kernels, false},
    {StreamId::ToHost, "d2h", "to host", "toHost", StreamWork::CopiesOut, true},
    {StreamId::ToDevice, "h2d", "to device", "toDevice", StreamWork::CopiesIn, true},
    {StreamId::Codec, "codec", "codec", "codec", StreamWork::Codecs, true},
};
constexpr int streamCount = sizeof(streamTable) / sizeof(streamTable[0]);

constexpr int indexOf(StreamId stream) { return static_cast<int>(stream); }
constexpr const StreamFacts &factsOf(StreamId stream) { return streamTable[indexOf(stream)]; }

/// Something of each stream, each `value` at first.
template <typename T> constexpr std::array<T, streamCount> forEachStream(T value) {
  std::array<T, streamCount> all{};
  for (T &one : all)
    one = value;
  return all;
}

constexpr bool streamTableIsInOrder() {
  for (int i = 0; i < streamCount; ++i)
    if (indexOf(streamTable[i].id) != i)
      return false;
  return streamTable[0].work == StreamWork::Kernels;
}
static_assert(streamTableIsInOrder(), "streamTable follows StreamId, and compute comes first");

} // namespace sluice
