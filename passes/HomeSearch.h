// SPDX-License-Identifier: Apache-2.0
// How much of what may have its home elsewhere is sent there: plain numbers, so that it is tested on curves.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <optional>

namespace sluice {

/// Tries shares from 0 to `all`, each once at most; who asks for plans remembers the best. More away never needs more
/// memory, so the smallest shares that have a plan, and that keep everything else, are found by halving.
class HomeSearch {
public:
  /// Predicted seconds of a plan with this share away; none without a plan.
  using Planned = llvm::function_ref<std::optional<double>(int share)>;
  /// Whether everything that is not away can be kept.
  using Keeps = llvm::function_ref<bool(int share)>;

  HomeSearch(int all, Planned planned, Keeps keeps) : all(all), planned(planned), keeps(keeps) {}

  /// From the smallest share with a plan to the smallest one that keeps everything, and beyond. Time has a valley at
  /// either end, so that both ends are tried, whatever is between.
  void run();
  /// Only the shares that keep everything.
  void runKeeping();

private:
  std::optional<double> seconds(int share);
  bool isFaster(int share, int other);
  int least(Keeps test);
  int leastKeeping();
  void between(int first, int last);
  void beyond(int share);

  const int all;
  const Planned planned;
  const Keeps keeps;
  std::map<int, std::optional<double>> known;
};

} // namespace sluice
