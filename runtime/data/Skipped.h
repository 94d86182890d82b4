// SPDX-License-Identifier: Apache-2.0
// --on-bad-data=skip: the first ten of what is left out are told, all are counted.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace sluice {

/// Hears of a sample that is left out, on any thread; null: standard error does.
using Tell = std::function<void(const std::string &line)>;

class Skipped {
public:
  /// `from`: of which data, as "training data"; empty: what is noted says it.
  explicit Skipped(Tell tell, std::string from = "") : tell(std::move(tell)), from(std::move(from)) {}
  /// Any thread.
  void note(const std::string &what);
  int64_t count() const { return noted; }
  /// How many there were, unless each was told.
  void sayHowMany(const std::string &of) const;

private:
  void say(const std::string &line) const;

  const Tell tell;
  const std::string from;
  std::mutex mutex;
  int64_t noted = 0;
};

/// ", 3 bad ones left out"; empty for none.
std::string leftOutText(int64_t count);

} // namespace sluice
