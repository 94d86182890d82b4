// SPDX-License-Identifier: Apache-2.0
// The words of --schedule, and the formulas.

#include "runtime/program/Schedule.h"

#include "runtime/Errors.h"
#include "runtime/Numbers.h"
#include "runtime/Printable.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace sluice {

namespace {

constexpr double pi = 3.14159265358979323846;

/// The whole of `value` as a number in [least, below).
template <typename Number>
Number numberOf(const std::string &key, const std::string &value, double least, double below) {
  Number parsed = 0;
  if (!parseNumber(value, parsed) || !(static_cast<double>(parsed) >= least) || !(static_cast<double>(parsed) < below))
    throw UsageError(text("--schedule: ", key, " is a number of ", least, " or more",
                          below < 1e6 ? text(" and below ", below) : "", ", got '", value, "'"));
  return parsed;
}

bool switchOf(const std::string &key, const std::string &value) {
  if (value != "true" && value != "false" && value != "1" && value != "0")
    throw UsageError(text("--schedule: ", key, " is true or false, got '", value, "'"));
  return value == "true" || value == "1";
}

} // namespace

Schedule::Schedule(const Arguments &arguments) {
  static const std::pair<const char *, Kind> names[] = {{"constant", Kind::Constant},  {"step", Kind::Step},
                                                        {"linear", Kind::Linear},      {"cosine", Kind::Cosine},
                                                        {"one-cycle", Kind::OneCycle}, {"plateau", Kind::Plateau}};
  std::stringstream words(arguments.schedule.value_or("constant"));
  std::string name, word;
  std::getline(words, name, ',');
  const auto found = std::find_if(std::begin(names), std::end(names), [&](const auto &n) { return name == n.first; });
  if (found == std::end(names))
    throw UsageError(text("--schedule knows no '", name,
                          "'; there are constant, step, linear, cosine, "
                          "one-cycle and plateau"));
  kind = found->second;
  while (std::getline(words, word, ',')) {
    const size_t equals = word.find('=');
    std::string key = word.substr(0, equals);
    std::replace(key.begin(), key.end(), '-', '_');
    take(key, equals == std::string::npos ? "" : word.substr(equals + 1));
  }
  if (arguments.warmup)
    takeWarmup(*arguments.warmup);
  minimum = arguments.minimumRate.value_or(0);
  if (arguments.warmup && kind == Kind::OneCycle)
    throw UsageError("--warmup does not go with --schedule=one-cycle, which warms up by itself (pct_start)");
  if (arguments.minimumRate && (kind == Kind::Constant || kind == Kind::OneCycle))
    throw UsageError(
        text("--min-lr means nothing to --schedule=", name,
             kind == Kind::OneCycle ? "; say final_div_factor" : "; choose step, linear, cosine or plateau"));
}

/// A number of steps, or a share: 5%, 0.05.
void Schedule::takeWarmup(const std::string &words) {
  const bool sign = words.size() > 1 && words.back() == '%';
  double number = 0;
  if (!parseNumber(words.substr(0, words.size() - (sign ? 1 : 0)), number) || !(number >= 0) || !(number < 0x1p62) ||
      (sign && number > 100) || (!sign && number >= 1 && number != std::floor(number)))
    throw UsageError(
        text("--warmup expects a whole number of steps or a share of them, as 500, 5% or 0.05, got '", words, "'"));
  if (sign || number < 1)
    warmupPercent = sign ? number : 100 * number;
  else
    warmup = static_cast<int64_t>(number);
}

