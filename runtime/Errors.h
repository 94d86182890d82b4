// SPDX-License-Identifier: Apache-2.0
// How a generated program fails: one exception type per exit status, caught in run(). Memory that cannot be had (3) is
// MemoryNotAvailable of runtime/Stream.h; every other exception is an internal error (4).
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace sluice {

/// Exit status 1: a data, weight or checkpoint file that cannot be read or written, or does not fit this program.
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Exit status 2: a command line that makes no sense.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Exit status 5.
struct LossNotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Text of all parts, one after the other.
template <typename... Parts> std::string text(const Parts &...parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

} // namespace sluice
