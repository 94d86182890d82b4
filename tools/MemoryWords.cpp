// SPDX-License-Identifier: Apache-2.0
// On the host a second arena lies in the same memory, so that a budget is of both unless --host-budget opens one of its
// own for what is offloaded. A file is no memory.
#include "tools/MemoryWords.h"

#include "passes/plan/Budget.h"
#include "passes/planner/Words.h"
#include "passes/strategies/Registry.h"

#include "llvm/ADT/StringRef.h"

#include <charconv>

namespace sluice {

static Status takeSize(const char *flag, const std::string &text, const char *others, int64_t &into) {
  const auto bytes = parseSize(text);
  if (!bytes)
    return Error{std::string(flag) + " takes bytes, 600MiB or 8GiB" + others + ", not '" + text + "'"};
  into = *bytes;
  return Success{};
}

/// What --host-budget takes beside sizes: homes of what is offloaded that are no memory, among others.
static std::string otherWords() {
  std::string words = ", 0";
  for (const ArenaFacts &arena : arenaTable)
    if (arena.isHome && arena.space != Space::Host)
      words += std::string(", ") + arena.name;
  return words + " or unlimited";
}

/// On the host a budget without one for offloading is of all memory, as both arenas are the same memory. A report plans
/// under several budgets, which are of that kind, too.
Status takeMemory(const std::string &hostBudget, const std::string &workspaceLimit, DriverOptions &options) {
  PipelineOptions &pipeline = options.pipeline;
  const bool elsewhere = hostBudget != factsOf(Space::Host).name && factsOf(homeOf(hostBudget)).isHome;
  pipeline.home = elsewhere ? homeOf(hostBudget) : Space::Host;
  if (pipeline.target == Target::Cuda && !factsOf(pipeline.home).onCuda)
    return Error{"--host-budget=" + hostBudget + " is for --target=host: copies to a GPU come from locked memory"};
  pipeline.oneMemory = pipeline.target == Target::Host && (hostBudget.empty() || elsewhere) &&
                       (!pipeline.budget.empty() || options.emit == Emit::Report);
  Status taken = Success{};
  if (hostBudget == "0")
    pipeline.hostBudget = 0;
  else if (!hostBudget.empty() && hostBudget != "unlimited" && !elsewhere)
    taken = takeSize("--host-budget", hostBudget, otherWords().c_str(), pipeline.hostBudget);
  if (taken && !workspaceLimit.empty())
    taken = takeSize("--workspace-limit", workspaceLimit, "", pipeline.workspaceLimit);
  // The words alone: what a percentage is of, plan-memory knows.
  if (taken && !pipeline.budget.empty() && !parseBudget(pipeline.budget, 1 << 20, 0))
    return Error{"--memory-budget takes bytes, 600MiB, 8GiB, 40% or 40%act, not '" + pipeline.budget + "'"};
  return taken;
}

std::vector<std::string> unitMeant(const std::string &budget, bool shares) {
  constexpr int64_t mostPercent = 100, mostMebibytes = 65536; // as bytes less than any model's parameters
  const int64_t number = parseSize(budget).value_or(mostMebibytes + 1);
  if (budget.find_first_not_of("0123456789") != std::string::npos || number > mostMebibytes)
    return {};
  return {"a number alone is bytes; did you mean --memory-budget=" + budget +
          (shares && number <= mostPercent ? "%" : "MiB") + "?"};
}

static Status takeHome(const std::string &flag, const char *what, const std::string &word, Target target, Space &into,
                       bool &chooses) {
  chooses = word == "auto";
  if (chooses) {
    into = target == Target::Host ? Space::Storage : Space::Host;
    return Success{};
  }
  into = homeOf(word);
  const ArenaFacts &home = factsOf(into);
  const bool isHost = target == Target::Host;
  if (home.space == Space::Device && word != home.name)
    return Error{flag + " takes device, host, storage or auto, not '" + word + "'"};
  if (isHost && home.space == Space::Host)
    return Error{flag + "=host is for --target=cuda: on the host it is the same memory; a file is " + flag +
                 "=storage"};
  if (!isHost && !home.onCuda)
    return Error{flag + "=" + word + " is for --target=host; with cuda " + what + " may live in host memory, " + flag +
                 "=host"};
  return Success{};
}

Status takeHomes(const std::string &states, const std::string &parameters, const std::string &updates,
                 DriverOptions &options) {
  PipelineOptions &pipeline = options.pipeline;
  pipeline.updatesAtHome = updates == "home";
  if (!pipeline.updatesAtHome && updates != "device")
    return Error{"--updates takes home or device, not '" + updates + "'"};
  if (Status taken =
          takeHome("--state-home", "states", states, pipeline.target, pipeline.stateHome, pipeline.choosesStates);
      !taken)
    return taken;
  if (Status taken = takeHome("--parameter-home", "parameters", parameters, pipeline.target, pipeline.parameterHome,
                              pipeline.choosesParameters);
      !taken)
    return taken;
  if (pipeline.parameterHome != Space::Device && options.spec.shares > 0)
    return Error{"--parameter-home is not available yet with --shard: all ranks gather parameters where they were "
                 "updated; leave one of them out"};
  if (pipeline.stateHome != Space::Device && options.spec.sharesParameters)
    return Error{"--state-home is not available yet with --shard=parameters, which has parameters come and go in its "
                 "place; --shard=gradients takes it"};
  return Success{};
}

static bool readSize(llvm::StringRef word, int64_t &into) {
  const std::optional<int64_t> size = parseSize(word.str());
  into = size.value_or(0);
  return into > 0;
}

/// One of N, batch=N, image=N, above=SIZE and weights=SIZE.
static bool readPart(llvm::StringRef word, PipelineOptions &pipeline) {
  if (word.consume_front("weights="))
    return readSize(word, pipeline.weightsAbove);
  if (word.consume_front("above="))
    return pipeline.stepParts > 1 && readSize(word, pipeline.partsAbove);
  const bool isImage = word.consume_front("image="), isStep = isImage || word.consume_front("batch=");
  if (isStep)
    pipeline.partsAlong = isImage ? CutAlong::Image : CutAlong::Batch;
  int64_t &count = isStep ? pipeline.stepParts : pipeline.parts;
  return !word.getAsInteger(10, count) && count > 0;
}

Status takeParts(const std::string &word, PipelineOptions &pipeline) {
  pipeline.choosesParts = word == "auto";
  const bool isRead =
      word.empty() || pipeline.choosesParts ||
      llvm::all_of(llvm::split(word, ","), [&](llvm::StringRef part) { return readPart(part, pipeline); });
  if (isRead && pipeline.parts > 1 && pipeline.stepParts > 1)
    return Error{"--parts=" + word + " cuts both the rows of the loss and the step; leave one of them out"};
  if (isRead)
    return Success{};
  return Error{"--parts takes a positive number, batch=N or image=N, either with ,above=SIZE, weights=SIZE, several of "
               "them with commas between, or auto, not '" +
               word + "'"};
}

Status checkStrategy(const std::string &strategy) {
  std::string name = strategy.substr(0, strategy.find(',')), known;
  for (const std::string &candidate : planner::strategyNames()) {
    if (candidate == name)
      return Success{};
    known += (known.empty() ? "" : ", ") + candidate;
  }
  return Error{"--strategy knows no '" + name + "'; there are " + known};
}

/// The relative error of a vector; at 1 nothing of it is left.
static bool isErrorBudget(const std::string &word, double &value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() && value > 0 && value <= 1;
}

Status takeLossy(const std::string &allowLossy, const std::string &errorBudget, DriverOptions &options) {
  if (Result<planner::Abilities> lossy = planner::parseLossy(allowLossy); !lossy)
    return lossy.takeError();
  options.pipeline.allowLossy = allowLossy;
  if (!errorBudget.empty() && !isErrorBudget(errorBudget, options.pipeline.errorBudget))
    return Error{"--error-budget takes a number above 0 and at most 1, as 1e-2, not '" + errorBudget + "'"};
  return Success{};
}

} // namespace sluice
