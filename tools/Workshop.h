// SPDX-License-Identifier: Apache-2.0
// A folder beside an output, in which the output is made before it is moved to its place.
#pragma once

#include <filesystem>

namespace sluice {

/// The folder is removed with everything in it at the end of its life, when SIGINT, SIGTERM or SIGHUP ends the process, and
/// when a crash does. One at a time.
class Workshop {
public:
  explicit Workshop(const std::filesystem::path &output);
  ~Workshop();
  Workshop(const Workshop &) = delete;
  Workshop &operator=(const Workshop &) = delete;

  std::filesystem::path folder; ///< empty: could not be made
};

} // namespace sluice
