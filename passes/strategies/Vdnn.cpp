// SPDX-License-Identifier: Apache-2.0
// vdnn-all, vdnn-conv, vdnn-aconv, vdnn-dyn: M. Rhu et al., vDNN: Virtualized Deep Neural Networks for Scalable,
// Memory-Efficient Neural Network Design, MICRO 2016, Section 3; modes as in S. Shriram, A. Garg, P. Kulkarni,
// Dynamic Memory Management for GPU-Based Training of Deep Neural Networks, IPDPS 2019. vdnn: the baseline of that
// name in Beaumont et al., Euro-Par 2020, Section 5.
//
// Rule: offload the input of every layer except activations, softmax and fully connected ones (all), of every
// convolution (conv), or of every second convolution (aconv), whether memory is short or not; the last such layer
// keeps its input. dyn takes the first that fits of: nothing, aconv, conv and all with the fastest kernels, then aconv,
// conv and all where each op has the fastest kernel whose workspace fits beside what is live. vdnn offloads x_i with
// uF_i / |x_i| above a threshold, all or every second one, and keeps the best of all thresholds.
//
// Changed: when bytes leave and return is chosen by our simulator instead of a synchronization at every layer's end
// (vdnnpp's subject), and a tensor counts as a layer's input wherever the program branches. Kernels are an op's
// alternatives. dyn's last profiles with the kernels of least workspace are those before them where nothing faster
// fits. vdnn on a branching program offloads tensors by the time of their last forward reader a byte.
//
// Complexity O(ops) a mode; vdnn O(thresholds * ops), at most 24 thresholds on programs and 200 on chains.
//
// Knobs: kernels=1 takes the kernels of least workspace, the paper's (m); 2 the fastest, its (p); 0 those that every
// plan uses; a program needs --allow-lossy=algorithms for alternatives to exist. stay=0: all that the mode names
// leaves, and ops wait for copies that do not hide; 1 lets such tensors stay on the device where memory allows. Both of
// vdnn-all, vdnn-conv and vdnn-aconv, on programs.
//
// Fails where the mode's set does not make enough room: a mode does not look at the budget.
#include "passes/strategies/Combine.h"
#include "passes/strategies/Kernels.h"
#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <set>

namespace sluice::planner {

namespace {

enum class Mode { All, Conv, AlternateConv };

Mode modeOf(int mode) { return mode == 1 ? Mode::All : mode == 2 ? Mode::Conv : Mode::AlternateConv; }

/// Which layers of a row of kinds have their inputs offloaded.
std::vector<bool> chosenLayers(const std::vector<OpKind> &kinds, Mode mode) {
  std::vector<bool> chosen(kinds.size(), false);
  int lastLayer = -1;
  bool take = true;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const OpKind k = kinds[i];
    const bool passive = k == OpKind::Activation || k == OpKind::Loss;
    if (!passive)
      lastLayer = static_cast<int>(i);
    if (mode == Mode::All)
      chosen[i] = !passive && k != OpKind::FullyConnected;
    if (k == OpKind::Conv && mode != Mode::All) {
      chosen[i] = take || mode == Mode::Conv;
      take = !take;
    }
  }
  if (lastLayer >= 0)
    chosen[lastLayer] = false;
  return chosen;
}

/// Tensors that the chosen layers read, each once: of a branching program several layers may read one.
std::vector<int> inputsOf(const Problem &problem, Mode mode) {
  std::vector<OpKind> kinds;
  std::vector<int> ops;
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k)
    if (problem.ops[k].phase == Phase::Forward) {
      kinds.push_back(problem.ops[k].kind);
      ops.push_back(k);
    }
  const std::vector<bool> chosen = chosenLayers(kinds, mode);
  std::set<int> buffers;
  for (size_t i = 0; i < ops.size(); ++i)
    if (chosen[i])
      for (int b : problem.ops[ops[i]].reads)
        if (problem.buffers[b].offloadable)
          buffers.insert(b);
  return {buffers.begin(), buffers.end()};
}

Choice offloadInputs(const Problem &problem, Mode mode, bool mayStay) {
  Choice choice;
  choice.offloaded = inputsOf(problem, mode);
  choice.mayStay = mayStay;
  return choice;
}

