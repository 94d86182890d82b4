// SPDX-License-Identifier: Apache-2.0
// The loop: one step after another until --steps or --epochs is reached, with everything that happens between steps:
// log, progress, checkpoints, evaluation, the first step's gradients, the trace.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/Arguments.h"
#include "runtime/program/Checkpoint.h"
#include "runtime/program/EventFile.h"
#include "runtime/program/Log.h"
#include "runtime/program/Metrics.h"
#include "runtime/program/Prompts.h"
#include "runtime/program/Trace.h"

#include <memory>
#include <vector>

namespace sluice {

/// What a run reads and writes. Opened, or tried, before memory is allocated: a path that cannot be written should not
/// end a run that took hours.
struct TrainingFiles {
  /// `run`: where it begins. `weights`: what else the run reads.
  TrainingFiles(const Arguments &arguments, const Program &program, const Entry &entry, const RunState &run,
                const std::vector<std::string> &weights = {});

  std::unique_ptr<Dataset> training, evaluation, prediction; ///< null when not asked for
  std::unique_ptr<Prompts> prompts;                          ///< likewise
  std::unique_ptr<MetricChoice> metrics;                     ///< of the evaluation
  ClassNames classes;                                        ///< what they are called, as far as it is known
  bool readsTable = false;                                   ///< any of the three
  std::string knownColumns;                                  ///< of a table that is trained on, or of the weights
  std::string maskValues;                                    ///< likewise of masks, see Preparation
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

private:
  void openData(const Arguments &arguments, const Program &program, uint64_t seed);
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
