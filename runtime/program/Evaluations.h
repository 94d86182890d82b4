// SPDX-License-Identifier: Apache-2.0
// All that follows from --evaluate in a run: when it is done, what is printed, logged and drawn of it, which checkpoint
// is the best, and whether training should end.
#pragma once

#include "runtime/program/Checkpoint.h"
#include "runtime/program/Evaluate.h"
#include "runtime/program/Selection.h"
#include "runtime/program/Training.h"

namespace sluice {

class CheckpointWriter;
class RunReport;

class Evaluations {
public:
  /// `report` and `checkpoints`: null where none are asked for. Reads what --best a resumed run goes on from.
  Evaluations(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
              TrainingFiles &files, RunReport *report, CheckpointWriter *checkpoints);

  /// Whether the step that has just ended is followed by an evaluation.
  bool isDue(int64_t step, bool epochEnds) const;
  /// Evaluates, unless this step was; overwrites both batch slots. A signal may end it without a result.
  void run(const RunState &state);
  /// --patience is at its end.
  bool isOver() const { return selection && selection->isOver(); }
  std::string whyOver() const { return selection->whyOver(); }

private:
  void tell(const RunState &state, const Evaluation &result);
  void keepBest(const RunState &state, const Evaluation &result);

  Session &session;
  const Program &program;
  const Entry &entry;
  const Arguments &arguments;
  TrainingFiles &files;
  RunReport *report;
  CheckpointWriter *checkpoints;
  std::optional<Selection> selection;
  int64_t evaluatedStep = -1;
};

} // namespace sluice
