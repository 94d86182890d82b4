// SPDX-License-Identifier: Apache-2.0
// --log: one JSON object a line, written through at once, so that a run that dies leaves its log up to the last step.
// Events: start, step, evaluate, end. A loss that is not finite is null.
#pragma once

#include "runtime/Program.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sluice {

/// Of what events mean, which write() adds to each `start`. Rises when an event or a field changes its meaning; what
/// only adds something keeps it. Logs without one are of version 1.
inline constexpr int64_t logVersion = 1;

/// An ordered JSON object of plain values, lists of words or numbers, or tables of counts.
using LogValue = std::variant<int64_t, uint64_t, double, bool, std::string, std::vector<std::string>,
                              std::vector<double>, std::vector<std::vector<int64_t>>>;
using LogFields = std::vector<std::pair<std::string, LogValue>>;

class Log {
public:
  /// No file: nothing is written.
  Log() = default;
  ~Log();
  Log(const Log &) = delete;
  Log &operator=(const Log &) = delete;

  /// A run that goes on: the log of its first part stays.
  struct Resumed {
    std::string model;
    uint64_t seed = 0;
    int64_t step = 0;           ///< done by the first part
    bool trains = false;        ///< what the log says of later steps is replaced
    bool evaluationDue = false; ///< so is the evaluation after that step
  };

  /// A former log of that name is kept until the first event, and then lost, but for that of the run that goes on (same
  /// model and seed, a line of the step that it goes on from): of that all up to this step. Throws DataError when
  /// another program writes to the file, or when it is a pipe that nobody reads; and at the first event for a log of a
  /// later version.
  void open(const std::string &path, const std::optional<Resumed> &resumed = std::nullopt);
  /// Throws DataError when the line cannot be written, on a full disk for example.
  void write(const char *event, const LogFields &fields);

private:
  void begin() const;

  std::string path;
  int descriptor = -1;
  std::optional<Resumed> resumed;
  bool begun = false;
};

/// The number whose decimal form is the shortest that reads back as this float: 0.01 instead of 0.009999999776482582.
double shortest(float value);

/// Decimal digits that read back as the same number.
std::string exactText(double value);

/// A string as JSON, with its quotes. Bytes that are not UTF-8 are replaced.
std::string jsonString(const std::string &value);

} // namespace sluice
