// SPDX-License-Identifier: Apache-2.0
// Ties go as in the runtime's own count of right answers: of equal scores the first class is the answer. A class is
// among the first five when fewer than five others have higher scores, or equal ones and a smaller number.

#include "runtime/program/Metrics.h"

#include "runtime/Errors.h"
#include "runtime/program/TensorIO.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace sluice {

bool MeasuredOutput::countsHits() const {
  return has(Metric::Precision) || has(Metric::Recall) || has(Metric::F1) || has(Metric::MeanIou);
}

OutputTally::OutputTally(const Program &program, const MeasuredOutput &measured)
    : batch(program.batch), measured(measured), probabilities(program.outputs[measured.output].probabilities),
      scores(scoresOf(program, program.outputs[measured.output], measured.target).value_or(Scores{})),
      ignored(scores.ignoreIndex == Loss::none ? NAN : static_cast<float>(scores.ignoreIndex)) {
  if (measured.has(Metric::Confusion))
    counts.assign(static_cast<size_t>(scores.classes), std::vector<int64_t>(static_cast<size_t>(scores.classes)));
  const int64_t kinds = scores.kinds(batch);
  if (measured.countsHits())
    hits.resize(static_cast<size_t>(kinds));
  if (measured.has(Metric::Auc))
    area.emplace(scores.classes > 0 ? RocArea::Kind::Classes : RocArea::Kind::Labels, kinds, probabilities);
  for (const Program &shape : shapesOf(program))
    if (const auto other = scoresOf(shape, shape.outputs[measured.output], measured.target);
        measured.has(Metric::R2) && other && other->answers != scores.answers)
      throw UsageError("r2 is of outputs of one size, this program's have another in each bucket");
  if (measured.has(Metric::R2))
    squares.emplace(scores.answers / batch);
}

/// Samples [first, first + samples) of a tensor, in logical order.
template <typename Element>
static std::vector<Element> readSamples(Session &session, Tensor tensor, int64_t first, int64_t samples) {
  const size_t sample = tensor.bytes() / static_cast<size_t>(tensor.shape[0]);
  tensor.offset += static_cast<size_t>(first) * sample;
  tensor.shape.dims[0] = samples;
  std::vector<Element> values(tensor.bytes() / sizeof(Element));
  char *to = reinterpret_cast<char *>(values.data());
  readTensor(session, tensor, [&](const void *data, size_t bytes) {
    std::memcpy(to, data, bytes);
    to += bytes;
  });
  return values;
}

void OutputTally::add(Session &session, const Program &shape, int64_t samples) {
  constexpr size_t atOnce = size_t{8} << 20;
  const Output &output = shape.outputs[measured.output];
  scores = scoresOf(shape, output, measured.target).value_or(Scores{});
  const Tensor target = session.batch(shape.inputs[measured.target].slots);
  const size_t sample = output.tensor.bytes() / static_cast<size_t>(batch);
  const int64_t piece = static_cast<int64_t>(std::max<size_t>(1, atOnce / std::max<size_t>(1, sample)));
  for (int64_t first = 0; first < samples; first += piece) {
    const int64_t count = std::min(piece, samples - first);
    const std::vector<float> values = readSamples<float>(session, output.tensor, first, count);
    if (scores.classes > 0)
      addClasses(values.data(), readSamples<int64_t>(session, target, first, count).data(), count);
    else {
      const std::vector<float> numbersThere = readSamples<float>(session, target, first, count);
      if (measured.has(Metric::Mae))
        addNumbers(values.data(), numbersThere.data(), static_cast<int64_t>(values.size()));
      if (scores.labels > 0)
        addLabels(values.data(), numbersThere.data(), count);
      if (squares)
        addSquares(values.data(), numbersThere.data(), count);
    }
  }
}

