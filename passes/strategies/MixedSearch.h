// SPDX-License-Identifier: Apache-2.0
// The search of the strategy mixed (Mixed.cpp), one for each set of actions that it may use.
#pragma once

#include "passes/strategies/Candidates.h"
#include "passes/strategies/Stages.h"

namespace sluice::planner {

/// The best that a search found.
struct SearchEnd {
  Choice choice;
  std::vector<int> dropped;
  size_t ranking = 0;
};

/// Of one problem and memory; both and the options must outlive it.
class MixedSearch {
public:
  MixedSearch(const Problem &problem, Bytes memory, const Options &options);

  /// `others`: of searches among some of these actions, which this one goes on from.
  Answer run(const std::vector<SearchEnd> &others = {});
  /// The best choice, of forms of this codec alone.
  SearchEnd end(Codec::Kind codec) const;

private:
  void search(const std::vector<SearchEnd> &others);

  /// What trials have in common, one after the other: who is packed in device memory, and how.
  std::vector<Choice> frames() const;

  /// True when a codec makes the largest copy shorter, not only smaller.
  bool copyGains(const Decision &with) const;

  enum class Outcome { Best, Slower, Dear, TooLarge };

  Choice choiceOf(Choice like, const std::vector<int> &dropped) const;
  Outcome attempt(const Choice &choice, const std::vector<int> &dropped);
  bool consider(const std::vector<int> &dropped);
  bool considerNeighbour(const std::vector<int> &changed);
  void sweep(double share);
  void sweepEveryGap(double share);
  void prefixes(const std::vector<int> &order);
  bool considerForms(const FormWish &rates);
  void refineForms(double leave);
  void refine(double leave);
  void disturb();
  void moveSingly();

  const Combiner combiner;
  const Stages stages;
  const Problem &problem;
  const Bytes memory;
  const Options &options;
  double all = 0;    ///< trials to begin with
  double trials = 0; ///< left; one that is given up early counts a quarter
  bool mayRecompute = false, mayOffload = false, mayEncode = false;
  std::vector<Ranking> rankings;
  const Ranking *ranking = nullptr; ///< of the trials to come
  Choice frame;                     ///< what they have in common
  Choice bestChoice;
  const Ranking *bestRanking = nullptr;
  std::vector<int> bestDropped;
  Attempt best;
};

} // namespace sluice::planner
