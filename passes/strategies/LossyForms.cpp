// SPDX-License-Identifier: Apache-2.0
// See LossyForms.h.
#include "passes/strategies/LossyForms.h"

#include "passes/planner/Errors.h"
#include "passes/planner/Inversions.h"
#include "passes/planner/Simulate.h"
#include "passes/planner/Words.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::planner {

static double squaredError(const Buffer &buffer, Action action, const std::string &codec) {
  Decision decision;
  decision.action = action;
  decision.codec = codec;
  const double error = errorOf(buffer, decision);
  return error * error;
}

LossyForms::LossyForms(const Problem &problem, const std::vector<Accesses> &accesses,
                       const std::function<bool(const std::string &)> &can)
    : problem(problem), accesses(accesses), can(can), forms(problem.buffers.size()) {
  for (size_t b = 0; b < forms.size(); ++b) {
    const Buffer &buffer = problem.buffers[b];
    if (!buffer.activation || !accesses[b].hasGap())
      continue;
    for (const Encoding &e : buffer.encodings) {
      const double freed = static_cast<double>(aligned(problem, buffer.bytes) - aligned(problem, e.bytes)),
                   squared = squaredError(buffer, Action::Compress, e.codec);
      if (!readDirectly(e.codec) && can(e.codec) && freed > 0 && std::isfinite(squared))
        forms[b].push_back({e.codec, freed, e.encodeSeconds + e.decodeSeconds, squared});
    }
  }
}

std::vector<FormWish> LossyForms::wishes(const std::set<int> &births) {
  std::vector<FormWish> all = {FormWish{}};
  for (int from : births)
    for (double errorShare : {1.0, 0.25, 0.01})
      for (double freed : {0.15, 0.3, 0.5, 0.75, 1.0})
        all.push_back({freed, errorShare, from});
  return all;
}

std::vector<FormWish> LossyForms::around(const FormWish &wish, double step) {
  std::vector<FormWish> all;
  for (double side : {-step, step}) {
    FormWish freed = wish, error = wish;
    freed.freed = std::clamp(wish.freed + side, 0.0, 1.0);
    error.errorShare = std::clamp(wish.errorShare + 3 * side, 0.0, 1.0);
    for (const FormWish &other : {freed, error})
      if (other.freed != wish.freed || other.errorShare != wish.errorShare)
        all.push_back(other);
  }
  return all;
}

std::vector<FormWish> LossyForms::withOtherForms(const FormWish &wish, int buffer) const {
  std::vector<FormWish> all(forms[buffer].size() + 1, wish);
  for (size_t i = 0; i < all.size(); ++i)
    all[i].pinned[buffer] = i < forms[buffer].size() ? forms[buffer][i].codec : "";
  return all;
}

std::vector<int> LossyForms::packable() const {
  std::vector<int> buffers;
  for (int b = 0; b < static_cast<int>(forms.size()); ++b)
    if (!forms[b].empty())
      buffers.push_back(b);
  std::stable_sort(buffers.begin(), buffers.end(),
                   [&](int a, int b) { return problem.buffers[a].bytes > problem.buffers[b].bytes; });
  return buffers;
}

/// What the plan leaves of that share of the squared budget.
double LossyForms::left(const Plan &plan, double share) const {
  const double most = problem.errorBudget.value_or(0), total = totalError(problem, plan);
  return share * most * most - total * total;
}

std::vector<int> LossyForms::candidates(const FormWish &wish, const Plan &plan) const {
  std::vector<int> found;
  for (int b = 0; b < static_cast<int>(forms.size()); ++b)
    if (!forms[b].empty() && plan.decisions[b].action == Action::Keep && accesses[b].first >= wish.from &&
        !wish.pinned.count(b) && mayRound(problem, plan, b, "zfp"))
      found.push_back(b);
  return found;
}

/// Null: none.
const LossyForms::Form *LossyForms::best(int buffer, Prices prices) const {
  const Form *found = nullptr;
  double worth = 0;
  for (const Form &form : forms[buffer])
    if (const double here = prices.bytes * form.freed - form.seconds - prices.squared * form.squared; here > worth) {
      worth = here;
      found = &form;
    }
  return found;
}

LossyForms::Totals LossyForms::totals(const std::vector<int> &buffers, Prices prices) const {
  Totals sum;
  for (int b : buffers)
    if (const Form *form = best(b, prices)) {
      sum.freed += form->freed;
      sum.seconds += form->seconds;
      sum.squared += form->squared;
    }
  return sum;
}

