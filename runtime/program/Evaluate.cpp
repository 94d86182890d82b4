// SPDX-License-Identifier: Apache-2.0
// Programs compute whole batches, and tell of each the mean of its losses and the number of its right answers. An
// incomplete last batch is filled up with its last sample; what that added is known from one more batch, which consists
// of that sample alone: mean losses of samples add up, whatever the loss is.

#include "runtime/program/Evaluate.h"

#include <algorithm>
#include <cmath>

namespace sluice {

namespace {

/// What the batches of one evaluation add up to.
struct Sums {
  double loss = 0;
  int64_t correct = 0, answered = 0;

  /// `times` in as many parts of the batch.
  void add(double meanLoss, int64_t right, int64_t answers, int64_t times, int64_t parts) {
    const int64_t counted = answers / parts * times;
    if (counted == 0)
      return; // the mean of nothing is no number
    loss += meanLoss * static_cast<double>(counted);
    correct += right / parts * times;
    answered += counted;
  }
};

} // namespace

static Evaluation resultOf(const Sums &sums, const Tally &tally, const MetricChoice &choice) {
  Evaluation result;
  result.values = tally.results();
  if (choice.has(Metric::Confusion))
    result.confusion = tally.confusion();
  result.hits = tally.classHits();
  if (sums.answered == 0)
    return result;
  const double answered = static_cast<double>(sums.answered);
  result.values[Metric::Loss] = sums.loss / answered;
  if (choice.has(Metric::Accuracy) && !choice.countsAnswers)
    result.values[Metric::Accuracy] = static_cast<double>(sums.correct) / answered;
  if (choice.has(Metric::Perplexity))
    result.values[Metric::Perplexity] = std::exp(sums.loss / answered);
  return result;
}

std::optional<Evaluation> evaluate(Session &session, const Program &program, const Entry &entry, Dataset &dataset,
                                   const MetricChoice &choice) {
  std::vector<ForwardBatch> batches = forwardBatches(dataset.samples(), program.batch);
  const int64_t missing = program.batch - batches.back().samples;
  if (missing > 0)
    batches.push_back({dataset.samples() - 1, 0});
  Sums sums;
  Tally tally(program, choice);
  const bool whole = forwardAll(session, program, entry, dataset, batches, [&](size_t i, int64_t answers) {
    float loss = 0;
    session.read(program.loss, &loss);
    int64_t correct = 0;
    if (program.correct.present)
      session.read(program.correct, &correct);
    if (batches[i].samples == 0)
      return sums.add(static_cast<double>(loss), correct, answers, -missing, program.batch);
    sums.add(static_cast<double>(loss), correct, answers, 1, 1);
    if (choice.readsOutput())
      tally.add(session, batches[i].samples);
  });
  if (!whole)
    return std::nullopt;
  Evaluation result = resultOf(sums, tally, choice);
  result.samples = dataset.samples();
  return result;
}

} // namespace sluice
