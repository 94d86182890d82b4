// SPDX-License-Identifier: Apache-2.0
// --roofline: what each op of a step takes beside what it has to take, as this machine's peaks bound it (S. Williams,
// A. Waterman, D. Patterson, "Roofline", 2009).
#pragma once

#include "runtime/Program.h"
#include "runtime/program/OpTimes.h"
#include "runtime/program/Peaks.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// What ops take, in seconds of a step.
struct RooflineTimes {
  double seconds = 0; ///< measured
  double flops = 0, bytes = 0;
  double arithmetic = 0; ///< `flops` at the machine's peak
  double memory = 0;     ///< `bytes` at the bandwidth that the machine has for so many
  double bound = 0;      ///< the longer of both, of each op

  /// Above what the bound says: what a better kernel could save.
  double lost() const { return std::max(0.0, seconds - bound); }
  void add(const RooflineTimes &other);
};

struct RooflineOp {
  OpTimes measured;
  std::optional<RooflineTimes> times; ///< none where the program does not know what the op does
};

struct Roofline {
  std::vector<RooflineOp> ops; ///< of the compute stream, in the order of the step
  Peaks peaks;
  int64_t steps = 0;      ///< recorded
  double stepSeconds = 0; ///< of one, from its begin to its end

  /// Of all ops.
  RooflineTimes sum() const;
};

/// `records` of so many steps, which took `stepSeconds` each.
Roofline rooflineOf(const Program &program, const std::vector<OpRecord> &records, int64_t steps, double stepSeconds,
                    const Peaks &peaks);

/// A table of all ops, sums over ops of one kind, the step, and the ten ops that lose most.
std::string textOf(const Roofline &roofline);

} // namespace sluice