void OutputTally::addClasses(const float *values, const int64_t *target, int64_t samples) {
  const int64_t perSample = scores.answers / batch, groups = samples * perSample / scores.inner;
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t i = 0; i < scores.inner; ++i) {
      const int64_t right = target[group * scores.inner + i];
      if (right == scores.ignoreIndex || right < 0 || right >= scores.classes)
        continue;
      const float *at = values + group * scores.classes * scores.inner + i;
      const float wanted = at[right * scores.inner];
      int64_t answer = 0, before = 0;
      for (int64_t k = 0; k < scores.classes; ++k) {
        const float score = at[k * scores.inner];
        answer = score > at[answer * scores.inner] ? k : answer;
        before += score > wanted || (score == wanted && k < right);
      }
      ++answered;
      amongFive += before < 5;
      rightly += answer == right;
      if (!hits.empty()) {
        ++hits[static_cast<size_t>(right)].there;
        ++hits[static_cast<size_t>(answer)].answered;
        hits[static_cast<size_t>(right)].right += answer == right;
      }
      if (area)
        area->addClass(at, scores.inner, right);
      if (!counts.empty())
        ++counts[static_cast<size_t>(right)][static_cast<size_t>(answer)];
    }
}

void OutputTally::addNumbers(const float *values, const float *target, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    if (target[i] != ignored) {
      absolute += std::abs(static_cast<double>(values[i]) - static_cast<double>(target[i]));
      ++numbers;
    }
}

/// A label is answered where its probability is above 1/2, whose logit is above 0. Numbers that are ignored count
/// nowhere.
void OutputTally::addLabels(const float *values, const float *target, int64_t samples) {
  const int64_t places = scores.inner, perSample = scores.labels * places;
  const float bound = probabilities ? 0.5f : 0.0f;
  for (int64_t i = 0; i < samples * perSample; ++i) {
    if (target[i] == ignored)
      continue;
    const bool there = target[i] > 0.5f, isAnswered = values[i] > bound;
    ++answered;
    rightly += there == isAnswered;
    if (hits.empty())
      continue;
    Hits &own = hits[static_cast<size_t>(i / places % scores.labels)];
    own.there += there;
    own.answered += isAnswered;
    own.right += there && isAnswered;
  }
  for (int64_t n = 0; n < samples && area; ++n)
    for (int64_t place = 0; place < places; ++place)
      area->addLabels(values + n * perSample + place, target + n * perSample + place, places, ignored);
}

void OutputTally::addSquares(const float *values, const float *target, int64_t samples) {
  const int64_t perSample = scores.answers / batch;
  for (int64_t n = 0; n < samples; ++n)
    squares->add(values + n * perSample, target + n * perSample);
}

std::map<Measure, double> OutputTally::results() const {
  std::map<Measure, double> found;
  const auto put = [&](Metric metric, const std::optional<double> &value) {
    if (measured.has(metric) && value)
      found[{metric, measured.label}] = *value;
  };
  const auto share = [](double part, int64_t of) {
    return of > 0 ? std::optional(part / static_cast<double>(of)) : std::nullopt;
  };
  if (measured.countsAnswers)
    put(Metric::Accuracy, share(static_cast<double>(rightly), answered));
  put(Metric::Top5, share(static_cast<double>(amongFive), answered));
  put(Metric::MeanIou, meanOf(hits, &Hits::iou));
  put(Metric::Mae, share(absolute, numbers));
  put(Metric::Precision, meanOf(hits, &Hits::precision));
  put(Metric::Recall, meanOf(hits, &Hits::recall));
  put(Metric::F1, meanOf(hits, &Hits::f1));
  put(Metric::Auc, area ? area->value() : std::nullopt);
  put(Metric::R2, squares ? squares->value() : std::nullopt);
  return found;
}

Tally::Tally(const Program &program, const MetricChoice &choice) {
  for (const MeasuredOutput &one : choice.measured())
    if (one.readsOutput())
      tallies.emplace_back(program, one);
}

void Tally::add(Session &session, const Program &shape, int64_t samples) {
  for (OutputTally &tally : tallies)
    tally.add(session, shape, samples);
}

std::map<Measure, double> Tally::results() const {
  std::map<Measure, double> all;
  for (const OutputTally &tally : tallies)
    all.merge(tally.results());
  return all;
}

const OutputTally &Tally::of(const std::string &label) const {
  for (const OutputTally &tally : tallies)
    if (tally.measured.label == label)
      return tally;
  throw std::logic_error("no output '" + label + "' is measured");
}

const Confusion &Tally::confusion(const std::string &label) const { return of(label).counts; }
const std::vector<Hits> &Tally::classHits(const std::string &label) const { return of(label).hits; }

} // namespace sluice
