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

static double squaredError(const Buffer &buffer, Action action, Codec codec) {
  Decision decision;
  decision.action = action;
  decision.codec = codec;
  const double error = errorOf(buffer, decision);
  return error * error;
}

// Forms without a known error are none: nothing could say whether they fit.
LossyForms::LossyForms(const Problem &problem, const std::vector<Accesses> &accesses, Abilities usable)
    : problem(problem), accesses(accesses), usable(usable), forms(problem.buffers.size()),
      copies(problem.buffers.size()) {
  for (size_t b = 0; b < forms.size(); ++b) {
    const Buffer &buffer = problem.buffers[b];
    addCopies(static_cast<int>(b));
    if (!buffer.activation || !accesses[b].hasGap())
      continue;
    for (const Encoding &e : buffer.encodings) {
      const double freed = static_cast<double>(aligned(problem, buffer.bytes) - aligned(problem, e.bytes)),
                   squared = squaredError(buffer, Action::Compress, e.codec);
      if (!readDirectly(e.codec) && usable.has(e.codec) && freed > 0 && std::isfinite(squared))
        forms[b].push_back({e.codec, freed, e.encodeSeconds + e.decodeSeconds, squared});
    }
  }
}

/// Starting points of the search, coarse: shares of the bytes to free and of the error to spend, and from which birth
/// on.
std::vector<FormWish> LossyForms::wishes(const std::set<int> &births) {
  std::vector<FormWish> all;
  for (double link : {1.0, 0.1, 0.01})
    all.push_back({0, 1, 0, link});
  for (int from : births)
    for (double errorShare : {1.0, 0.25, 0.01})
      for (double freed : {0.15, 0.3, 0.5, 0.75, 1.0})
        all.push_back({freed, errorShare, from});
  return all;
}

/// One number changed at a time, up and down.
std::vector<FormWish> LossyForms::around(const FormWish &wish, double step) {
  std::vector<FormWish> all;
  for (double side : {-step, step}) {
    FormWish freed = wish, error = wish, link = wish;
    freed.freed = std::clamp(wish.freed + side, 0.0, 1.0);
    error.errorShare = std::clamp(wish.errorShare + 3 * side, 0.0, 1.0);
    link.link = wish.link * std::exp2(25 * side); // four times, down to a fifth more
    for (const FormWish &other : {freed, error, link})
      if (other.freed != wish.freed || other.errorShare != wish.errorShare || other.link != wish.link)
        all.push_back(other);
  }
  return all;
}

/// The buffer unpacked, then each of its forms, then each codec of its copies; all else is left to the wish.
std::vector<FormWish> LossyForms::withOtherForms(const FormWish &wish, int buffer) const {
  std::vector<FormWish> all(forms[buffer].size() + 1 + copies[buffer].size(), wish);
  for (size_t i = 0; i < all.size(); ++i)
    if (i <= forms[buffer].size())
      all[i].pinned[buffer] = i > 0 ? forms[buffer][i - 1].codec : Codec();
    else
      all[i].copied[buffer] = copies[buffer][i - 1 - forms[buffer].size()].codec;
  return all;
}

/// The largest first: their forms matter most, and the search may end before all are tried.
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
        !wish.pinned.count(b) && mayRound(problem, plan, b, Codec::Zfp))
      found.push_back(b);
  return found;
}

static bool allows(const FormWish &wish, Codec codec) {
  return wish.only == Codec::None || !rounds(codec) || wish.only == codec.kind;
}

/// Null: none.
const LossyForms::Form *LossyForms::best(int buffer, const FormWish &wish, Prices prices) const {
  const Form *found = nullptr;
  double worth = 0;
  for (const Form &form : forms[buffer])
    if (!allows(wish, form.codec))
      continue;
    else if (const double here = prices.bytes * form.freed - form.seconds - prices.squared * form.squared;
             here > worth) {
      worth = here;
      found = &form;
    }
  return found;
}

