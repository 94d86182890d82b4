// SPDX-License-Identifier: Apache-2.0
// Words of the command line <-> enumerations, one table each.
#include "frontend/TrainingSpec.h"
#include "runtime/Numbers.h"
#include "runtime/Ranks.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <utility>

namespace sluice {
namespace {

template <typename T> using Words = std::pair<const char *, T>;

constexpr Words<AttachedLoss> losses[] = {{"softmax-cross-entropy", AttachedLoss::SoftmaxCrossEntropy},
                                          {"token-cross-entropy", AttachedLoss::TokenCrossEntropy},
                                          {"mse", AttachedLoss::Mse},
                                          {"bce-with-logits", AttachedLoss::BceWithLogits},
                                          {"ctc", AttachedLoss::Ctc},
                                          {"none", AttachedLoss::None}};
constexpr Words<Optimizer> optimizers[] = {{"sgd", Optimizer::Sgd},         {"adam", Optimizer::Adam},
                                           {"adamw", Optimizer::AdamW},     {"adagrad", Optimizer::Adagrad},
                                           {"rmsprop", Optimizer::RmsProp}, {"lamb", Optimizer::Lamb},
                                           {"lion", Optimizer::Lion}};
constexpr Words<InitialValues> inits[] = {
    {"keep", InitialValues::Keep}, {"kaiming", InitialValues::Kaiming}, {"xavier", InitialValues::Xavier}};
constexpr Words<BatchNormMode> batchNorms[] = {
    {"file", BatchNormMode::File}, {"train", BatchNormMode::Train}, {"frozen", BatchNormMode::Frozen}};
constexpr Words<DropoutMode> dropouts[] = {{"keep", DropoutMode::Keep}, {"off", DropoutMode::Off}};

template <typename T, size_t n> Result<T> parse(const char *flag, const Words<T> (&table)[n], const std::string &word) {
  std::string known;
  for (const auto &[name, value] : table) {
    if (word == name)
      return value;
    known += (known.empty() ? "" : "|") + std::string(name);
  }
  return Error{std::string("--") + flag + "=" + word + " is unknown; use " + known};
}

template <typename T, size_t n> std::string name(const Words<T> (&table)[n], T wanted) {
  for (const auto &[word, value] : table)
    if (value == wanted)
      return word;
  return "";
}

} // namespace

Result<AttachedLoss> parseLoss(const std::string &word) { return parse("loss", losses, word); }
Result<Optimizer> parseOptimizer(const std::string &word) { return parse("optimizer", optimizers, word); }
Result<InitialValues> parseInitialValues(const std::string &word) { return parse("init", inits, word); }
Result<DropoutMode> parseDropoutMode(const std::string &word) { return parse("dropout", dropouts, word); }

/// The numbers of W0,W1,... or of @FILE, as `flag` takes them: finite ones from 0 on, or above.
static Result<std::vector<double>> parseWeights(const char *flag, const std::string &word, bool mayBeZero) {
  constexpr size_t most = 1 << 17;
  constexpr std::streamsize longestFile = 1 << 22;
  std::string text = word;
  const auto fail = [&](const std::string &what) { return Error{flag + ("=" + word) + ": " + what}; };
  if (!word.empty() && word.front() == '@') {
    std::ifstream file(word.substr(1), std::ios::binary);
    text.resize(longestFile);
    file.read(text.data(), longestFile);
    if (file.bad() || file.gcount() == 0 || file.gcount() == longestFile)
      return fail("the file cannot be read, is empty or has 4 MiB and more");
    text.resize(static_cast<size_t>(file.gcount()));
  }
  std::vector<double> weights;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find_first_of(",\n", begin), text.size());
    std::string number = text.substr(begin, end - begin);
    while (!number.empty() && (number.back() == '\r' || number.back() == ' '))
      number.pop_back();
    number.erase(0, number.find_first_not_of(' '));
    if (number.empty() && end + 1 >= text.size())
      break;
    double weight = 0;
    const bool isNumber = parseNumber(number, weight) && weight <= std::numeric_limits<float>::max();
    if (!isNumber || !(mayBeZero ? weight >= 0 : static_cast<float>(weight) > 0))
      return fail("'" + number.substr(0, 40) + "' is no finite number " + (mayBeZero ? "of 0 or more" : "above 0"));
    weights.push_back(weight);
    if (weights.size() > most)
      return fail("more than " + std::to_string(most) + " numbers");
  }
  return weights;
}

