// SPDX-License-Identifier: Apache-2.0
// The streams of a step and the arenas that they work on, in two tables: the IR, the planner, generated programs and
// both runtimes go through them. A new stream is an enumerator and a row here and in ir/SchedDialect.td, a member of
// Session, and the code that runs on it; a new arena likewise, with its size in ArenaSizes. Standard library only.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice {

/// A stream is a queue of work that runs in order, beside the other streams.
enum class StreamId { Compute, ToHost, ToDevice, Codec, Storage, Communication, Home };

/// What a stream carries: kernels, copies between the device and another arena, kernels that pack and unpack beside
/// those of the step, what all ranks compute together: one stream has all of that, so that they meet in one order; or
/// kernels that threads of the host run on what is at home in host memory. Which copies are whose, arenaTable says.
enum class StreamWork { Kernels, Copies, Codecs, Collectives, HostKernels };

struct StreamFacts {
  StreamId id;
  const char *name;   ///< in IR, plans and messages
  const char *label;  ///< in traces and reports
  const char *member; ///< of Session, as generated programs write it
  StreamWork work;
  /// Cuda alone: the stream has the greatest priority, because its kernels are few blocks that would wait for those of
  /// a kernel that fills the device; a graph's kernels inherit it. The host's runtime does not read it: there, what
  /// runs on a stream for Copies or Codecs yields to what runs on others (leaveRunningThreadsAlone() in
  /// host/Stream.cpp). The planner's simulator knows no priorities.
  bool urgent;
};

/// In the order of the enumerators. Compute is first: programs begin and end on it.
constexpr StreamFacts streamTable[] = {
    {StreamId::Compute, "compute", "compute", "compute", StreamWork::Kernels, false},
    {StreamId::ToHost, "d2h", "to host", "toHost", StreamWork::Copies, true},
    {StreamId::ToDevice, "h2d", "to device", "toDevice", StreamWork::Copies, true},
    {StreamId::Codec, "codec", "codec", "codec", StreamWork::Codecs, true},
    {StreamId::Storage, "storage", "storage", "storage", StreamWork::Copies, false},
    {StreamId::Communication, "comm", "communication", "communication", StreamWork::Collectives, false},
    {StreamId::Home, "home", "updates at home", "home", StreamWork::HostKernels, false},
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

/// A new enumerator stops the switch from compiling (-Wswitch), and then, as the last one, the assertion below.
constexpr bool isLast(StreamId stream) {
  switch (stream) {
  case StreamId::Compute:
  case StreamId::ToHost:
  case StreamId::ToDevice:
  case StreamId::Codec:
  case StreamId::Storage:
  case StreamId::Communication:
    return false;
  case StreamId::Home:
    return true;
  }
  return false;
}
constexpr bool streamTableIsInOrder() {
  for (int i = 0; i < streamCount; ++i)
    if (indexOf(streamTable[i].id) != i)
      return false;
  return streamTable[0].work == StreamWork::Kernels && isLast(streamTable[streamCount - 1].id);
}
static_assert(streamTableIsInOrder(), "a row for each StreamId, in their order, and compute comes first");

/// Device: the arena whose tensors kernels compute on; --memory-budget limits it, together with Host where both are one
/// memory. Host: the second arena, which --host-budget limits: locked memory on cuda, memory or a mapped file
/// (--offload-to) on the host. Spill: a slot for each tensor of a pool, for what the pool has no room for: in a mapped
/// file on the host, if there is one; offsets without memory on cuda. Storage: a file that copies read and write at
/// offsets, of the host runtime alone. Tensors of Spill and Storage have no address (Stream::address()).
enum class Space : uint8_t { Device, Host, Spill, Storage };

/// How copies to an arena pack. Whole: with any codec of floats, the tensor in one piece. Pieces: some thousands of
/// elements at a time, so that no packed tensor lies in memory, with codecs that can do so; what zvc leaves out is not
/// written, either.
enum class Packs : uint8_t { Nothing, Whole, Pieces };

/// Where tensors lie. What is in no arena of kernels is copied there and back.
struct ArenaFacts {
  Space space;
  const char *name;             ///< in IR, plans, profiles and messages
  const char *label;            ///< in reports
  StreamId out, in;             ///< that copy from the device to the arena, and back; Compute: nothing does
  const char *copyOut, *copyIn; ///< functions of the runtime that do (Stream.h), as generated programs call them; where
                                ///< it packs, with overloads that take a codec (Codec.h)
  bool isHome;                  ///< a plan may keep there what it offloads
  Packs packs;                  ///< on the way, see packsFor() in CodecTable.h
  bool onCuda;                  ///< programs of that target can have it
};

/// In the order of the enumerators.
constexpr ArenaFacts arenaTable[] = {
    {Space::Device, "device", "device memory", StreamId::Compute, StreamId::Compute, "", "", false, Packs::Nothing,
     true},
    {Space::Host, "host", "host memory", StreamId::ToHost, StreamId::ToDevice, "copyToHost", "copyToDevice", true,
     Packs::Whole, true},
    {Space::Spill, "spill", "what a pool spills", StreamId::ToHost, StreamId::ToDevice, "copyToHost", "copyToDevice",
     false, Packs::Whole, true},
    {Space::Storage, "storage", "storage", StreamId::Storage, StreamId::Storage, "copyToStorage", "copyFromStorage",
     true, Packs::Pieces, false},
};
constexpr int arenaCount = sizeof(arenaTable) / sizeof(arenaTable[0]);

constexpr int indexOf(Space space) { return static_cast<int>(space); }
constexpr const ArenaFacts &factsOf(Space space) { return arenaTable[indexOf(space)]; }

/// The arena of that name, if plans may keep there what they offload; else the device's.
constexpr Space homeOf(std::string_view name) {
  for (const ArenaFacts &facts : arenaTable)
    if (facts.isHome && name == facts.name)
      return facts.space;
  return Space::Device;
}

/// As isLast() of streams.
constexpr bool isLast(Space space) {
  switch (space) {
  case Space::Device:
  case Space::Host:
  case Space::Spill:
    return false;
  case Space::Storage:
    return true;
  }
  return false;
}
constexpr bool arenaTableIsInOrder() {
  for (int i = 0; i < arenaCount; ++i)
    if (indexOf(arenaTable[i].space) != i)
      return false;
  return isLast(arenaTable[arenaCount - 1].space);
}
static_assert(arenaTableIsInOrder(), "a row for each Space, in their order");

} // namespace sluice