Answer planMode(const Problem &problem, Bytes memory, const Options &options, Mode mode, const char *name) {
  const Combiner combiner(problem, memory, options);
  if (!combiner.can(Action::Offload))
    return Refused{std::string("strategy '") + name + "' needs action 'offload', which the target does not execute"};
  if (Status kernels = checkKernels(problem, options, name); !kernels)
    return Refused{kernels.error()};
  return answerOf(combiner.complete(withWantedKernels(problem, options),
                                    offloadInputs(problem, mode, numberKnob(options, "stay", 0) > 0)),
                  name, memory);
}

ChainAnswer chainMode(const Chain &chain, double memory, Release release, Mode mode, const char *name) {
  if (chain.kinds.empty())
    return Refused{std::string("strategy '") + name + "' chooses by kind of layer, and the problem has no 'op'"};
  return offloadChain(chain, memory, chosenLayers(chain.kinds, mode), release);
}

} // namespace

static Answer planVdnnAll(const Problem &p, Bytes memory, const Options &o) {
  return planMode(p, memory, o, Mode::All, "vdnn-all");
}
static Answer planVdnnConv(const Problem &p, Bytes memory, const Options &o) {
  return planMode(p, memory, o, Mode::Conv, "vdnn-conv");
}
static Answer planVdnnAconv(const Problem &p, Bytes memory, const Options &o) {
  return planMode(p, memory, o, Mode::AlternateConv, "vdnn-aconv");
}

/// The paper's order: fastest kernels with ever more offloading, then the smallest kernels, some of which become faster
/// again where there is room.
Attempt vdnnDyn(const Problem &problem, Bytes memory, bool mayOffload,
                const std::function<Attempt(Plan plan, const std::vector<int> &offloaded)> &attemptOf) {
  const std::vector<int> fast = fastestKernels(problem), small = smallestKernels(problem);
  const std::vector<int> aconv = inputsOf(problem, Mode::AlternateConv), conv = inputsOf(problem, Mode::Conv),
                         all = inputsOf(problem, Mode::All), none;
  Attempt best;
  for (bool downgraded : {false, true})
    for (const std::vector<int> *offloaded : {&none, &aconv, &conv, &all}) {
      if ((downgraded && (fast == small || offloaded == &none)) || (!offloaded->empty() && !mayOffload))
        continue;
      Plan plan = keepPlan(problem);
      if (fast != small) // else there is nothing to choose
        plan.alternatives = downgraded ? small : fast;
      Attempt attempt = attemptOf(std::move(plan), *offloaded);
      if (attempt.feasible && downgraded) {
        takeFasterKernels(problem, memory, attempt.plan);
        attempt = measured(problem, memory, std::move(attempt.plan));
      }
      if (attempt.feasible) // the first that fits, as published, not the fastest
        return attempt;
      improve(best, std::move(attempt));
    }
  return best;
}

static Answer planVdnnDyn(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  return answerOf(vdnnDyn(problem, memory, combiner.can(Action::Offload),
                          [&](Plan plan, const std::vector<int> &offloaded) {
                            Choice choice;
                            choice.offloaded = offloaded;
                            choice.mayStay = false;
                            return combiner.complete(std::move(plan), choice);
                          }),
                  "vdnn-dyn", memory);
}

namespace {

/// At most `most` of the thresholds between the ratios, evenly among the sorted ones, and one below all.
std::vector<double> thresholdsOf(const std::vector<double> &ratios, size_t most) {
  std::set<double> sorted(ratios.begin(), ratios.end());
  sorted.insert(-1);
  const std::vector<double> all(sorted.begin(), sorted.end());
  std::vector<double> tried;
  for (size_t t = 0, step = (all.size() + most - 1) / most; t < all.size(); t += step)
    tried.push_back(all[t]);
  return tried;
}

/// Flags of all candidates above a threshold, and of every second one.
std::pair<std::vector<bool>, std::vector<bool>> above(const std::vector<double> &ratios, double threshold) {
  std::vector<bool> all(ratios.size(), false), second = all;
  bool take = true;
  for (size_t i = 0; i < ratios.size(); ++i)
    if (ratios[i] > threshold) {
      all[i] = true;
      second[i] = take;
      take = !take;
    }
  return {all, second};
}

} // namespace

