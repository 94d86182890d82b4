// SPDX-License-Identifier: Apache-2.0
// What the program says about its memory and time: the exact bytes before it allocates, the plan, the comparison of
// prediction and measurement at the end.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/Arguments.h"
#include "runtime/program/Dataset.h"
#include "runtime/program/Log.h"

#include <string>
#include <vector>

namespace sluice {

/// "4194304 bytes (4.0 MiB)".
std::string bytesText(size_t bytes);
/// "1.2 MiB"
std::string sizeText(size_t bytes);

/// The bytes that are going to be allocated, printed before they are.
void announceMemory(const Program &program);

/// On standard error, of a step that has a batch without a target that counts.
void warnOfEmptyBatch(const std::string &name, const Program &program, int64_t step);

/// The memory plan as a table.
void printPlan(const Program &program);

/// What an epoch leaves out, and whether there is anything to do after the step that is done; each step
/// has batches of so many ranks.
void printWhatIsTrained(const Program &program, const Dataset &data, const Arguments &arguments, int64_t done,
                        int64_t last, int64_t ranks);

/// How long steps took, in order, the first one included. Each has so many batches of each
/// rank, where a program's own prediction is of one.
struct StepTimes {
  std::vector<double> seconds;
  int64_t batches = 1, ranks = 1;

  /// The first step is left out when there are others: it pays for page faults. 0 without any.
  double median() const;
  /// Of so many at the start, more than one.
  double medianOf(size_t first) const;
  double predicted(const Program &program) const;
  double samplesPerSecond(const Program &program) const;
};

/// Printed after the last step.
void printReport(const Program &program, const Session &session, const StepTimes &times);

/// What an action of the plan did in a step.
struct MeasuredAction {
  const ActionRow *row;
  size_t movedBytes;
  double seconds;
  double predictedSeconds; ///< of a step, too, where the row's are of a batch
};
/// Of each action, from `records` of `steps` steps with `batches` each; of none without records.
std::vector<MeasuredAction> measureActions(const Program &program, const std::vector<OpRecord> &records, int64_t steps,
                                           int64_t batches);

/// What each action was predicted to cost a step and what it did; what zvc saved in `allSteps`.
void printActions(const Program &program, const Session &session, const std::vector<MeasuredAction> &actions,
                  int64_t allSteps);

/// The same for the log: bytes touched and times, of a run of `steps` steps.
LogFields endFields(const Program &program, const Session &session, int64_t steps, const StepTimes &times);

/// The most memory that this process ever had resident, 0 where the system does not say.
size_t residentPeak();
/// What it has now, 0 where the system does not say.
size_t residentNow();

} // namespace sluice
