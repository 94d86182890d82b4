// SPDX-License-Identifier: Apache-2.0
// What the machine's copies between device and host reach, and those to a file, for --profile-out and for the
// compiler's own measurement.
#pragma once

#include "runtime/CodecTable.h"

#include <map>
#include <optional>
#include <string>

namespace sluice {

/// Bytes per second of one direction alone and of each direction while both run. What follows is measured on the host
/// only, where copies and compute share cores and memory bus: seconds that compute loses per byte that is copied beside
/// it, and per second in which a copy packs beside it (int8); raw bytes per second of copies that pack beside
/// compute, of dense values, by codec.
struct LinkRates {
  double toHost = 0, toDevice = 0, duplex = 0;
  std::optional<double> contention = std::nullopt, packingContention = std::nullopt;
  std::map<Codec, double> codecs = {};
};

/// Copies between small arenas of its own, and computes beside them; nine samples take about three seconds. Run it when
/// the program's arenas are gone.
LinkRates measureLinks(int samples = 9);

/// Of a disk. Bytes per second that last: written until they are on it, and read when no memory holds them; seconds of
/// a read that is too short for either.
struct StorageRates {
  double write = 0, read = 0, latency = 0;
};

/// Writes and reads a file without a name in the folder: as many bytes as the disk takes in 0.3 s, from 16 to 128 MiB.
/// Empty where there can be none.
std::optional<StorageRates> measureStorage(const std::string &folder);

} // namespace sluice
