// SPDX-License-Identifier: Apache-2.0
// The words of --turn. A loss of it is a word of --loss, or the name of an output that is one.
#include "frontend/TrainingSpec.h"
#include "runtime/Numbers.h"

#include <algorithm>
#include <cctype>

namespace sluice {
namespace {

bool isName(const std::string &name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), fits);
}

/// Losses that are attached, or the model's own alone.
Status takeLosses(const std::vector<std::string> &words, TurnRequest &turn) {
  const auto isOwn = [](const std::string &word) { return word.find('=') == std::string::npos; };
  const auto own = std::find_if(words.begin(), words.end(), isOwn);
  if (own != words.end() && (words.size() > 1 || own->empty()))
    return Error{"--turn " + turn.name + ": loss=" + *own +
                 " is the model's own loss, which stands alone; a loss that is attached is loss=OUTPUT=NAME"};
  if (own != words.end()) {
    OutputLoss &loss = turn.losses.emplace_back();
    loss.kind = AttachedLoss::None;
    loss.output = *own;
    return Success{};
  }
  TrainingSpec alone;
  if (Status parsed = parseLosses(words, alone); !parsed)
    return Error{"--turn " + turn.name + ": " + parsed.error()};
  for (size_t i = 0; i < words.size(); ++i) {
    OutputLoss &loss = turn.losses.emplace_back(std::move(alone.losses[i]));
    if (loss.kind == AttachedLoss::None || loss.output.empty())
      return Error{"--turn " + turn.name + ": loss=" + words[i] +
                   " is no loss of an output: loss=OUTPUT is the model's own, loss=OUTPUT=NAME is attached to it"};
    if (words[i].find(",target=") == std::string::npos) // as of several losses
      loss.target = "target_" + loss.output;
  }
  return Success{};
}

Result<TurnRequest> parseTurn(const std::string &word) {
  static constexpr char train[] = ",train=", loss[] = "loss=", steps[] = "steps=";
  const std::string form = std::string("; use ") + turnForm;
  TurnRequest turn;
  const size_t end = word.find(train);
  if (end == std::string::npos || end + sizeof train - 1 == word.size())
    return Error{"--turn " + word + " does not end in train=REGEX, the parameters that its steps change" + form};
  turn.train = word.substr(end + sizeof train - 1);
  std::vector<std::string> losses;
  size_t begin = std::min(word.find(','), end);
  turn.name = word.substr(0, begin);
  if (!isName(turn.name))
    return Error{"--turn " + word + ": '" + turn.name + "' is no name of letters, digits and _" + form};
  while (begin < end) {
    const size_t next = std::min(word.find(',', begin + 1), end);
    const std::string item = word.substr(begin + 1, next - begin - 1);
    begin = next;
    if (item.compare(0, sizeof loss - 1, loss) == 0)
      losses.push_back(item.substr(sizeof loss - 1));
    else if (item.compare(0, sizeof steps - 1, steps) == 0) {
      if (!parseNumber(item.substr(sizeof steps - 1), turn.steps) || turn.steps < 1 ||
          turn.steps > TurnRequest::mostSteps)
        return Error{"--turn " + turn.name + ": '" + item + "' is no number of steps from 1 to " +
                     std::to_string(TurnRequest::mostSteps)};
    } else if (!losses.empty() && losses.back().find('=') != std::string::npos)
      losses.back() += "," + item; // an option of the loss
    else
      return Error{"--turn " + turn.name + ": '" + item + "' is neither loss=OUTPUT nor steps=K" + form};
  }
  if (losses.empty())
    return Error{"--turn " + word + " has no loss" + form};
  if (Status taken = takeLosses(losses, turn); !taken)
    return taken.takeError();
  return turn;
}

} // namespace

Status parseTurns(const std::vector<std::string> &words, TrainingSpec &spec) {
  if (words.size() == 1)
    return Error{"--turn " + words[0] + " is the only turn: turns alternate, say two, or --loss and --freeze without"};
  if (words.size() > TrainingSpec::mostTurns)
    return Error{"--turn is given " + std::to_string(words.size()) + " times; a program has " +
                 std::to_string(TrainingSpec::mostTurns) + " turns at most"};
  for (const std::string &word : words) {
    Result<TurnRequest> turn = parseTurn(word);
    if (!turn)
      return turn.takeError();
    if (std::any_of(spec.turns.begin(), spec.turns.end(), [&](const auto &other) { return other.name == turn->name; }))
      return Error{"--turn " + turn->name + " is given twice; each turn has a name of its own"};
    spec.turns.push_back(std::move(*turn));
  }
  return Success{};
}

TrainingSpec specOfTurn(const TrainingSpec &spec, const TurnRequest &turn) {
  TrainingSpec own = spec;
  own.losses = turn.losses;
  own.turns.clear();
  return own;
}

} // namespace sluice
