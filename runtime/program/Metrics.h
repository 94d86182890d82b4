// SPDX-License-Identifier: Apache-2.0
// What --evaluate measures besides the loss, on the CPU, from the model's outputs and the targets of each batch; which
// of it means something to a program, and what --metrics asks for. docs/metrics.md defines each.
#pragma once

#include "runtime/Program.h"
#include "runtime/program/ClassMetrics.h"
#include "runtime/program/Log.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

enum class Metric { Loss, Accuracy, Top5, Perplexity, MeanIou, Precision, Recall, F1, Auc, Mae, R2, Confusion };

/// "mean_iou", as --metrics, --best and the log call it.
const char *metricName(Metric metric);
/// Whether more of it is better.
bool moreIsBetter(Metric metric);

/// A metric of an output; of that which is measured first where `output` is empty.
struct Measure {
  Metric metric;
  std::string output;

  Measure(Metric metric, std::string output = "") : metric(metric), output(std::move(output)) {}
  /// "mean_iou", "masks.mean_iou": as --metrics, --best and the log call it.
  std::string name() const { return output.empty() ? metricName(metric) : output + "." + metricName(metric); }
  bool operator<(const Measure &other) const {
    return std::pair(output, metric) < std::pair(other.output, other.metric);
  }
  bool operator==(const Measure &other) const { return output == other.output && metric == other.metric; }
};

/// Whether a sum of losses is trained, each of which has its own value.
bool hasParts(const Program &program);
/// What an output is called in measures: its name, with its target's where several losses are attached to it; empty for
/// the first one unless a sum of losses is trained.
std::string labelOf(const Program &program, int output);

/// The loss of a turn, or one of its sum by labelOf(), among the measures of all turns.
Measure lossInTurn(const Program &program, int turn, const std::string &label);

/// How an output and its target lie to one another: [N,classes,inner], or [N,labels,inner].
struct Scores {
  int64_t classes = 0; ///< 0: the target holds numbers, not classes
  int64_t labels = 0;  ///< numbers that say yes or no of so many things, of bce-with-logits
  int64_t inner = 1;   ///< answers between two scores of one answer: pixels
  int64_t answers = 0; ///< of a batch
  /// Classes, labels, or else numbers of a sample.
  int64_t kinds(int64_t batch) const { return classes > 0 ? classes : labels > 0 ? labels : answers / batch; }
  int64_t ignoreIndex = Loss::none;
};
/// Nothing where the output is not there or cannot be compared with this input.
std::optional<Scores> scoresOf(const Program &program, const Output &output, int target);
/// Of the first output and its own target.
std::optional<Scores> scoresOf(const Program &program);

/// An output that is measured, and by what.
struct MeasuredOutput {
  int output, target;
  std::string label; ///< see labelOf()
  std::vector<Metric> metrics = {};
  bool countsAnswers = false; ///< no kernel of the program counts right answers for the accuracy, so that Tally does

  bool has(Metric metric) const { return std::count(metrics.begin(), metrics.end(), metric) > 0; }
  /// Whether any of them follows from how often each class or label was rightly answered.
  bool countsHits() const;
  /// Whether any metric needs the output of each batch.
  bool readsOutput() const;
};

/// The metrics of a run. Loss is always the first.
class MetricChoice {
public:
  /// `words`: --metrics, comma-separated METRIC, OUTPUT.METRIC or either with =INPUT, which says what the output is
  /// compared with; without it what fits losses and shapes. Of turns there are the losses alone. Throws UsageError for
  /// a word that is no metric or means nothing to this program.
  MetricChoice(const Program &program, const std::optional<std::string> &words);

  std::vector<Measure> all() const;
  bool has(const Measure &measure) const;
  /// By outputs, in the program's order.
  const std::vector<MeasuredOutput> &measured() const { return list; }
  /// Whether any of them needs the output of each batch: what Tally adds up.
  bool readsOutput() const;
  /// Throws UsageError for a data set of so many samples that there is no room for what a metric keeps of each.
  void checkRoom(const Program &program, int64_t samples) const;
  /// The metric of this name. Throws UsageError, saying which flag wants it, when it is no number or not chosen.
  Measure find(const std::string &flag, const std::string &name) const;

private:
  void takeUsual();
  void take(const std::string &word);
  void add(int output, int target, Metric metric);

  const Program &program;
  std::vector<MeasuredOutput> list;
};

using Confusion = std::vector<std::vector<int64_t>>;
/// Sums over the samples of an evaluation, for one output.
class OutputTally {
public:
  OutputTally(const Program &program, const MeasuredOutput &measured);

  void add(Session &session, const Program &shape, int64_t samples);
  std::map<Measure, double> results() const;

private:
  friend class Tally;
  void addClasses(const float *output, const int64_t *target, int64_t samples);
  void addNumbers(const float *output, const float *target, int64_t elements);
  void addLabels(const float *output, const float *target, int64_t samples);
  void addSquares(const float *output, const float *target, int64_t samples);

  const int64_t batch; ///< samples
  const MeasuredOutput &measured;
  const bool probabilities; ///< its numbers are some
  Scores scores;            ///< of the batch's shape
  const float ignored;      ///< number of targets that do not count; a NaN, which none equals: all count
  Confusion counts;
  int64_t answered = 0, rightly = 0, amongFive = 0, numbers = 0;
  double absolute = 0;
  std::vector<Hits> hits; ///< empty unless wanted
  std::optional<RocArea> area;
  std::optional<RSquared> squares;
};

/// For all outputs that are measured.
class Tally {
public:
  /// Both must outlive it.
  Tally(const Program &program, const MetricChoice &choice);

  /// The first `samples` samples of the batch that evaluate has just left, whose targets lie in the slots of the
  /// current batch; `shape` is the program as such batches have it. Copies both from the device, a few megabytes at a
  /// time.
  void add(Session &session, const Program &shape, int64_t samples);

  /// Of the chosen metrics those that are found here; nothing is counted: none.
  std::map<Measure, double> results() const;
  /// Of the output of this label, where it was chosen. Rows are what is right, columns what was answered.
  const Confusion &confusion(const std::string &label = "") const;
  /// Of each class or label, where precision, recall, F1 or the mean IoU was chosen.
  const std::vector<Hits> &classHits(const std::string &label = "") const;

private:
  const OutputTally &of(const std::string &label) const;

  std::vector<OutputTally> tallies;
};

/// What a class is called: its number where there is no name for it.
std::string className(const std::vector<std::string> &names, size_t number);

/// A line for each class or label with its precision, recall, F1 and IoU; empty for more than a screen has room for.
std::string hitsText(const std::vector<Hits> &hits, const std::vector<std::string> &names);

/// Lines of a table for people, with the classes' names or numbers; empty for more classes than a screen has room for.
std::string confusionText(const Confusion &counts, const std::vector<std::string> &names);

} // namespace sluice
