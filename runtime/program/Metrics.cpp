// SPDX-License-Identifier: Apache-2.0
// Ties go as in the runtime's own count of right answers: of equal scores the first class is the answer. A class is
// among the first five when fewer than five others have higher scores, or equal ones and a smaller number.

#include "runtime/program/Metrics.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/program/TensorIO.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

namespace sluice {

namespace {

struct Facts {
  Metric metric;
  const char *name;
  bool more; ///< is better
  bool readsOutput;
};

constexpr Facts facts[] = {
    {Metric::Loss, "loss", false, false},
    {Metric::Accuracy, "accuracy", true, false},
    {Metric::Top5, "top5", true, true},
    {Metric::Perplexity, "perplexity", false, false},
    {Metric::MeanIou, "mean_iou", true, true},
    {Metric::Precision, "precision", true, true},
    {Metric::Recall, "recall", true, true},
    {Metric::F1, "f1", true, true},
    {Metric::Auc, "auc", true, true},
    {Metric::Mae, "mae", false, true},
    {Metric::R2, "r2", true, true},
    {Metric::Confusion, "confusion", true, true},
};

/// Tables of confusions grow with the square.
constexpr int64_t mostClasses = 1024;

const Facts &factsOf(Metric metric) { return facts[static_cast<int>(metric)]; }

bool isCrossEntropy(const Program &program) { return program.correct.present; }

/// The target says of each number of a sample whether a label is there.
bool hasLabels(const Program &program) { return program.lossName && !std::strcmp(program.lossName, "bce-with-logits"); }

int64_t labelsOf(const Program &program) { return program.output.shape.elements() / program.batch; }

/// Why the metric means nothing to a program, or null.
const char *refusal(Metric metric, const Program &program) {
  const std::optional<Scores> scores = scoresOf(program);
  switch (metric) {
  case Metric::Loss:
    return nullptr;
  case Metric::Accuracy:
    return isCrossEntropy(program) || (scores && scores->classes > 0) ? nullptr : "needs scores of classes";
  case Metric::Perplexity:
    return isCrossEntropy(program) && !program.classWeights ? nullptr : "needs a loss that is a cross-entropy";
  case Metric::Top5:
    return !scores || scores->classes < 6 ? "needs scores of more than five classes" : nullptr;
  case Metric::MeanIou:
  case Metric::Confusion:
    return !scores || scores->classes == 0 ? "needs scores of classes"
           : scores->classes > mostClasses ? "is a table of 1024 classes at most"
                                           : nullptr;
  case Metric::Precision:
  case Metric::Recall:
  case Metric::F1:
  case Metric::Auc:
    return !scores || (scores->classes < 2 && !hasLabels(program)) ? "needs scores of classes or labels" : nullptr;
  case Metric::Mae:
  case Metric::R2:
    return !scores || scores->classes > 0 ? "needs a target of numbers" : nullptr;
  }
  return nullptr;
}

std::vector<Metric> usualMetrics(const Program &program) {
  std::vector<Metric> metrics = {Metric::Loss};
  auto add = [&](Metric metric) {
    if (!refusal(metric, program))
      metrics.push_back(metric);
  };
  const std::optional<Scores> scores = scoresOf(program);
  if (program.otherMean) // targets may be shifted or masked in the model: only who asks knows what they mean
    return metrics;
  const bool tokens = program.lossName && !std::strcmp(program.lossName, "token-cross-entropy");
  const bool pixels = !tokens && scores && scores->classes > 0 && scores->inner > 1;
  add(Metric::Accuracy);
  if (tokens)
    add(Metric::Perplexity);
  else if (pixels)
    add(Metric::MeanIou);
  else
    add(Metric::Top5);
  if (program.lossName && !std::strcmp(program.lossName, "mse"))
    add(Metric::Mae);
  return metrics;
}

} // namespace

const char *metricName(Metric metric) { return factsOf(metric).name; }
bool moreIsBetter(Metric metric) { return factsOf(metric).more; }

/// Whether `shape` without one dimension is `other`.
static bool isWithout(const Shape &shape, int dimension, const Shape &other) {
  if (shape.rank != other.rank + 1)
    return false;
  for (int i = 0; i < other.rank; ++i)
    if (other[i] != shape[i < dimension ? i : i + 1])
      return false;
  return true;
}

std::optional<Scores> scoresOf(const Program &program) {
  if (!program.output.present || program.target < 0)
    return std::nullopt;
  const Input &input = program.inputs[program.target];
  const Shape &output = program.output.shape, &target = input.staging.shape;
  Scores scores;
  scores.answers = target.elements();
  scores.ignoreIndex = input.ignoreIndex;
  if (input.staging.type == DataType::F32)
    return output.elements() == target.elements() ? std::optional(scores) : std::nullopt;
  if (output.rank < 2)
    return std::nullopt;
  // A loss of the model's own does not say where its classes are; shapes do.
  const bool named = program.lossName && !std::strcmp(program.lossName, "token-cross-entropy");
  const bool tokens =
      named || (program.otherMean && !isWithout(output, 1, target) && isWithout(output, output.rank - 1, target));
  scores.classes = output[tokens ? output.rank - 1 : 1];
  for (int i = 2; i < output.rank && !tokens; ++i)
    scores.inner *= output[i];
  return output.elements() == scores.answers * scores.classes ? std::optional(scores) : std::nullopt;
}

MetricChoice::MetricChoice(const Program &program, const std::optional<std::string> &words) {
  choose(program, words);
  countsAnswers = has(Metric::Accuracy) && !isCrossEntropy(program);
}

void MetricChoice::choose(const Program &program, const std::optional<std::string> &words) {
  if (!words) {
    metrics = usualMetrics(program);
    return;
  }
  metrics = {Metric::Loss};
  std::istringstream list(*words);
  for (std::string word; std::getline(list, word, ',');) {
    const auto *found =
        std::find_if(std::begin(facts), std::end(facts), [&](const Facts &f) { return f.name == word; });
    if (found == std::end(facts))
      throw UsageError(
          text("--metrics: there is no '", word,
               "'; there are loss, accuracy, top5, perplexity, mean_iou, precision, recall, f1, auc, mae, r2, "
               "confusion"));
    if (const char *why = refusal(found->metric, program))
      throw UsageError(text("--metrics: '", word, "' ", why, ", which this program does not have"));
    if (!has(found->metric))
      metrics.push_back(found->metric);
  }
}

bool MetricChoice::has(Metric metric) const { return std::count(metrics.begin(), metrics.end(), metric) > 0; }

bool MetricChoice::readsOutput() const {
  return countsAnswers ||
         std::any_of(metrics.begin(), metrics.end(), [](Metric metric) { return factsOf(metric).readsOutput; });
}

void MetricChoice::checkRoom(const Program &program, int64_t samples) const {
  const std::optional<Scores> scores = scoresOf(program);
  if (!has(Metric::Auc) || !scores)
    return;
  const int64_t perSample = scores->classes == 2 ? scores->answers / program.batch : labelsOf(program);
  if (samples > RocArea::mostScores / std::max<int64_t>(1, perSample))
    throw UsageError(text("--metrics: 'auc' keeps ", perSample, " scores of each of ", samples, " samples, which are ",
                          "more than ", RocArea::mostScores, "; evaluate fewer or leave it out"));
}

Metric MetricChoice::find(const std::string &flag, const std::string &name) const {
  std::string known;
  for (Metric metric : metrics) {
    if (metric == Metric::Confusion)
      continue;
    if (metricName(metric) == name)
      return metric;
    known += text(known.empty() ? "" : ", ", metricName(metric));
  }
  throw UsageError(text(flag, " ", name, ": is none of the metrics of this run (", known, "); see --metrics"));
}

Tally::Tally(const Program &program, const MetricChoice &choice)
    : program(program), choice(choice), scores(scoresOf(program).value_or(Scores{})) {
  if (choice.has(Metric::MeanIou) || choice.has(Metric::Confusion))
    counts.assign(static_cast<size_t>(scores.classes), std::vector<int64_t>(static_cast<size_t>(scores.classes)));
  const int64_t columns = scores.classes > 0 ? scores.classes : labelsOf(program);
  if (countsHits(choice))
    hits.resize(static_cast<size_t>(columns));
  if (choice.has(Metric::Auc))
    area.emplace(scores.classes > 0 ? RocArea::Kind::Classes : RocArea::Kind::Labels, columns, program.probabilities);
  if (choice.has(Metric::R2))
    squares.emplace(columns);
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

void Tally::add(Session &session, int64_t samples) {
  constexpr size_t atOnce = size_t{8} << 20;
  const Tensor target = session.batch(program.inputs[program.target].slots);
  const size_t sample = program.output.bytes() / static_cast<size_t>(program.batch);
  const int64_t piece = static_cast<int64_t>(std::max<size_t>(1, atOnce / std::max<size_t>(1, sample)));
  for (int64_t first = 0; first < samples; first += piece) {
    const int64_t count = std::min(piece, samples - first);
    const std::vector<float> output = readSamples<float>(session, program.output, first, count);
    if (scores.classes > 0)
      addClasses(output.data(), readSamples<int64_t>(session, target, first, count).data(), count);
    else {
      const std::vector<float> numbersThere = readSamples<float>(session, target, first, count);
      addNumbers(output.data(), numbersThere.data(), static_cast<int64_t>(output.size()));
      addLabels(output.data(), numbersThere.data(), count);
    }
  }
}

void Tally::addClasses(const float *output, const int64_t *target, int64_t samples) {
  const int64_t perSample = scores.answers / program.batch, groups = samples * perSample / scores.inner;
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t i = 0; i < scores.inner; ++i) {
      const int64_t right = target[group * scores.inner + i];
      if (right == scores.ignoreIndex || right < 0 || right >= scores.classes)
        continue;
      const float *at = output + group * scores.classes * scores.inner + i;
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

void Tally::addNumbers(const float *output, const float *target, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    absolute += std::abs(static_cast<double>(output[i]) - static_cast<double>(target[i]));
  numbers += elements;
}

/// A label is answered where its probability is above 1/2, whose logit is above 0.
void Tally::addLabels(const float *output, const float *target, int64_t samples) {
  const auto labels = static_cast<size_t>(labelsOf(program));
  const float bound = program.probabilities ? 0.5f : 0.0f;
  for (int64_t n = 0; n < samples; ++n, output += labels, target += labels) {
    for (size_t k = 0; k < hits.size(); ++k) {
      const bool there = target[k] > 0.5f, answered = output[k] > bound;
      hits[k].there += there;
      hits[k].answered += answered;
      hits[k].right += there && answered;
    }
    if (area)
      area->addLabels(output, target);
    if (squares)
      squares->add(output, target);
  }
}

/// Mean over the classes that are right somewhere or answered somewhere of what both have in common over what either
/// has.
static double meanIou(const Confusion &counts) {
  double sum = 0;
  int64_t classes = 0;
  for (size_t k = 0; k < counts.size(); ++k) {
    int64_t either = -counts[k][k];
    for (size_t other = 0; other < counts.size(); ++other)
      either += counts[k][other] + counts[other][k];
    if (either == 0)
      continue;
    sum += static_cast<double>(counts[k][k]) / static_cast<double>(either);
    ++classes;
  }
  return classes > 0 ? sum / static_cast<double>(classes) : 0;
}

std::map<Metric, double> Tally::results() const {
  std::map<Metric, double> found;
  if (choice.countsAnswers && answered > 0)
    found[Metric::Accuracy] = static_cast<double>(rightly) / static_cast<double>(answered);
  if (choice.has(Metric::Top5) && answered > 0)
    found[Metric::Top5] = static_cast<double>(amongFive) / static_cast<double>(answered);
  if (choice.has(Metric::MeanIou) && answered > 0)
    found[Metric::MeanIou] = meanIou(counts);
  if (choice.has(Metric::Mae) && numbers > 0)
    found[Metric::Mae] = absolute / static_cast<double>(numbers);
  const auto put = [&](Metric metric, const std::optional<double> &value) {
    if (choice.has(metric) && value)
      found[metric] = *value;
  };
  put(Metric::Precision, meanOf(hits, &Hits::precision));
  put(Metric::Recall, meanOf(hits, &Hits::recall));
  put(Metric::F1, meanOf(hits, &Hits::f1));
  put(Metric::Auc, area ? area->value() : std::nullopt);
  put(Metric::R2, squares ? squares->value() : std::nullopt);
  return found;
}

bool countsHits(const MetricChoice &choice) {
  return choice.has(Metric::Precision) || choice.has(Metric::Recall) || choice.has(Metric::F1);
}

} // namespace sluice
