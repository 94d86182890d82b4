// SPDX-License-Identifier: Apache-2.0
// What the machine's copies between device and host reach, and those to a file, for --profile-out and for the
// compiler's own measurement.
#pragma once

#include <optional>
#include <string>

namespace sluice {

/// Bytes per second of one direction alone and of each direction while both run; seconds that compute loses per byte
/// that is copied beside it, which is measured on the host only: there both share cores and memory bus.
struct LinkRates {
  double toHost = 0, toDevice = 0, duplex = 0;
  std::optional<double> contention = std::nullopt;
};

/// Copies between small arenas of its own, and computes beside them; nine samples take about two seconds. Run it when
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
