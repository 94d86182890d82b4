// SPDX-License-Identifier: Apache-2.0
// All that follows from --evaluate in a run: when it is done, what is printed, logged and drawn of it, which checkpoint
// is the best, and whether training should end.
#pragma once

#include "runtime/program/Checkpoint.h"
#include "runtime/program/Evaluate.h"
#include "runtime/program/Selection.h"
#include "runtime/program/Training.h"

#include <set>
#include <string>

namespace sluice {

class CheckpointWriter;
class RunReport;

class Evaluations {
public:
  /// `report` and `checkpoints`: null where none are asked for. `from`: where the run stands; a resumed one goes on
  /// with what is the best so far, and with the count of --patience.
  Evaluations(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
              TrainingFiles &files, RunReport *report, CheckpointWriter *checkpoints, const RunState &from);

  /// Whether the step that has just ended is followed by an evaluation.
  bool isDue(int64_t step, bool epochEnds) const;
  /// Evaluates, unless this step was; overwrites both batch slots. Notes in `state` that it is done, and what follows.
  /// A signal may end it without a result.
  void run(RunState &state);
  /// Whether training should stop because --patience is exhausted, and why, once it should.
  bool isOver() const { return selection && selection->isOver(); }
  std::string whyOver() const { return selection->whyOver(); }
  /// For runs that write more than checkpoints of the state of `step`: says which one was better, if any was.
  void tellBetter(int64_t step) const;

private:
  void tell(const RunState &state, const Evaluation &result);
  void tellMissing(const Evaluation &result);
  void tellIncomplete(const Evaluation &result);
  void tellClasses(const Evaluation &result, LogFields &fields) const;
  void select(RunState &state, const Evaluation &result);
  void schedule(RunState &state, const Evaluation &result) const;

  Session &session;
  const Program &program;
  const Entry &entry;
  const Arguments &arguments;
  TrainingFiles &files;
  RunReport *report;
  CheckpointWriter *checkpoints;
  std::optional<Selection> selection;
  std::optional<PlateauRule> plateau; ///< of --schedule
  int64_t evaluatedStep = -1;
  int64_t countedStep = -1;          ///< whose evaluation counted before the run went on from there
  std::set<std::string> toldMissing; ///< metrics that could not be computed
  bool toldIncomplete = false;       ///< what an incomplete batch means to a loss of the model's own
};

} // namespace sluice
