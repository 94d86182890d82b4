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
    {Metric::Loss, "loss", false, false},         {Metric::Accuracy, "accuracy", true, false},
    {Metric::Top5, "top5", true, true},           {Metric::Perplexity, "perplexity", false, false},
    {Metric::MeanIou, "mean_iou", true, true},    {Metric::Mae, "mae", false, true},
    {Metric::Confusion, "confusion", true, true},
};

/// Tables of confusions grow with the square.
constexpr int64_t mostClasses = 1024;

const Facts &factsOf(Metric metric) { return facts[static_cast<int>(metric)]; }

bool isCrossEntropy(const Program &program) { return program.correct.present; }

/// Why the metric means nothing to a program, or null.
const char *refusal(Metric metric, const Program &program) {
  const std::optional<Scores> scores = scoresOf(program);
  switch (metric) {
  case Metric::Loss:
    return nullptr;
  case Metric::Accuracy:
  case Metric::Perplexity:
    return isCrossEntropy(program) ? nullptr : "needs a loss over classes";
  case Metric::Top5:
    return !scores || scores->classes < 6 ? "needs scores of more than five classes" : nullptr;
  case Metric::MeanIou:
  case Metric::Confusion:
    return !scores || scores->classes == 0 ? "needs scores of classes"
           : scores->classes > mostClasses ? "is a table of 1024 classes at most"
                                           : nullptr;
  case Metric::Mae:
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
  const bool tokens = program.lossName && !std::strcmp(program.lossName, "token-cross-entropy");
  scores.classes = output[tokens ? output.rank - 1 : 1];
  for (int i = 2; i < output.rank && !tokens; ++i)
    scores.inner *= output[i];
  return output.elements() == scores.answers * scores.classes ? std::optional(scores) : std::nullopt;
}

MetricChoice::MetricChoice(const Program &program, const std::optional<std::string> &words) {
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
      throw UsageError(text("--metrics: there is no '", word,
                            "'; there are loss, accuracy, top5, perplexity, mean_iou, mae, confusion"));
    if (const char *why = refusal(found->metric, program))
      throw UsageError(text("--metrics: '", word, "' ", why, ", which this program does not have"));
    if (!has(found->metric))
      metrics.push_back(found->metric);
  }
}

bool MetricChoice::has(Metric metric) const { return std::count(metrics.begin(), metrics.end(), metric) > 0; }

bool MetricChoice::readsOutput() const {
  return std::any_of(metrics.begin(), metrics.end(), [](Metric metric) { return factsOf(metric).readsOutput; });
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
    else
      addNumbers(output.data(), readSamples<float>(session, target, first, count).data(),
                 static_cast<int64_t>(output.size()));
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
      if (!counts.empty())
        ++counts[static_cast<size_t>(right)][static_cast<size_t>(answer)];
    }
}

void Tally::addNumbers(const float *output, const float *target, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    absolute += std::abs(static_cast<double>(output[i]) - static_cast<double>(target[i]));
  numbers += elements;
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
  if (choice.has(Metric::Top5) && answered > 0)
    found[Metric::Top5] = static_cast<double>(amongFive) / static_cast<double>(answered);
  if (choice.has(Metric::MeanIou) && answered > 0)
    found[Metric::MeanIou] = meanIou(counts);
  if (choice.has(Metric::Mae) && numbers > 0)
    found[Metric::Mae] = absolute / static_cast<double>(numbers);
  return found;
}

std::string className(const std::vector<std::string> &names, size_t number) {
  return number < names.size() ? names[number] : std::to_string(number);
}

/// Cut or padded on the left to so many characters.
static std::string cell(const std::string &content, size_t width) {
  const std::string shown = printable(content);
  size_t characters = 0, bytes = 0;
  for (; bytes < shown.size(); ++bytes)
    if ((static_cast<unsigned char>(shown[bytes]) & 0xc0) != 0x80 && ++characters > width)
      break;
  return std::string(width - std::min(characters, width), ' ') + shown.substr(0, bytes);
}

std::string confusionText(const Confusion &counts, const std::vector<std::string> &names) {
  constexpr size_t most = 12, longest = 16;
  if (counts.empty() || counts.size() > most)
    return "";
  size_t width = 2, name = 4;
  for (size_t k = 0; k < counts.size(); ++k) {
    for (const int64_t count : counts[k])
      width = std::max(width, std::to_string(count).size());
    name = std::min(longest, std::max(name, printable(className(names, k)).size()));
  }
  width = std::max(width, names.empty() ? width : std::min<size_t>(name, 8));
  std::string out = "rows: what is right, columns: what was answered\n" + std::string(name + 2, ' ');
  for (size_t k = 0; k < counts.size(); ++k)
    out += "  " + cell(className(names, k), width);
  for (size_t k = 0; k < counts.size(); ++k) {
    out += "\n  " + cell(className(names, k), name);
    for (const int64_t count : counts[k])
      out += "  " + cell(std::to_string(count), width);
  }
  return out + "\n";
}

} // namespace sluice