LossyForms::Totals LossyForms::totals(const std::vector<int> &buffers, const FormWish &wish, Prices prices) const {
  Totals sum;
  for (int b : buffers)
    if (const Form *form = best(b, wish, prices)) {
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
LossyForms::Prices LossyForms::pricesFor(const std::vector<int> &buffers, const FormWish &wish, double freed,
                                         double squared) const {
  constexpr double cheapest = 1e-16, dearest = 1; // of bytes, whose share of a second is at most a device's bandwidth
  constexpr double least = 1e-9, most = 1e18;     // of squared errors
  const auto at = [&](Prices prices) { return totals(buffers, wish, prices); };
  const auto bytesFor = [&](double errors) {
    return smallestThat(cheapest, dearest, [&](double bytes) { return at({bytes, errors}).freed >= freed; });
  };
  const auto within = [&](Prices prices) { return at(prices).squared <= squared; };
  if (const Prices careless{bytesFor(0), 0}; within(careless))
    return careless;
  const double errors = smallestThat(least, most, [&](double each) { return within({bytesFor(each), each}); });
  if (const Prices both{bytesFor(errors), errors}; within(both) && at(both).freed >= freed)
    return both;
  // So much cannot be freed: seconds do not matter beside bytes.
  const double ratio = smallestThat(1e-9, 1e27, [&](double each) { return within({1, each}); });
  return {1, ratio};
}

// Given forms first, then the others by prices. Prices were found for all candidates together, by bisection: what then
// exceeds the error stays as it is.
void LossyForms::pack(const FormWish &wish, Plan &plan) const {
  const auto take = [&](int b, Codec codec, Bytes bytes) {
    plan.decisions[b].action = Action::Compress;
    plan.decisions[b].codec = codec;
    plan.decisions[b].reason = "packed into " + std::to_string(bytes) + " bytes";
  };
  const auto bytesOf = [&](int b, Codec codec) { return encodingOf(problem.buffers[b], codec)->bytes; };
  for (const auto &[b, codec] : wish.pinned)
    if (codec && plan.decisions[b].action == Action::Keep && encodingOf(problem.buffers[b], codec) &&
        mayRound(problem, plan, b, codec) && squaredError(problem.buffers[b], Action::Compress, codec) <= left(plan, 1))
      take(b, codec, bytesOf(b, codec));
  const std::vector<int> buffers = wish.freed > 0 ? candidates(wish, plan) : std::vector<int>();
  const double room = left(plan, wish.errorShare);
  if (buffers.empty() || room <= 0)
    return;
  // What packing every candidate as tightly as is allowed would free: `freed` is a share of it.
  double all = 0;
  for (int b : buffers) {
    double most = 0;
    for (const Form &form : forms[b])
      most = allows(wish, form.codec) ? std::max(most, form.freed) : most;
    all += most;
  }
  const Prices prices = pricesFor(buffers, wish, std::min(1.0, wish.freed) * all * 0.999, room);
  double sum = 0;
  for (int b : buffers)
    if (const Form *form = best(b, wish, prices); form && sum + form->squared <= room) {
      sum += form->squared;
      take(b, form->codec, bytesOf(b, form->codec));
    }
}

/// The exact copy, with zvc where that is shorter, then lossy ones.
void LossyForms::addCopies(int b) {
  const Buffer &buffer = problem.buffers[b];
  const auto add = [&](Codec codec) {
    Decision with;
    with.action = Action::Offload;
    with.codec = codec;
    CopyForm form{codec, 0, 0, squaredError(buffer, Action::Offload, codec)};
    for (bool toHost : {true, false}) {
      form.link += copySeconds(problem, b, with, toHost);
      form.compute += lostToCopy(problem, b, with, toHost);
    }
    if (std::isfinite(form.squared))
      copies[b].push_back(form);
  };
  const auto can = [&](Codec codec) { return usable.has(codec) && packsOnCopies(problem, b, codec); };
  add(can(Codec::Zvc) && problem.zerosStay && zerosPay(problem, b, false) ? Codec::Zvc : Codec::None);
  if (can(Codec::Fp16))
    add(Codec::Fp16);
  for (const Encoding &form : buffer.encodings)
    if (form.codec != Codec::Fp16 && can(form.codec))
      add(form.codec);
}

/// By what it takes of the link and of compute, and a price of squared error.
const LossyForms::CopyForm &LossyForms::bestCopy(int b, const FormWish &wish, const Plan &plan, double price) const {
  const auto pinned = wish.copied.find(b);
  const CopyForm *found = &copies[b].front();
  const auto cost = [&](const CopyForm &form) { return wish.link * form.link + form.compute + price * form.squared; };
  for (const CopyForm &form : copies[b]) {
    const bool wanted = pinned == wish.copied.end() ? allows(wish, form.codec) && cost(form) < cost(*found)
                                                    : form.codec == pinned->second;
    if (wanted && mayRound(problem, plan, b, form.codec))
      found = &form;
  }
  return *found;
}

// As pack(), but every copy has a form: the exact one where nothing else is left of the error budget.
void LossyForms::packCopies(const FormWish &wish, Plan &plan) const {
  std::vector<int> leaving;
  for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b)
    if (plan.decisions[b].action == Action::Offload) {
      plan.decisions[b].codec = {};
      leaving.push_back(b);
    }
  const double room = left(plan, 1);
  const auto squaredAt = [&](double price) {
    double sum = 0;
    for (int b : leaving)
      sum += bestCopy(b, wish, plan, price).squared;
    return sum;
  };
  const double price =
      squaredAt(0) <= room ? 0 : smallestThat(1e-9, 1e18, [&](double each) { return squaredAt(each) <= room; });
  double sum = 0;
  for (int b : leaving) {
    const CopyForm &form = bestCopy(b, wish, plan, price); // pinned ones may be too much at any price
    plan.decisions[b].codec = sum + form.squared <= room ? form.codec : copies[b].front().codec;
    sum += sum + form.squared <= room ? form.squared : 0;
  }
}

Answer faster(const Problem &problem, Answer one, Answer other) {
  const Plan *a = std::get_if<Plan>(&one), *b = std::get_if<Plan>(&other);
  if (a && b)
    return simulate(problem, *b).makespan < simulate(problem, *a).makespan ? other : one;
  const Infeasible *none = std::get_if<Infeasible>(&one), *noneOther = std::get_if<Infeasible>(&other);
  const bool less = none && noneOther && noneOther->smallestMemory < none->smallestMemory;
  return (b && !a) || less ? other : one;
}

} // namespace sluice::planner
