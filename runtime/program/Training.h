// SPDX-License-Identifier: Apache-2.0
// The loop: one step after another until --steps or --epochs is reached, with everything that happens between steps:
// log, progress, checkpoints, evaluation, the first step's gradients, the trace.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/Arguments.h"
#include "runtime/program/Checkpoint.h"
#include "runtime/program/DataSets.h"
#include "runtime/program/EventFile.h"
#include "runtime/program/Log.h"
#include "runtime/program/Prompts.h"
#include "runtime/program/Trace.h"

#include <memory>
#include <vector>

namespace sluice {

/// What a run reads and writes. Opened, or tried, before memory is allocated: a path that cannot be written should not
/// end a run that took hours.
struct TrainingFiles : DataSets {
  /// `run`: where it begins. `weights`: what else the run reads.
  TrainingFiles(const Arguments &arguments, const Program &program, const Entry &entry, const RunState &run,
                const std::vector<std::string> &weights = {});

  std::unique_ptr<Prompts> prompts; ///< null when not asked for
  Log log;
  EventFile events;

  /// Bad samples that were left out, for the log and for whoever reads.
  void describeSkipped(LogFields &fields) const;
  void printSkipped() const;
  /// To TensorBoard: what of the log's start says how the run trains, and the flags that it does not have.
  void tellHyperparameters(const LogFields &start, const Arguments &arguments);
  /// How values are taken where files do not say it, each once; to standard error, under the program's name, what is
  /// probably wrong.
  void printNotes(const std::string &name) const;
};

/// What the first steps of a run took, the very first left out.
struct Recording {
  std::vector<OpRecord> records;
  int64_t steps = 0;
  double stepSeconds = 0; ///< the median of theirs
};

/// Trains from `run` on (not at all without --data), evaluates, predicts and generates. Records when a profile or the
/// roofline was asked for.
Recording train(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
                TrainingFiles &files, RunState run);

} // namespace sluice
