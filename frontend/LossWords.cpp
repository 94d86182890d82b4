// SPDX-License-Identifier: Apache-2.0
// The words of --loss, and what is attached by them.
#include "frontend/TrainingSpec.h"
#include "runtime/Numbers.h"
#include <algorithm>
#include <cmath>
#include <set>

namespace sluice {
namespace {

bool hasClasses(AttachedLoss kind) {
  return kind == AttachedLoss::SoftmaxCrossEntropy || kind == AttachedLoss::TokenCrossEntropy;
}

/// One option of a loss: its name, who has it, what becomes of its value; the message ends what the value is not.
struct LossOption {
  const char *name, *value;
  bool (*isOf)(AttachedLoss kind);
  bool (*take)(const std::string &value, OutputLoss &loss);
  bool isList = false; ///< commas do not end it
};

bool isAny(AttachedLoss kind) { return kind != AttachedLoss::None; }
bool isCtc(AttachedLoss kind) { return kind == AttachedLoss::Ctc; }
bool isBce(AttachedLoss kind) { return kind == AttachedLoss::BceWithLogits; }
bool ignores(AttachedLoss kind) { return hasClasses(kind) || isCtc(kind) || isBce(kind); }

/// Whether a flag for all losses means this one: an id of tokens may be 0 or 1, which are answers of yes or no.
bool inherits(AttachedLoss kind, std::optional<int64_t> ignoreIndex) {
  return ignores(kind) && !(isBce(kind) && ignoreIndex && isAnswer(*ignoreIndex));
}

bool takeName(const std::string &value, std::string &name) {
  name = value;
  return !value.empty();
}

bool takeWeight(const std::string &value, OutputLoss &loss) {
  const bool isNumber = parseNumber(value, loss.weight);
  return isNumber && std::isfinite(static_cast<float>(loss.weight)) && static_cast<float>(loss.weight) != 0;
}

bool takeTarget(const std::string &value, OutputLoss &loss) { return takeName(value, loss.target); }

bool takeIgnored(const std::string &value, OutputLoss &loss) { return parseNumber(value, loss.ignoreIndex.emplace()); }

/// Within an option numbers are separated by colons, as commas separate options.
bool takeWeights(std::string value, Result<std::vector<double>> (*parse)(const std::string &),
                 std::vector<double> &weights) {
  if (value.compare(0, 1, "@") != 0)
    std::replace(value.begin(), value.end(), ':', ',');
  Result<std::vector<double>> parsed = parse(value);
  if (parsed)
    weights = *parsed;
  return static_cast<bool>(parsed);
}

bool takeClassWeights(const std::string &value, OutputLoss &loss) {
  return takeWeights(value, parseClassWeights, loss.classWeights);
}

bool takePosWeights(const std::string &value, OutputLoss &loss) {
  return takeWeights(value, parsePosWeights, loss.posWeights);
}

bool takeLength(const std::string &value, OutputLoss &loss) {
  return parseNumber(value, loss.ctc.length) && loss.ctc.length >= 1;
}

bool takeBlank(const std::string &value, OutputLoss &loss) {
  return parseNumber(value, loss.ctc.blank) && loss.ctc.blank >= 0;
}

bool takeZeroInfinity(const std::string &value, OutputLoss &loss) {
  loss.ctc.zeroInfinity = value == "yes";
  return value == "yes" || value == "no";
}

bool takeInputLengths(const std::string &value, OutputLoss &loss) { return takeName(value, loss.ctc.inputLengths); }
bool takeTargetLengths(const std::string &value, OutputLoss &loss) { return takeName(value, loss.ctc.targetLengths); }

constexpr LossOption options[] = {
    {"weight", "a finite number but 0", isAny, takeWeight},
    {"target", "a name", isAny, takeTarget},
    {"ignore-index", "a whole number", ignores, takeIgnored},
    {"class-weights", "W0,W1,... or @FILE, weights of 0 and more", hasClasses, takeClassWeights, true},
    {"pos-weight", "a number above 0, or W0,W1,... or @FILE with one for each class", isBce, takePosWeights, true},
    {"length", "a number from 1 on", isCtc, takeLength},
    {"blank", "a class from 0 on", isCtc, takeBlank},
    {"zero-infinity", "yes or no", isCtc, takeZeroInfinity},
    {"input-lengths", "a name", isCtc, takeInputLengths},
    {"target-lengths", "a name", isCtc, takeTargetLengths}};

Status takeOption(const std::string &option, const std::string &word, OutputLoss &loss) {
  const size_t equals = option.find('=');
  const std::string name = option.substr(0, equals);
  std::string known;
  for (const LossOption &one : options) {
    if (one.isOf(loss.kind))
      known += (known.empty() ? "" : ", ") + std::string(one.name);
    if (name != one.name || !one.isOf(loss.kind))
      continue;
    if (equals == std::string::npos || !one.take(option.substr(equals + 1), loss))
      return Error{"--loss=" + word + ": " + name + " is not " + one.value};
    return Success{};
  }
  return Error{"--loss=" + word + ": " + toString(loss.kind) + " knows no '" + name + "'" +
               (known.empty() ? "" : "; it knows " + known)};
}

/// Where the option that begins there ends: behind the commas of a list, which what has no equals sign belongs to.
size_t endOfOption(const std::string &word, size_t begin) {
  const auto comma = [&](size_t from) { return std::min(word.find(',', from), word.size()); };
  const std::string name = word.substr(begin, word.find('=', begin) - begin);
  size_t end = comma(begin);
  if (std::any_of(std::begin(options), std::end(options),
                  [&](const LossOption &one) { return one.isList && name == one.name; }))
    while (end < word.size() && word.find('=', end) >= comma(end + 1))
      end = comma(end + 1);
  return end;
}

/// `[OUTPUT=]NAME[,option=value...]`; the target's name is empty where the word does not say it.
Result<OutputLoss> parseOne(const std::string &word) {
  OutputLoss loss;
  loss.target.clear();
  const size_t comma = std::min(word.find(','), word.size());
  const std::string head = word.substr(0, comma);
  const size_t equals = head.rfind('=');
  if (equals != std::string::npos)
    loss.output = head.substr(0, equals);
  Result<AttachedLoss> kind = parseLoss(equals == std::string::npos ? head : head.substr(equals + 1));
  if (!kind)
    return kind.takeError();
  loss.kind = *kind;
  if (equals != std::string::npos && (loss.output.empty() || loss.kind == AttachedLoss::None))
    return Error{"--loss=" + word + " is not [OUTPUT=]NAME[,option=value...]; none has no output"};
  for (size_t begin = comma + 1, end; begin <= word.size(); begin = end + 1) {
    end = endOfOption(word, begin);
    if (Status taken = takeOption(word.substr(begin, end - begin), word, loss); !taken)
      return taken.takeError();
  }
  return loss;
}

} // namespace

/// Results and reports tell losses apart by output and target alone. Without target=NAME the target of a single loss is
/// called `target`, those of several by their outputs.
Status parseLosses(const std::vector<std::string> &words, TrainingSpec &spec) {
  if (words.size() > TrainingSpec::mostLosses)
    return Error{"--loss is given " + std::to_string(words.size()) + " times; a model has " +
                 std::to_string(TrainingSpec::mostLosses) + " losses at most"};
  std::set<std::pair<std::string, std::string>> compared;
  for (const std::string &word : words) {
    Result<OutputLoss> loss = parseOne(word);
    if (!loss)
      return loss.takeError();
    if (words.size() > 1 && loss->output.empty())
      return Error{"--loss=" + word +
                   ": of several losses each names its output, --loss OUTPUT=" + toString(loss->kind)};
    if (!spec.output.empty() && !loss->output.empty() && loss->output != spec.output)
      return Error{"--output=" + spec.output + " and --loss=" + word + " say both what is trained; leave --output out"};
    if (loss->target.empty())
      loss->target = words.size() > 1 ? "target_" + loss->output : "target";
    if (!compared.emplace(loss->output, loss->target).second)
      return Error{"two losses compare '" + loss->output + "' with '" + loss->target +
                   "'; name another by target=NAME"};
    spec.losses.push_back(std::move(*loss));
  }
  return Success{};
}

std::vector<OutputLoss> lossesOf(const TrainingSpec &spec) {
  std::vector<OutputLoss> losses;
  for (const TurnRequest &turn : spec.turns)
    for (OutputLoss &loss : lossesOf(specOfTurn(spec, turn)))
      losses.push_back(std::move(loss));
  if (!losses.empty())
    return losses;
  losses = spec.losses;
  if (losses.empty()) {
    losses.emplace_back();
    losses[0].kind = spec.loss;
  }
  const bool alone = losses.size() == 1;
  for (OutputLoss &loss : losses) {
    if (loss.output.empty())
      loss.output = spec.output;
    // A loss alone is told of flags that it does not know.
    if (!loss.ignoreIndex && (alone || inherits(loss.kind, spec.ignoreIndex)))
      loss.ignoreIndex = spec.ignoreIndex;
    if (loss.classWeights.empty() && (alone || hasClasses(loss.kind)))
      loss.classWeights = spec.classWeights;
  }
  return losses;
}

bool endsInOwnLoss(const TrainingSpec &spec) {
  const std::vector<OutputLoss> losses = lossesOf(spec);
  return std::any_of(losses.begin(), losses.end(),
                     [](const OutputLoss &loss) { return loss.kind == AttachedLoss::None; });
}

bool isOwnLoss(const TrainingSpec &spec, const std::string &output) {
  const std::vector<OutputLoss> losses = lossesOf(spec);
  return std::any_of(losses.begin(), losses.end(), [&](const OutputLoss &loss) {
    return loss.kind == AttachedLoss::None && (loss.output.empty() || loss.output == output);
  });
}

} // namespace sluice