void Schedule::take(const std::string &key, const std::string &value) {
  constexpr double unlimited = 1e30;
  if (kind == Kind::Plateau && key == "metric" && !value.empty())
    return (void)(plateauRule.metric = value);
  if (kind == Kind::Step && key == "step_size")
    stepSize = numberOf<int64_t>(key, value, 1, 0x1p62);
  else if (kind == Kind::Step && key == "gamma")
    gamma = numberOf<double>(key, value, 0, unlimited);
  else if (kind == Kind::Plateau && key == "factor")
    plateauRule.factor = numberOf<double>(key, value, 0, 1);
  else if (kind == Kind::Plateau && key == "patience")
    plateauRule.patience = numberOf<int64_t>(key, value, 0, 0x1p62);
  else if (kind == Kind::Plateau && key == "cooldown")
    plateauRule.cooldown = numberOf<int64_t>(key, value, 0, 0x1p62);
  else if (kind == Kind::Plateau && key == "threshold")
    plateauRule.threshold = numberOf<double>(key, value, 0, unlimited);
  else if (kind == Kind::Plateau && key == "threshold_mode" && (value == "rel" || value == "abs"))
    plateauRule.relative = value == "rel";
  else if (kind == Kind::OneCycle && key == "pct_start")
    pctStart = numberOf<double>(key, value, 0, std::nextafter(1.0, 2.0));
  else if (kind == Kind::OneCycle && key == "div_factor")
    divFactor = numberOf<double>(key, value, 1e-30, unlimited);
  else if (kind == Kind::OneCycle && key == "final_div_factor")
    finalDivFactor = numberOf<double>(key, value, 1e-30, unlimited);
  else if (kind == Kind::OneCycle && key == "base_momentum")
    baseMomentum = numberOf<double>(key, value, 0, 1);
  else if (kind == Kind::OneCycle && key == "max_momentum")
    maxMomentum = numberOf<double>(key, value, 0, 1);
  else if (kind == Kind::OneCycle && key == "three_phase")
    threePhase = switchOf(key, value);
  else if (kind == Kind::OneCycle && key == "cycle_momentum")
    cycleMomentum = switchOf(key, value);
  else if (kind == Kind::OneCycle && key == "anneal_strategy" && (value == "cos" || value == "linear"))
    linearAnneal = value == "linear";
  else
    throw UsageError(
        text("--schedule: '", key, "=", value, "' makes no sense; ",
             kind == Kind::Step ? "step takes step_size and gamma"
             : kind == Kind::OneCycle
                 ? "one-cycle takes pct_start, anneal_strategy=cos|linear, div_factor, final_div_factor, three_phase, "
                   "cycle_momentum, base_momentum and max_momentum"
             : kind == Kind::Plateau ? "plateau takes metric, factor, patience, threshold, threshold_mode=rel|abs and "
                                       "cooldown"
                                     : "constant, linear and cosine take nothing"));
}

int64_t Schedule::warmupOf(int64_t steps) const {
  return warmupPercent > 0 ? static_cast<int64_t>(static_cast<double>(steps) * warmupPercent / 100) : warmup;
}

double Schedule::rate(double rate, int64_t step, int64_t steps, int64_t reductions) const {
  if (kind == Kind::OneCycle)
    return cycled({rate / divFactor, rate, rate / divFactor / finalDivFactor}, step, steps);
  const int64_t rising = warmupOf(steps);
  if (step < rising)
    return rate * (static_cast<double>(step) + 1) / static_cast<double>(rising);
  const int64_t done = step - rising, all = std::max<int64_t>(1, steps - rising);
  const double part = static_cast<double>(done) / static_cast<double>(all);
  switch (kind) {
  case Kind::Step: {
    const int64_t size = stepSize > 0 ? stepSize : (all + 2) / 3;
    return std::max(minimum, rate * std::pow(gamma, static_cast<double>(done / size)));
  }
  case Kind::Linear:
    return rate - (rate - minimum) * part;
  case Kind::Cosine:
    return minimum + (rate - minimum) / 2 * (1 + std::cos(pi * part));
  case Kind::Plateau:
    return std::max(minimum, rate * std::pow(plateauRule.factor, static_cast<double>(reductions)));
  case Kind::Constant:
  case Kind::OneCycle:
    break;
  }
  return rate;
}

double Schedule::cycledMomentum(int64_t step, int64_t steps) const {
  return cycled({maxMomentum, baseMomentum, maxMomentum}, step, steps);
}

/// Up to the peak and down to the end; with three phases down to the start first.
double Schedule::cycled(const Cycle &cycle, int64_t step, int64_t steps) const {
  const auto all = static_cast<double>(steps), at = static_cast<double>(step);
  const double last = all - 1, peakAt = pctStart * all - 1, backAt = 2 * pctStart * all - 2;
  double from = cycle.start, to = cycle.peak, begin = 0, end = peakAt;
  if (at > peakAt && threePhase && at <= backAt)
    from = cycle.peak, to = cycle.start, begin = peakAt, end = backAt;
  else if (at > peakAt)
    from = threePhase ? cycle.start : cycle.peak, to = cycle.end, begin = threePhase ? backAt : peakAt, end = last;
  const double part = end > begin ? (at - begin) / (end - begin) : 1;
  return linearAnneal ? from + (to - from) * part : to + (from - to) / 2 * (1 + std::cos(pi * part));
}

void Schedule::apply(StepState &state, const StepState &base, Program::Optimizer optimizer, int64_t step, int64_t steps,
                     int64_t reductions) const {
  state.learningRate = static_cast<float>(rate(static_cast<double>(base.learningRate), step, steps, reductions));
  if (kind != Kind::OneCycle || !cycleMomentum)
    return;
  const OptimizerFacts &facts = factsOf(optimizer);
  const auto value = static_cast<float>(cycledMomentum(step, steps));
  if (facts.momentum >= 0)
    state.momentum = value;
  else if (facts.beta1 >= 0)
    state.beta1 = value;
}

} // namespace sluice
