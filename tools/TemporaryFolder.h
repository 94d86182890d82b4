// SPDX-License-Identifier: Apache-2.0
// A folder beside an output, in which the output is made before it is moved to its place.
#pragma once

#include <filesystem>
#include <string>

namespace sluice {

/// The folder is removed with everything in it at the end of its life, and when a signal or a crash ends the process,
/// together with the compiler that works in it; what a process that could do neither left beside it is removed by the
/// next one. One at a time.
class TemporaryFolder {
public:
  explicit TemporaryFolder(const std::filesystem::path &output);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::filesystem::path folder; ///< empty: could not be made
  std::string reason;           ///< why not, as the system says it

private:
  bool make(const std::filesystem::path &parent);

  int lock = -1; ///< held on the folder, by which others know that it is in use
};

} // namespace sluice
