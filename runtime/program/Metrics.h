// SPDX-License-Identifier: Apache-2.0
// What --evaluate measures besides the loss, on the CPU, from the model's output and the targets of each batch; which
// of it means something to a program, and what --metrics asks for. docs/metrics.md defines each.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/Log.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

enum class Metric { Loss, Accuracy, Top5, Perplexity, MeanIou, Mae, Confusion };

/// "mean_iou", as --metrics, --best and the log call it.
const char *metricName(Metric metric);
/// Whether more of it is better.
bool moreIsBetter(Metric metric);

/// How a program's output and its target lie to one another.
struct Scores {
  int64_t classes = 0; ///< 0: the target holds numbers, not classes
  int64_t inner = 1;   ///< answers between two scores of one answer
  int64_t answers = 0; ///< of a batch
  int64_t ignoreIndex = Loss::none;
};
/// Nothing where the program's output is not there or cannot be compared with its target.
std::optional<Scores> scoresOf(const Program &program);

/// The metrics of a run. Loss is always the first.
class MetricChoice {
public:
  /// `words`: --metrics, comma-separated; without it what fits loss and shapes. Throws UsageError for a word that is no
  /// metric or means nothing to this program.
  MetricChoice(const Program &program, const std::optional<std::string> &words);

  const std::vector<Metric> &all() const { return metrics; }
  bool has(Metric metric) const;
  /// Whether any of them needs the output of each batch: what Tally adds up.
  bool readsOutput() const;
  /// The metric of this name. Throws UsageError, saying which flag wants it, when it is no number or not chosen.
  Metric find(const std::string &flag, const std::string &name) const;

private:
  std::vector<Metric> metrics;
};

using Confusion = std::vector<std::vector<int64_t>>;

/// Sums over the samples of an evaluation.
class Tally {
public:
  Tally(const Program &program, const MetricChoice &choice);

  /// The first `samples` samples of the batch that evaluate has just left, whose target lies in the slot of the current
  /// batch. Copies both from the device, a few megabytes at a time.
  void add(Session &session, int64_t samples);

  /// Of the chosen metrics those that are found here; nothing is counted: none.
  std::map<Metric, double> results() const;
  /// Rows are what is right, columns what was answered.
  const Confusion &confusion() const { return counts; }

private:
  void addClasses(const float *output, const int64_t *target, int64_t samples);
  void addNumbers(const float *output, const float *target, int64_t elements);

  const Program &program;
  const MetricChoice &choice;
  Scores scores;
  Confusion counts;
  int64_t answered = 0, amongFive = 0, numbers = 0;
  double absolute = 0;
};

/// What a class is called: its number where there is no name for it.
std::string className(const std::vector<std::string> &names, size_t number);

/// Lines of a table for people, with the classes' names or numbers; empty for more classes than a screen has room for.
std::string confusionText(const Confusion &counts, const std::vector<std::string> &names);

} // namespace sluice