static Answer planVdnn(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  Attempt best = combiner.attempt({});
  if (best.feasible)
    return answerOf(std::move(best), "vdnn", memory);
  if (!combiner.can(Action::Offload))
    return Refused{"strategy 'vdnn' needs action 'offload', which the target does not execute"};
  std::vector<int> tensors;
  std::vector<double> ratios;
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (problem.buffers[b].offloadable && combiner.accesses[b].hasGap() && problem.buffers[b].bytes > 0)
      tensors.push_back(b);
  std::stable_sort(tensors.begin(), tensors.end(),
                   [&](int a, int b) { return combiner.accesses[a].first < combiner.accesses[b].first; });
  for (int b : tensors)
    ratios.push_back(problem.ops[combiner.accesses[b].lastForward].seconds / problem.buffers[b].bytes);
  for (double threshold : thresholdsOf(ratios, 24)) {
    const auto [all, second] = above(ratios, threshold);
    for (const std::vector<bool> &set : {all, second}) {
      Choice choice;
      for (size_t i = 0; i < tensors.size(); ++i)
        if (set[i])
          choice.offloaded.push_back(tensors[i]);
      improve(best, combiner.attempt(choice));
    }
  }
  return answerOf(std::move(best), "vdnn", memory);
}

std::vector<int> vdnnInputs(const Problem &problem, int mode) { return inputsOf(problem, modeOf(mode)); }

static ChainAnswer chainVdnnAll(const Chain &c, double memory, Release release, const Options &) {
  return chainMode(c, memory, release, Mode::All, "vdnn-all");
}
static ChainAnswer chainVdnnConv(const Chain &c, double memory, Release release, const Options &) {
  return chainMode(c, memory, release, Mode::Conv, "vdnn-conv");
}
static ChainAnswer chainVdnnAconv(const Chain &c, double memory, Release release, const Options &) {
  return chainMode(c, memory, release, Mode::AlternateConv, "vdnn-aconv");
}

/// Chains have one kernel a stage, so dyn is the first of nothing, aconv, conv, all that fits.
static ChainAnswer chainVdnnDyn(const Chain &chain, double memory, Release release, const Options &options) {
  ChainAnswer answer = chainKeep(chain, memory, release, options);
  double least = chainPeak(chain);
  for (Mode mode : {Mode::AlternateConv, Mode::Conv, Mode::All}) {
    if (std::holds_alternative<ChainPlan>(answer))
      return answer;
    answer = chainMode(chain, memory, release, mode, "vdnn-dyn");
    if (auto *none = std::get_if<ChainInfeasible>(&answer))
      least = none->smallestMemory = std::min(least, none->smallestMemory);
  }
  return answer;
}

std::vector<bool> vdnnSet(const Chain &chain, int mode) { return chosenLayers(chain.kinds, modeOf(mode)); }

static ChainAnswer chainVdnn(const Chain &chain, double memory, Release release, const Options &) {
  const size_t n = chain.uF.size();
  std::vector<double> ratio(n);
  for (size_t i = 0; i < n; ++i)
    ratio[i] = chain.moved(i) > 0 ? chain.uF[i] / chain.moved(i) : 0;
  std::vector<std::vector<bool>> sets = {std::vector<bool>(n, false)};
  for (double threshold : thresholdsOf(ratio, 200)) {
    const auto [all, second] = above(ratio, threshold);
    sets.push_back(all);
    sets.push_back(second);
  }
  return bestOffload(chain, memory, sets, release);
}

static Strategy described(const char *name, const char *summary, PlanFunction plan, ChainFunction chain,
                          std::vector<Knob> knobs) {
  Strategy s{name, summary, plan, chain, std::move(knobs)};
  s.actions = {Action::Offload};
  s.takenOver.stages = 64;
  return s;
}

Strategy vdnnStrategy() {
  Strategy s =
      described("vdnn", "threshold on time per byte, as Beaumont et al. 2020 compare with", planVdnn, chainVdnn, {});
  s.weaker = {"vdnn-all"};
  return s;
}
Strategy vdnnAllStrategy() {
  return described("vdnn-all", "offload every layer's input (Rhu et al. 2016)", planVdnnAll, chainVdnnAll,
                   {{"kernels"}, {"stay"}});
}
Strategy vdnnConvStrategy() {
  return described("vdnn-conv", "offload every convolution's input", planVdnnConv, chainVdnnConv,
                   {{"kernels"}, {"stay"}});
}
Strategy vdnnAconvStrategy() {
  return described("vdnn-aconv", "offload every second convolution's input", planVdnnAconv, chainVdnnAconv,
                   {{"kernels"}, {"stay"}});
}
Strategy vdnnDynStrategy() {
  return described("vdnn-dyn", "the first vdnn mode that fits, fastest kernels first", planVdnnDyn, chainVdnnDyn, {});
}

} // namespace sluice::planner
