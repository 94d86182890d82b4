// SPDX-License-Identifier: Apache-2.0
// --report: what a run was like, collected while it goes on in little memory, and written as one page at its end.
#pragma once

#include "runtime/program/Evaluate.h"
#include "runtime/program/Report.h"
#include "runtime/program/ReportPage.h"

#include <string>
#include <vector>

namespace sluice {

/// A curve of any length in few points: when there are too many, every second one goes, and of those to come too.
class ThinnedCurve {
public:
  void add(double x, double y);
  const ReportPoints &points() const { return kept; }

private:
  static constexpr size_t most = 4000;
  ReportPoints kept;
  size_t stride = 1, seen = 0;
};

/// One step of a run, as the log, TensorBoard and the report have it.
struct StepFacts {
  int64_t step;
  double loss, learningRate, seconds, samplesPerSecond;
  std::vector<std::pair<std::string, double>> parts = {}; ///< losses of a sum, by their names
  bool isOfTurn = false; ///< the loss is one of the parts, by its turn's name, and no point of a curve of all steps

  /// As TensorBoard has them.
  std::vector<std::pair<std::string, double>> scalars() const;
};

class RunReport {
public:
  void addStep(const StepFacts &facts);
  void addEvaluation(int64_t step, const Evaluation &result);
  /// What a step took, op by op; the last one given is drawn.
  void setTimeline(std::vector<OpRecord> records) { timeline = std::move(records); }

  /// Throws DataError. `command`: how the run was started; `classes`: their names; `actions` as measured, see
  /// measureActions().
  void write(const std::string &path, const Program &program, const Session &session, const std::string &command,
             const ClassNames &classes, const StepTimes &times, const std::vector<MeasuredAction> &actions) const;

private:
  void addFacts(Report &report, const Program &program, const Session &session, const std::string &command,
                const ClassNames &classes, const StepTimes &times) const;
  void addEvaluations(Report &report, const Program &program, const ClassNames &all) const;
  void addConfusions(Report &report, const Program &program, const ClassNames &all) const;
  void addCurves(Report &report, double predicted) const;
  void addMemory(Report &report, const Program &program, const Session &session) const;
  void addTimeline(Report &report) const;

  ThinnedCurve loss, learningRate, milliseconds, resident;
  std::map<std::string, ThinnedCurve> parts; ///< losses of a sum
  std::map<Measure, ReportPoints> evaluated;
  std::map<std::string, Confusion> confusions; ///< by the labels of outputs
  std::map<std::string, std::vector<Hits>> hits;
  int64_t evaluatedSamples = 0;
  std::vector<OpRecord> timeline;
};

} // namespace sluice
