// SPDX-License-Identifier: Apache-2.0
// --on-bad-data=skip: the first ten of what is left out are told on standard error, all are counted.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

namespace sluice {

class Skipped {
public:
  /// `from`: of which data, as "training data"; empty: what is noted says it.
  explicit Skipped(std::string from = "") : from(std::move(from)) {}
  /// Any thread.
  void note(const std::string &what);
  int64_t count() const { return noted; }
  /// How many there were, unless each was told.
  void sayHowMany(const std::string &of) const;

private:
  const std::string from;
  std::mutex mutex;
  int64_t noted = 0;
};

/// ", 3 bad ones left out"; empty for none.
std::string leftOutText(int64_t count);

} // namespace sluice
