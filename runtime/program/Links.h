// SPDX-License-Identifier: Apache-2.0
// What the machine's copies between device and host reach, for --profile-out and for the compiler's own measurement.
#pragma once

#include <optional>

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

} // namespace sluice
