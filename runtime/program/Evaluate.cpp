// SPDX-License-Identifier: Apache-2.0
// Programs compute whole batches, and tell of each the mean of its losses and the number of its right answers. An
// incomplete batch, the last one of a shape, is filled up with its last sample; what that added is known from one more
// batch, which consists of that sample alone: mean losses of samples add up, whatever the loss is. Several ranks
// evaluate a share of the batches each, where these leave nothing but numbers, and add up those of all in the order of
// the batches; what one computes beyond its share, to keep others company, nobody reads.

#include "runtime/program/Evaluate.h"

#include "runtime/program/SharedStates.h"
#include "runtime/program/Turns.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

  /// Numbers that a batch leaves.
  size_t fields() const { return perLoss * std::max<size_t>(1, parts.size()); }
  /// Those of the batch that evaluate has just left.
  void read(Session &session, const Batches &batches, std::vector<double> &to) const {
    const auto put = [&](const Tensor &scalar, int64_t correct, const Counted &counted) {
      float value = 0;
      session.read(scalar, &value);
      to.insert(to.end(), {static_cast<double>(value), static_cast<double>(correct),
                           static_cast<double>(counted.targets), counted.weight});
    };
    int64_t correct = 0;
    if (program.correct.present)
      session.read(program.correct, &correct);
    if (parts.empty())
      put(program.loss, correct, batches.counted());
    for (size_t i = 0; i < parts.size(); ++i)
      put(program.outputs[i].part, 0, batches.countedOf(static_cast<int>(i)));
  }
  /// What a batch has left, `times` in as many parts of it.
  void add(const double *batch, int64_t times, int64_t of) {
    const auto take = [&](Sums &sums, const double *loss) {
      const auto targets = static_cast<int64_t>(loss[2]);
      sums.add(loss[0], static_cast<int64_t>(loss[1]), {targets, loss[3], targets}, times, of);
    };
    if (parts.empty())
      return take(whole, batch);
    for (size_t i = 0; i < parts.size(); ++i)
      take(parts[i], batch + i * perLoss);
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
  static constexpr size_t perLoss = 4; ///< mean, right answers, targets, their weight
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

/// What all ranks' batches have left, in the order of the batches; `own`: of this rank's share of `count`.
std::vector<double> gatherAll(const Session &session, std::vector<double> own, size_t count, size_t fields) {
  const int ranks = session.ranks->size();
  const auto length = static_cast<size_t>(shareOf(static_cast<int64_t>(count), 0, ranks).count);
  own.resize(length * fields); // a share that is shorter is one of the last, whose end nobody reads
  const std::vector<char> bytes =
      session.ranks->gather(own.data(), own.size() * sizeof(double), {"the evaluation of all ranks"});
  std::vector<double> all(bytes.size() / sizeof(double));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
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
  const bool shares = session.ranks && !choice.readsOutput() && !dataset.skipsBad();
  const auto count = static_cast<int64_t>(list.size());
  const Share own = shares ? shareOf(count, session.ranks->rank(), session.ranks->size()) : Share{0, count};
  std::vector<ForwardBatch> mine(list.begin() + own.first, list.begin() + own.first + own.count);
  if (shares && sharesParameters(program) && count > 0) // which all ranks gather in each batch: as many in each
    mine.resize(static_cast<size_t>(shareOf(count, 0, session.ranks->size()).count), list.front());
  std::vector<double> left;
  const bool whole = forwardAll(session, program, entry, dataset, mine, [&](size_t i, const Batches &batches) {
    losses.read(session, batches, left);
    if (!shares && mine[i].samples > 0)
      tally.add(session, dataset.shape(batches.bucket()), mine[i].samples);
  });
  if (!whole)
    return std::nullopt;
  if (shares)
    left = gatherAll(session, std::move(left), list.size(), losses.fields());
  for (size_t i = 0; i < list.size(); ++i)
    losses.add(left.data() + i * losses.fields(), list[i].samples == 0 ? -missing[i] : 1,
               list[i].samples == 0 ? program.batch : 1);
  Evaluation result = resultOf(losses, tally, choice);
  result.samples = dataset.samples();
  result.leftOut = dataset.skipped();
  return result;
}

std::optional<Evaluation> evaluateGood(Session &session, const Program &program, const Entry &entry, Dataset &dataset,
                                       const MetricChoice &choice) {
  for (;;)
    if (std::optional<Evaluation> result = evaluateOnce(session, program, entry, dataset, choice);
        !result || !dataset.leaveOutBad())
      return result;
}

} // namespace

std::optional<Evaluation> evaluate(Session &session, const Program &program, const Entry &entry, Dataset &dataset,
                                   const MetricChoice &choice) {
  if (program.turnCount == 0)
    return evaluateGood(session, program, entry, dataset, choice);
  Evaluation all;
  for (int turn = 0; turn < program.turnCount; ++turn) {
    const Program own = ofTurn(program, turn);
    std::optional<Evaluation> result = evaluateGood(session, own, entry, dataset, MetricChoice(own, "loss"));
    if (!result)
      return std::nullopt;
    all.samples = result->samples;
    all.leftOut = result->leftOut;
    for (const auto &[measure, value] : result->values)
      all.values[lossInTurn(program, turn, measure.output)] = value;
  }
  return all;
}

} // namespace sluice