/// The geometric middle of an interval, as often halved as tells apart what matters here.
template <typename Holds> static double smallestThat(double low, double high, Holds holds) {
  for (int step = 0; step < 24 && high / low > 1.02; ++step) {
    const double middle = std::sqrt(low) * std::sqrt(high);
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

/// Bytes are dear enough that `freed` are freed, squared error dear enough that it stays below `squared`.
LossyForms::Prices LossyForms::pricesFor(const std::vector<int> &buffers, double freed, double squared) const {
  constexpr double cheapest = 1e-16, dearest = 1; // of bytes, whose share of a second is at most a device's bandwidth
  constexpr double least = 1e-9, most = 1e18;     // of squared errors
  const auto bytesFor = [&](double errors) {
    return smallestThat(cheapest, dearest,
                        [&](double bytes) { return totals(buffers, {bytes, errors}).freed >= freed; });
  };
  const auto within = [&](Prices prices) { return totals(buffers, prices).squared <= squared; };
  if (const Prices careless{bytesFor(0), 0}; within(careless))
    return careless;
  const double errors = smallestThat(least, most, [&](double each) { return within({bytesFor(each), each}); });
  if (const Prices both{bytesFor(errors), errors}; within(both) && totals(buffers, both).freed >= freed)
    return both;
  // So much cannot be freed: seconds do not matter beside bytes.
  const double ratio = smallestThat(1e-9, 1e27, [&](double each) { return within({1, each}); });
  return {1, ratio};
}

void LossyForms::pack(const FormWish &wish, Plan &plan) const {
  const auto take = [&](int b, const std::string &codec, Bytes bytes) {
    plan.decisions[b].action = Action::Compress;
    plan.decisions[b].codec = codec;
    plan.decisions[b].reason = "packed into " + std::to_string(bytes) + " bytes";
  };
  const auto bytesOf = [&](int b, const std::string &codec) { return encodingOf(problem.buffers[b], codec)->bytes; };
  for (const auto &[b, codec] : wish.pinned)
    if (!codec.empty() && plan.decisions[b].action == Action::Keep && encodingOf(problem.buffers[b], codec) &&
        mayRound(problem, plan, b, codec) && squaredError(problem.buffers[b], Action::Compress, codec) <= left(plan, 1))
      take(b, codec, bytesOf(b, codec));
  const std::vector<int> buffers = wish.freed > 0 ? candidates(wish, plan) : std::vector<int>();
  const double room = left(plan, wish.errorShare);
  if (buffers.empty() || room <= 0)
    return;
  double all = 0;
  for (int b : buffers) {
    double most = 0;
    for (const Form &form : forms[b])
      most = std::max(most, form.freed);
    all += most;
  }
  const Prices prices = pricesFor(buffers, std::min(1.0, wish.freed) * all * 0.999, room);
  double sum = 0;
  for (int b : buffers)
    if (const Form *form = best(b, prices); form && sum + form->squared <= room) {
      sum += form->squared;
      take(b, form->codec, bytesOf(b, form->codec));
    }
}

void LossyForms::packCopies(Plan &plan) const {
  const auto copies = [&](const char *codec) {
    return can(codec) && std::any_of(problem.codecRates.begin(), problem.codecRates.end(),
                                     [&](const auto &rate) { return rate.first == codec; });
  };
  const bool zeros = copies("zvc") && problem.zerosStay, halves = copies("fp16");
  const auto seconds = [&](int b, const std::string &codec) {
    Decision with;
    with.codec = codec;
    return copySeconds(problem, b, with, true) + copySeconds(problem, b, with, false);
  };
  std::vector<std::pair<double, int>> gains; // seconds for each squared error, negative
  for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b) {
    Decision &d = plan.decisions[b];
    if (d.action != Action::Offload)
      continue;
    const Buffer &buffer = problem.buffers[b];
    d.codec = zeros && packsOnCopies(buffer, "zvc") && zerosPay(problem, b, false) ? "zvc" : "";
    const double squared = squaredError(buffer, Action::Offload, "fp16"),
                 gain = seconds(b, d.codec) - seconds(b, "fp16");
    if (halves && packsOnCopies(buffer, "fp16") && std::isfinite(squared) && gain > 0 &&
        mayRound(problem, plan, b, "fp16"))
      gains.push_back({-gain / std::max(squared, 1e-30), b});
  }
  std::sort(gains.begin(), gains.end());
  double room = left(plan, 1);
  for (const auto &[gain, b] : gains)
    if (const double squared = squaredError(problem.buffers[b], Action::Offload, "fp16"); squared <= room) {
      room -= squared;
      plan.decisions[b].codec = "fp16";
    }
}

Answer lossyOrExact(const Problem &problem, Bytes memory, const Options &options, PlanFunction strategy) {
  Answer lossy = strategy(problem, memory, options);
  if (!problem.errorBudget)
    return lossy;
  Problem exactly = problem;
  exactly.errorBudget.reset();
  Options without = options;
  for (const std::string &action : lossyActions())
    without.executable.erase(action);
  Answer exact = strategy(exactly, memory, without);
  const Plan *one = std::get_if<Plan>(&lossy), *other = std::get_if<Plan>(&exact);
  if (one && other)
    return simulate(problem, *other).makespan < simulate(problem, *one).makespan ? exact : lossy;
  const Infeasible *none = std::get_if<Infeasible>(&lossy), *noneExactly = std::get_if<Infeasible>(&exact);
  const bool less = none && noneExactly && noneExactly->smallestMemory < none->smallestMemory;
  return (other && !one) || less ? exact : lossy;
}

} // namespace sluice::planner