Result<std::vector<double>> parseClassWeights(const std::string &word) {
  Result<std::vector<double>> weights = parseWeights("--class-weights", word, /*mayBeZero=*/true);
  if (weights && std::none_of(weights->begin(), weights->end(), [](double weight) { return weight > 0; }))
    return Error{"--class-weights=" + word + ": no class has a weight above 0"};
  return weights;
}

Result<std::vector<double>> parsePosWeights(const std::string &word) {
  Result<std::vector<double>> weights = parseWeights("pos-weight", word, /*mayBeZero=*/false);
  if (weights && weights->empty())
    return Error{"pos-weight=" + word + ": no weight is given"};
  return weights;
}

/// synchronized,ranks=N: of the nodes that take their batch's statistics at all.
static Status parseSynchronized(const std::string &word, TrainingSpec &spec) {
  const std::string form = "synchronized,ranks=";
  int64_t ranks = 0;
  if (word.compare(0, form.size(), form) != 0 || !parseNumber(word.substr(form.size()), ranks) || ranks < 2 ||
      ranks > mostRanks)
    return Error{"--batch-norm=" + word + ": synchronized takes ranks=N, N from 2 to " + std::to_string(mostRanks) +
                 ": the batches of so many ranks are normalized together"};
  spec.normRanks = static_cast<int>(ranks);
  return Success{};
}

Status parseBatchNorm(const std::string &word, TrainingSpec &spec) {
  const std::string synchronized = "synchronized";
  if (word.compare(0, synchronized.size(), synchronized) == 0)
    return parseSynchronized(word, spec);
  const size_t colon = word.find(':');
  Result<BatchNormMode> mode = parse("batch-norm", batchNorms, word.substr(0, colon));
  if (!mode)
    return Error{mode.error() + "|synchronized,ranks=N"};
  if (colon == std::string::npos)
    spec.batchNorm = *mode;
  else if (colon + 1 == word.size())
    return Error{"--batch-norm=" + word + " has no regular expression behind its colon"};
  else
    spec.batchNormRules.push_back({*mode, word.substr(colon + 1)});
  return Success{};
}

/// One option of --adapter but the targets; false where it is unknown or its value makes no sense.
static bool takeAdapterOption(const std::string &option, AdapterRequest &request) {
  const size_t equals = option.find('=');
  const std::string name = option.substr(0, equals), value = equals == option.npos ? "" : option.substr(equals + 1);
  if (name == "rank")
    return parseNumber(value, request.rank) && request.rank >= 1 && request.rank <= AdapterRequest::largestRank;
  if (name == "alpha")
    return parseNumber(value, request.alpha) && std::isfinite(request.alpha) && request.alpha > 0;
  if (name == "dropout")
    return parseNumber(value, request.dropout) && request.dropout >= 0 && request.dropout < 1;
  request.rootOfRank |= option == "rslora";
  return option == "rslora";
}

Result<AdapterRequest> parseAdapter(const std::string &word) {
  static constexpr char targets[] = "targets=";
  const std::string form = std::string("; use ") + adapterForm;
  AdapterRequest request;
  size_t end = std::min(word.find(','), word.size());
  request.hasMagnitude = word.substr(0, end) == "dora";
  if (!request.hasMagnitude && word.substr(0, end) != "lora")
    return Error{"--adapter=" + word + " is unknown" + form};
  while (end < word.size()) {
    const size_t begin = end + 1;
    if (word.compare(begin, sizeof targets - 1, targets) == 0) {
      request.targets = word.substr(begin + sizeof targets - 1);
      if (request.targets.empty())
        return Error{"--adapter=" + word + " has no regular expression behind targets="};
      break;
    }
    end = std::min(word.find(',', begin), word.size());
    if (const std::string option = word.substr(begin, end - begin); !takeAdapterOption(option, request))
      return Error{"--adapter: '" + option + "' is no option with a value that makes sense" + form};
  }
  return request;
}

/// One option of --frozen; false where the form has none of the name, or it makes no sense.
static bool takeFrozenOption(const std::string &option, FrozenForm &form) {
  static constexpr char group[] = "group=";
  if (option == "asymmetric") {
    const bool hasZeros = form.coding != Coding::NormalFloat && form.bits != 16;
    form.coding = hasZeros ? Coding::Asymmetric : form.coding;
    return hasZeros;
  }
  return form.bits != 16 && option.compare(0, sizeof group - 1, group) == 0 &&
         parseNumber(option.substr(sizeof group - 1), form.group) && form.group >= 1 &&
         form.group <= FrozenForm::largestGroup;
}

