// SPDX-License-Identifier: Apache-2.0
// Programs compute whole batches, and tell of each the mean of its losses and the number of its right answers. An
// incomplete batch, the last one of a shape, is filled up with its last sample; what that added is known from one more
// batch, which consists of that sample alone: mean losses of samples add up, whatever the loss is.

#include "runtime/program/Evaluate.h"

#include <algorithm>
#include <cmath>

namespace sluice {

namespace {

/// What the batches of one evaluation add up to.
struct Sums {
  double loss = 0, weight = 0;
  int64_t correct = 0, answered = 0;

  /// `times` in as many parts of the batch.
  void add(double meanLoss, int64_t right, const Counted &counted, int64_t times, int64_t parts) {
    answered += counted.targets / parts * times;
    correct += right / parts * times;
    if (counted.weight <= 0)
      return; // the mean of nothing is no number
    const double own = counted.weight / static_cast<double>(parts) * static_cast<double>(times);
    loss += meanLoss * own;
    weight += own;
  }
};

} // namespace

namespace {

/// The sums of the loss, or of each loss of a sum.
class Losses {
public:
  explicit Losses(const Program &program) : program(program), parts(hasParts(program) ? partsOf(program) : 0) {}

  /// The batch that evaluate has just left; `times` in as many parts of the batch.
  void add(Session &session, const Batches &batches, int64_t times, int64_t of) {
    const auto valueOf = [&](const Tensor &scalar) {
      float value = 0;
      session.read(scalar, &value);
      return static_cast<double>(value);
    };
    int64_t correct = 0;
    if (program.correct.present)
      session.read(program.correct, &correct);
    if (parts.empty())
      return whole.add(valueOf(program.loss), correct, batches.counted(), times, of);
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].add(valueOf(program.outputs[i].part), 0, batches.countedOf(static_cast<int>(i)), times, of);
  }

  void describe(const MetricChoice &choice, std::map<Measure, double> &values) const {
    double sum = 0;
    bool isWhole = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string label = labelOf(program, static_cast<int>(i));
      describe(parts[i], label, choice, values);
      isWhole &= parts[i].weight > 0;
      if (parts[i].weight > 0)
        sum += program.outputs[i].weight * values[{Metric::Loss, label}];
    }
    if (parts.empty())
      return describe(whole, "", choice, values);
    if (isWhole) // the mean of nothing is no number
      values[Metric::Loss] = sum;
  }

private:
  static size_t partsOf(const Program &program) {
    size_t count = 0;
    while (count < static_cast<size_t>(program.outputCount) && program.outputs[count].part.present)
      ++count;
    return count;
  }
  static void describe(const Sums &sums, const std::string &label, const MetricChoice &choice,
                       std::map<Measure, double> &values) {
    if (sums.weight > 0) {
      const double loss = sums.loss / sums.weight;
      values[{Metric::Loss, label}] = loss;
      if (choice.has({Metric::Perplexity, label}))
        values[{Metric::Perplexity, label}] = std::exp(loss);
    }
    if (sums.answered == 0)
      return;
    const double answered = static_cast<double>(sums.answered);
    for (const MeasuredOutput &one : choice.measured())
      if (one.label == label && one.has(Metric::Accuracy) && !one.countsAnswers)
        values[{Metric::Accuracy, label}] = static_cast<double>(sums.correct) / answered;
  }

  const Program &program;
  Sums whole;
  std::vector<Sums> parts;
};

Evaluation resultOf(const Losses &losses, const Tally &tally, const MetricChoice &choice) {
  Evaluation result;
  result.values = tally.results();
  for (const MeasuredOutput &one : choice.measured()) {
    if (one.has(Metric::Confusion))
      result.confusions[one.label] = tally.confusion(one.label);
    if (one.countsHits())
      result.hits[one.label] = tally.classHits(one.label);
  }
  losses.describe(choice, result.values);
  return result;
}

/// With other samples in the place of bad ones that were not known.
std::optional<Evaluation> evaluateOnce(Session &session, const Program &program, const Entry &entry, Dataset &dataset,
                                       const MetricChoice &choice) {
  std::vector<ForwardBatch> list = dataset.forwardBatches();
  std::vector<int64_t> missing(list.size(), 0); // samples in the batch before, of batches of one sample alone
  for (size_t i = 0, whole = list.size(); i < whole; ++i)
    if (const ForwardBatch batch = list[i]; batch.samples < program.batch) {
      list.push_back({batch.first + batch.samples - 1, 0, batch.bucket});
      missing.push_back(program.batch - batch.samples);
    }
  Losses losses(program);
  Tally tally(program, choice);
  const bool whole = forwardAll(session, program, entry, dataset, list, [&](size_t i, const Batches &batches) {
    if (list[i].samples == 0)
      return losses.add(session, batches, -missing[i], program.batch);
    losses.add(session, batches, 1, 1);
    tally.add(session, dataset.shape(batches.bucket()), list[i].samples);
  });
  if (!whole)
    return std::nullopt;
  Evaluation result = resultOf(losses, tally, choice);
  result.samples = dataset.samples();
  result.leftOut = dataset.skipped();
  return result;
}

} // namespace

std::optional<Evaluation> evaluate(Session &session, const Program &program, const Entry &entry, Dataset &dataset,
                                   const MetricChoice &choice) {
  for (;;)
    if (std::optional<Evaluation> result = evaluateOnce(session, program, entry, dataset, choice);
        !result || !dataset.leaveOutBad())
      return result;
}

} // namespace sluice
