// SPDX-License-Identifier: Apache-2.0
// Ties go as in the runtime's own count of right answers: of equal scores the first class is the answer. A class is
// among the first five when fewer than five others have higher scores, or equal ones and a smaller number.

#include "runtime/program/Metrics.h"

#include "runtime/program/TensorIO.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace sluice {

/// Whether precision, recall or F1 is among them.
static bool countsHits(const MeasuredOutput &measured) {
  return measured.has(Metric::Precision) || measured.has(Metric::Recall) || measured.has(Metric::F1);
}

OutputTally::OutputTally(const Program &program, const MeasuredOutput &measured)
    : program(program), measured(measured), output(program.outputs[measured.output]),
      columns(output.tensor.present ? output.tensor.shape.elements() / program.batch : 0),
      scores(scoresOf(program, output, measured.target).value_or(Scores{})) {
  if (measured.has(Metric::MeanIou) || measured.has(Metric::Confusion))
    counts.assign(static_cast<size_t>(scores.classes), std::vector<int64_t>(static_cast<size_t>(scores.classes)));
  const int64_t kinds = scores.classes > 0 ? scores.classes : columns;
  if (countsHits(measured))
    hits.resize(static_cast<size_t>(kinds));
  if (measured.has(Metric::Auc))
    area.emplace(scores.classes > 0 ? RocArea::Kind::Classes : RocArea::Kind::Labels, kinds, output.probabilities);
  if (measured.has(Metric::R2))
    squares.emplace(kinds);
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

void OutputTally::add(Session &session, int64_t samples) {
  constexpr size_t atOnce = size_t{8} << 20;
  const Tensor target = session.batch(program.inputs[measured.target].slots);
  const size_t sample = output.tensor.bytes() / static_cast<size_t>(program.batch);
  const int64_t piece = static_cast<int64_t>(std::max<size_t>(1, atOnce / std::max<size_t>(1, sample)));
  for (int64_t first = 0; first < samples; first += piece) {
    const int64_t count = std::min(piece, samples - first);
    const std::vector<float> values = readSamples<float>(session, output.tensor, first, count);
    if (scores.classes > 0)
      addClasses(values.data(), readSamples<int64_t>(session, target, first, count).data(), count);
    else {
      const std::vector<float> numbersThere = readSamples<float>(session, target, first, count);
      addNumbers(values.data(), numbersThere.data(), static_cast<int64_t>(values.size()));
      addLabels(values.data(), numbersThere.data(), count);
    }
  }
}

void OutputTally::addClasses(const float *values, const int64_t *target, int64_t samples) {
  const int64_t perSample = scores.answers / program.batch, groups = samples * perSample / scores.inner;
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
    absolute += std::abs(static_cast<double>(values[i]) - static_cast<double>(target[i]));
  numbers += elements;
}

/// A label is answered where its probability is above 1/2, whose logit is above 0.
void OutputTally::addLabels(const float *values, const float *target, int64_t samples) {
  const auto labels = static_cast<size_t>(columns);
  const float bound = output.probabilities ? 0.5f : 0.0f;
  for (int64_t n = 0; n < samples; ++n, values += labels, target += labels) {
    for (size_t k = 0; k < hits.size(); ++k) {
      const bool there = target[k] > 0.5f, isAnswered = values[k] > bound;
      hits[k].there += there;
      hits[k].answered += isAnswered;
      hits[k].right += there && isAnswered;
    }
    if (area)
      area->addLabels(values, target);
    if (squares)
      squares->add(values, target);
  }
}

std::vector<std::optional<double>> iousOf(const Confusion &counts) {
  std::vector<std::optional<double>> ious(counts.size());
  for (size_t k = 0; k < counts.size(); ++k) {
    int64_t either = -counts[k][k];
    for (size_t other = 0; other < counts.size(); ++other)
      either += counts[k][other] + counts[other][k];
    if (either > 0)
      ious[k] = static_cast<double>(counts[k][k]) / static_cast<double>(either);
  }
  return ious;
}

/// Over the classes that are right somewhere or answered somewhere.
static double meanIou(const Confusion &counts) {
  double sum = 0;
  int64_t classes = 0;
  for (const std::optional<double> &iou : iousOf(counts)) {
    sum += iou.value_or(0);
    classes += iou.has_value();
  }
  return classes > 0 ? sum / static_cast<double>(classes) : 0;
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
  put(Metric::MeanIou, answered > 0 ? std::optional(meanIou(counts)) : std::nullopt);
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

void Tally::add(Session &session, int64_t samples) {
  for (OutputTally &tally : tallies)
    tally.add(session, samples);
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
