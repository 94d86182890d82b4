// SPDX-License-Identifier: Apache-2.0
// Which metrics mean something to which output, by its loss, its shape and its target's.

#include "runtime/program/Metrics.h"

#include "runtime/Errors.h"
#include "runtime/data/Source.h"
#include "runtime/program/Turns.h"

#include <algorithm>
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

/// A kernel of the program counts its right answers.
bool countsItself(const Program &program, int output) { return output == 0 && program.correct.present; }

/// The loss is the mean of its cross-entropies.
bool isCrossEntropy(const Program &program, int output) {
  return !program.classWeights && (countsItself(program, output) || hasCrossEntropy(program.outputs[output]));
}

constexpr char needsAnswers[] = "needs scores of classes, or of labels by --loss=bce-with-logits";

/// Why the metric means nothing to an output that is compared with this input, or null.
const char *refusal(Metric metric, const Program &program, int output, int target) {
  if (metric == Metric::Loss)
    return nullptr;
  if (output >= program.outputCount)
    return "needs an output that can be compared";
  const Output &measured = program.outputs[output];
  const std::optional<Scores> scores = scoresOf(program, measured, target);
  const bool hasAnswers = scores && (scores->classes > 0 || scores->labels > 0);
  switch (metric) {
  case Metric::Loss:
    return nullptr;
  case Metric::Accuracy:
    return countsItself(program, output) || hasAnswers ? nullptr : needsAnswers;
  case Metric::Perplexity:
    return isCrossEntropy(program, output) ? nullptr : "needs a loss that is a cross-entropy";
  case Metric::Top5:
    return !scores || scores->classes < 6 ? "needs scores of more than five classes" : nullptr;
  case Metric::Confusion:
    return !scores || scores->classes == 0 ? "needs scores of classes"
           : scores->classes > mostClasses ? "is a table of 1024 classes at most"
                                           : nullptr;
  case Metric::MeanIou:
    return hasAnswers ? nullptr : needsAnswers;
  case Metric::Precision:
  case Metric::Recall:
  case Metric::F1:
  case Metric::Auc:
    return hasAnswers && scores->classes != 1 ? nullptr : needsAnswers;
  case Metric::Mae:
    return !scores || scores->classes > 0 ? "needs a target of numbers" : nullptr;
  case Metric::R2:
    return !scores || scores->classes > 0              ? "needs a target of numbers"
           : scores->ignoreIndex != sluice::Loss::none ? "needs targets that all count, without --ignore-index"
                                                       : nullptr;
  }
  return nullptr;
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

bool hasParts(const Program &program) { return program.outputCount > 0 && program.outputs[0].part.present; }

std::string labelOf(const Program &program, int output) {
  const Output &named = program.outputs[output];
  if (output == 0 && !hasParts(program))
    return "";
  const auto isTwice = [&](const Output &other) {
    return &other != &named && other.loss && !std::strcmp(other.name, named.name);
  };
  const bool repeats = named.loss && std::any_of(program.outputs, program.outputs + program.outputCount, isTwice);
  return repeats ? text(named.name, "/", program.inputs[named.target].name) : named.name;
}

std::optional<Scores> scoresOf(const Program &program, const Output &measured, int target) {
  if (!measured.tensor.present || target < 0 || hasLoss(measured, "ctc"))
    return std::nullopt;
  const Input &input = program.inputs[target];
  const Shape &output = measured.tensor.shape, &wanted = input.staging.shape;
  Scores scores;
  scores.answers = wanted.elements();
  scores.ignoreIndex = input.ignoreIndex;
  if (input.shared || wanted.rank == 0 || wanted[0] != program.batch)
    return std::nullopt;
  if (input.staging.type == DataType::F32) {
    if (hasLoss(measured, "bce-with-logits")) {
      scores.labels = output.rank == 2 || output.rank > 3 ? output[1] : 1; // of three dimensions two are the image's
      scores.inner = output.elements() / output[0] / scores.labels;
    }
    return output.elements() == wanted.elements() ? std::optional(scores) : std::nullopt;
  }
  if (output.rank < 2)
    return std::nullopt;
  // Where no loss is attached, nothing says where the classes are; shapes do.
  const bool tokens = measured.loss ? hasLoss(measured, "token-cross-entropy")
                                    : !isWithout(output, 1, wanted) && isWithout(output, output.rank - 1, wanted);
  scores.classes = output[tokens ? output.rank - 1 : 1];
  for (int i = 2; i < output.rank && !tokens; ++i)
    scores.inner *= output[i];
  return output.elements() == scores.answers * scores.classes ? std::optional(scores) : std::nullopt;
}

std::optional<Scores> scoresOf(const Program &program) {
  return program.outputCount > 0 ? scoresOf(program, program.outputs[0], program.outputs[0].target) : std::nullopt;
}

bool MeasuredOutput::readsOutput() const {
  return countsAnswers ||
         std::any_of(metrics.begin(), metrics.end(), [](Metric metric) { return factsOf(metric).readsOutput; });
}

Measure lossInTurn(const Program &program, int turn, const std::string &label) {
  return {Metric::Loss, label.empty() ? program.turns[turn].name : nameInTurn(program, turn, label)};
}

MetricChoice::MetricChoice(const Program &program, const std::optional<std::string> &words) : program(program) {
  if (program.turnCount > 0) {
    if (words && *words != "loss")
      throw UsageError(text("--metrics ", *words, ": of a program whose steps take turns the losses of all turns are ",
                            "measured, and no other metric yet"));
    return;
  }
  if (!words)
    takeUsual();
  std::istringstream stream(words.value_or(""));
  for (std::string word; std::getline(stream, word, ',');)
    take(word);
}

void MetricChoice::add(int output, int target, Metric metric) {
  if (metric == Metric::Loss)
    return;
  auto place = std::find_if(list.begin(), list.end(),
                            [&](const MeasuredOutput &one) { return one.output == output && one.target == target; });
  if (place == list.end()) {
    place = std::find_if(list.begin(), list.end(), [&](const MeasuredOutput &one) { return one.output > output; });
    place = list.insert(place, {output, target, labelOf(program, output)});
  }
  if (!place->has(metric))
    place->metrics.push_back(metric);
  place->countsAnswers = place->has(Metric::Accuracy) && !countsItself(program, output);
}

void MetricChoice::takeUsual() {
  if (program.otherMean) // targets may be shifted or masked in the model: only who asks knows what they mean
    return;
  for (int i = 0; i < program.outputCount; ++i) {
    const Output &output = program.outputs[i];
    if (!output.loss && i > 0)
      break;
    const auto addMetric = [&](Metric metric) {
      if (!refusal(metric, program, i, output.target))
        add(i, output.target, metric);
    };
    const std::optional<Scores> scores = scoresOf(program, output, output.target);
    const bool tokens = hasLoss(output, "token-cross-entropy");
    const bool pixels = !tokens && scores && scores->classes + scores->labels > 0 && scores->inner > 1;
    if (!scores || scores->labels == 0 || pixels)
      addMetric(Metric::Accuracy);
    addMetric(tokens ? Metric::Perplexity : pixels ? Metric::MeanIou : Metric::Top5);
    if (hasLoss(output, "mse"))
      addMetric(Metric::Mae);
  }
}

/// The metric of this name, or null.
static const Facts *findFacts(const std::string &name) {
  const auto *found = std::find_if(std::begin(facts), std::end(facts), [&](const Facts &f) { return f.name == name; });
  return found == std::end(facts) ? nullptr : found;
}

/// The only input that an output without a loss can be compared with; one that only the loss reads before others.
static int targetFor(const Program &program, const Output &output, const std::string &word) {
  std::vector<int> fitting, ofLoss;
  std::string names;
  for (int i = 0; i < program.inputCount; ++i)
    if (scoresOf(program, output, i)) {
      fitting.push_back(i);
      names += text(names.empty() ? "" : ", ", program.inputs[i].name);
      if (!isPredictedFrom(program, i))
        ofLoss.push_back(i);
    }
  for (const std::vector<int> &list : {ofLoss, fitting})
    if (list.size() == 1)
      return list[0];
  throw UsageError(text("--metrics: '", word, "': ",
                        fitting.empty() ? text("no input has a value for each of '", output.name, "'")
                                        : text("say what it is compared with, ", word, "=INPUT, one of ", names)));
}

void MetricChoice::take(const std::string &word) {
  // The metric's name ends the word, or stands before '='; outputs may have both characters in their names.
  std::string measure = word, input;
  if (const size_t equals = word.rfind('='); equals != std::string::npos)
    measure = word.substr(0, equals), input = word.substr(equals + 1);
  const Facts *found = findFacts(measure);
  std::string output;
  if (const size_t dot = measure.rfind('.'); !found && dot != std::string::npos)
    found = findFacts(measure.substr(dot + 1)), output = measure.substr(0, dot);
  if (!found)
    throw UsageError(text("--metrics: there is no '", word,
                          "'; there are loss, accuracy, top5, perplexity, mean_iou, precision, recall, f1, auc, mae, "
                          "r2, confusion; OUTPUT.NAME is that of an output"));
  std::string names;
  int chosen = 0;
  const char *why = nullptr;
  for (int i = 0; i < std::max(1, program.outputCount); ++i) {
    const bool exists = i < program.outputCount;
    const std::string label = exists ? labelOf(program, i) : "";
    names += exists ? text(names.empty() ? "" : ", ", label.empty() ? program.outputs[i].name : label) : "";
    // Without a name: the first output, or all that have a loss of a sum.
    if (output.empty() ? i > 0 && !(hasParts(program) && program.outputs[i].loss)
                       : !exists || (output != label && output != program.outputs[i].name))
      continue;
    int target = exists ? program.outputs[i].target : -1;
    if (!input.empty()) {
      target = 0;
      while (target < program.inputCount && input != program.inputs[target].name)
        ++target;
      if (target == program.inputCount)
        throw UsageError(text("--metrics: '", word, "': the program takes no '", input, "'"));
    } else if (exists && target < 0 && found->metric != Metric::Loss) {
      target = targetFor(program, program.outputs[i], word);
    }
    if (const char *refused = refusal(found->metric, program, i, target)) {
      why = refused;
      continue;
    }
    add(i, target, found->metric);
    ++chosen;
  }
  if (chosen == 0 && !why)
    throw UsageError(text("--metrics: '", word, "': the program has no output '", output, "', but ", names));
  if (chosen == 0)
    throw UsageError(text("--metrics: '", word, "' ", why, ", which this program does not have"));
}

std::vector<Measure> MetricChoice::all() const {
  std::vector<Measure> measures;
  for (int turn = 0; turn < program.turnCount; ++turn)
    for (const Measure &own : MetricChoice(ofTurn(program, turn), "loss").all())
      measures.push_back(lossInTurn(program, turn, own.output));
  if (program.turnCount > 0)
    return measures;
  measures.emplace_back(Metric::Loss);
  for (int i = 0; i < program.outputCount; ++i)
    if (program.outputs[i].part.present)
      measures.emplace_back(Metric::Loss, labelOf(program, i));
  for (const MeasuredOutput &one : list)
    for (const Metric metric : one.metrics)
      measures.emplace_back(metric, one.label);
  return measures;
}

bool MetricChoice::has(const Measure &measure) const {
  const std::vector<Measure> measures = all();
  return std::count(measures.begin(), measures.end(), measure) > 0;
}

bool MetricChoice::readsOutput() const {
  return std::any_of(list.begin(), list.end(), [](const MeasuredOutput &one) { return one.readsOutput(); });
}

void MetricChoice::checkRoom(const Program &, int64_t samples) const {
  for (const MeasuredOutput &one : list) {
    const Output &output = program.outputs[one.output];
    const std::optional<Scores> scores = scoresOf(program, output, one.target);
    if (!one.has(Metric::Auc) || !scores)
      continue;
    const int64_t perSample = (scores->classes == 2 ? scores->answers : output.tensor.shape.elements()) / program.batch;
    if (samples > RocArea::mostScores / std::max<int64_t>(1, perSample))
      throw UsageError(text("--metrics: 'auc' keeps ", perSample, " scores of each of ", samples,
                            " samples, which are ", "more than ", RocArea::mostScores,
                            "; evaluate fewer or leave it out"));
  }
}

Measure MetricChoice::find(const std::string &flag, const std::string &name) const {
  std::string known;
  for (const Measure &measure : all()) {
    if (measure.metric == Metric::Confusion)
      continue;
    if (measure.name() == name)
      return measure;
    known += text(known.empty() ? "" : ", ", measure.name());
  }
  throw UsageError(text(flag, " ", name, ": is none of the metrics of this run (", known, "); see --metrics"));
}

} // namespace sluice
