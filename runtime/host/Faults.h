// SPDX-License-Identifier: Apache-2.0
// Fault modes of the host runtime, for tests and for who suspects a race. They are read from the environment when a
// session begins:
//   SLUICE_POISON=1         released bytes become NaN, writes outside the arenas are found
//   SLUICE_DELAY=SEED       half of all tasks of all streams start late by up to half a millisecond, drawn from
//                           (SEED, stream, task)
//   SLUICE_FAULT=hang:N     of the stream of ops the first task from the Nth on never ends
//   SLUICE_FAULT=truncate   the file of --offload-to is cut short once it is there
//   SLUICE_FAULT=processor  the processor lacks what the runtime is compiled for, see Processor.cpp
// None of them may change a bit of what a correct program computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace sluice {

struct Faults {
  bool poison = false, truncate = false;
  std::optional<uint64_t> delaySeed, hangAt;
  static Faults fromEnvironment();
};

/// Sleeps as long as (seed, stream, task) says: half of all tasks not at all.
void delayTask(uint64_t seed, const char *stream, uint64_t task);

/// From now on a page of these bytes that cannot be had (their file was cut short, its disk failed) ends the program
/// with exit status 3 and a message instead of a signal. One range at a time.
void stopOnLostPages(const char *begin, size_t bytes);

} // namespace sluice
