// SPDX-License-Identifier: Apache-2.0
// What --evaluate measures besides the loss, on the CPU, from the model's output and the targets of each batch; which
// of it means something to a program, and what --metrics asks for. docs/metrics.md defines each.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/ClassMetrics.h"
#include "runtime/program/Log.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

enum class Metric { Loss, Accuracy, Top5, Perplexity, MeanIou, Precision, Recall, F1, Auc, Mae, R2, Confusion };

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
  /// Throws UsageError for a data set of so many samples that there is no room for what a metric keeps of each.
  void checkRoom(const Program &program, int64_t samples) const;
  /// The metric of this name. Throws UsageError, saying which flag wants it, when it is no number or not chosen.
  Metric find(const std::string &flag, const std::string &name) const;

  /// No kernel of the program counts right answers for the accuracy, so that Tally does.
  bool countsAnswers = false;

private:
  void choose(const Program &program, const std::optional<std::string> &words);

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
  /// Of each class or label, where precision, recall or F1 was chosen.
  const std::vector<Hits> &classHits() const { return hits; }

private:
  void addClasses(const float *output, const int64_t *target, int64_t samples);
  void addNumbers(const float *output, const float *target, int64_t elements);
  void addLabels(const float *output, const float *target, int64_t samples);

  const Program &program;
  const MetricChoice &choice;
  Scores scores;
  Confusion counts;
  int64_t answered = 0, rightly = 0, amongFive = 0, numbers = 0;
  double absolute = 0;
  std::vector<Hits> hits; ///< empty unless wanted
  std::optional<RocArea> area;
  std::optional<RSquared> squares;
};

/// What a class is called: its number where there is no name for it.
std::string className(const std::vector<std::string> &names, size_t number);

/// Whether precision, recall or F1 is among them.
bool countsHits(const MetricChoice &choice);

/// A line for each class or label with its precision, recall and F1; empty for more than a screen has room for.
std::string hitsText(const std::vector<Hits> &hits, const std::vector<std::string> &names);

/// Lines of a table for people, with the classes' names or numbers; empty for more classes than a screen has room for.
std::string confusionText(const Confusion &counts, const std::vector<std::string> &names);

} // namespace sluice
