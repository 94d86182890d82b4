// SPDX-License-Identifier: Apache-2.0
// The learning rate of every step: a function of the step, of how many there are and, for plateau, of the evaluations
// so far, which checkpoints keep, so that a resumed run goes on as if it had never stopped.
#pragma once

#include "runtime/program/Arguments.h"
#include "runtime/program/Plateau.h"

namespace sluice {

/// Step s of S, from 0, with W steps of warm-up (--warmup, of a share the whole steps in it), a rate of lr and a least
/// one of min. s < W: lr (s+1)/W. Else, with n = S - W and k = s - W:
///   constant   lr
///   step       max(min, lr gamma^floor(k/step_size)); step_size: n/3, rounded up, unless given
///   linear     lr - (lr - min) k/n
///   cosine     min + (lr - min)/2 (1 + cos(pi k/n))
///   plateau    max(min, lr factor^r), r: how often Plateau.h has reduced it
///   one-cycle  torch.optim.lr_scheduler.OneCycleLR with total_steps = S, without warm-up and min; its keys and
///   defaults
class Schedule {
public:
  /// Throws UsageError when --schedule, --warmup and --min-lr make no sense.
  explicit Schedule(const Arguments &arguments);

  /// Sets the rate of step `step` of `steps`, from 0. `base` has the rate that --lr says. One-cycle also sets momentum
  /// or beta1, whichever `optimizer` has, unless cycle_momentum=false.
  void apply(StepState &state, const StepState &base, Program::Optimizer optimizer, int64_t step, int64_t steps,
             int64_t reductions = 0) const;

  /// Steps of warm-up in a run of `steps`.
  int64_t warmupOf(int64_t steps) const;
  double rate(double rate, int64_t step, int64_t steps, int64_t reductions = 0) const;
  double cycledMomentum(int64_t step, int64_t steps) const;
  /// Its rule where that is what the rate goes by; else null.
  const PlateauRule *plateau() const { return kind == Kind::Plateau ? &plateauRule : nullptr; }

private:
  enum class Kind { Constant, Step, Linear, Cosine, OneCycle, Plateau };
  /// A value of the cycle at its start, its peak and its end.
  struct Cycle {
    double start, peak, end;
  };

  void take(const std::string &key, const std::string &value);
  void takeWarmup(const std::string &words);
  double cycled(const Cycle &cycle, int64_t step, int64_t steps) const;

  Kind kind = Kind::Constant;
  int64_t warmup = 0, stepSize = 0;
  double warmupPercent = 0; ///< instead of warmup, of all steps
  PlateauRule plateauRule;
  double minimum = 0, gamma = 0.1;
  double pctStart = 0.3, divFactor = 25, finalDivFactor = 1e4, baseMomentum = 0.85, maxMomentum = 0.95;
  bool linearAnneal = false, threePhase = false, cycleMomentum = true;
};

} // namespace sluice