Result<FrozenForm> parseFrozen(const std::string &word, const std::string &precision) {
  FrozenForm form;
  size_t end = std::min(word.find(','), word.size());
  form.word = word.substr(0, end);
  form.coding = form.word == "nf4" ? Coding::NormalFloat : Coding::Symmetric;
  form.bits = form.word == "bf16" ? 16 : form.word == "int8" ? 8 : form.word == "int4" || form.word == "nf4" ? 4 : 0;
  if (form.bits == 0)
    return Error{"--frozen=" + word + " is unknown; use " + frozenForm};
  if (form.bits == 16 && precision == "fp16")
    return Error{"--frozen=bf16 does not go with --precision=fp16, which would round weights twice: use int8 or int4"};
  while (end < word.size()) {
    const size_t begin = end + 1;
    end = std::min(word.find(',', begin), word.size());
    if (const std::string option = word.substr(begin, end - begin); !takeFrozenOption(option, form))
      return Error{"--frozen: '" + option + "' is no option of " + form.word + "; use " + frozenForm +
                   ", where N goes from 1 to " + std::to_string(FrozenForm::largestGroup)};
  }
  return form;
}

Status checkPrecision(const std::string &word, Target target) {
  const bool all = factsOf(target).reducedPrecision, some = word == "tf32" || word == "fp16";
  const std::string known = all ? "fp32, tf32, bf16 or fp16" : "fp32 or bf16";
  if (word != "fp32" && word != "bf16" && !some)
    return Error{"--precision=" + word + " is unknown; use " + known};
  if (some && !all)
    return Error{"--precision=" + word + " does not go with --target=" + factsOf(target).name + ": " +
                 (word == "fp16"
                      ? "oneDNN 2.6 has neither convolutions nor products of fp16, whatever the processor; use "
                        "bf16, which is as small and needs no scale of the loss, or --target=cuda"
                      : "it is a form of products on GPUs; use " + known)};
  return Success{};
}

/// The N of NAME=N, or nothing where it is no number from `least` on.
static std::optional<int64_t> numberAfter(const std::string &argument, size_t equals, int64_t least) {
  int64_t number = 0;
  const char *end = argument.data() + argument.size();
  if (equals == std::string::npos || equals == 0)
    return std::nullopt;
  auto [stop, failure] = std::from_chars(argument.data() + equals + 1, end, number);
  return failure == std::errc() && stop == end && number >= least ? std::optional(number) : std::nullopt;
}

Status parseDim(const std::string &argument, TrainingSpec &spec) {
  const size_t equals = argument.rfind('=');
  const std::optional<int64_t> extent = numberAfter(argument, equals, 1);
  if (!extent)
    return Error{"--dim " + argument + " is not NAME=N with a positive N"};
  auto [known, added] = spec.dims.emplace(argument.substr(0, equals), *extent);
  if (!added && known->second != *extent)
    return Error{"--dim " + known->first + " is given as " + std::to_string(known->second) + " and as " +
                 std::to_string(*extent)};
  return Success{};
}

Status parseBatchDim(const std::string &argument, TrainingSpec &spec) {
  const size_t equals = argument.rfind('=');
  std::optional<int64_t> dim = numberAfter(argument, equals, 0);
  if (!dim && equals != std::string::npos && equals > 0 && argument.substr(equals + 1) == "none")
    dim = TrainingSpec::noBatch;
  if (!dim)
    return Error{"--batch-dim " + argument + " is not NAME=K with a dimension K from 0 on, or NAME=none"};
  if (!spec.batchDims.emplace(argument.substr(0, equals), *dim).second)
    return Error{"--batch-dim says twice where '" + argument.substr(0, equals) + "' has its batch"};
  return Success{};
}

Status parseInput(const std::string &argument, TrainingSpec &spec) {
  const size_t equals = argument.rfind('=');
  if (equals == std::string::npos || equals == 0 || argument.substr(equals + 1) != "shared")
    return Error{"--input " + argument +
                 " is not NAME=shared; what arrays hold (image or raw) is a flag of the program"};
  spec.shared.insert(argument.substr(0, equals));
  return Success{};
}

std::string toString(AttachedLoss loss) { return name(losses, loss); }
std::string toString(Optimizer optimizer) { return name(optimizers, optimizer); }
std::string toString(InitialValues init) { return name(inits, init); }
std::string toString(BatchNormMode mode) { return name(batchNorms, mode); }
std::string toString(DropoutMode mode) { return name(dropouts, mode); }

} // namespace sluice
