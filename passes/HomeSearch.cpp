// SPDX-License-Identifier: Apache-2.0
// At the smallest share with a plan activations cost the most, at the smallest one that keeps all of them nothing, and
// what travels costs more from the first to the second: the time may rise in between, fall, or both. Quarters of the
// way are tried, then the neighbours of the fastest at half the distance, and so on. Beyond the second end there is
// room for what is away to come earlier, as long as that is faster.
#include "passes/HomeSearch.h"

#include <algorithm>

using namespace sluice;

std::optional<double> HomeSearch::seconds(int share) {
  const auto [found, isNew] = known.try_emplace(share);
  if (isNew)
    found->second = planned(share);
  return found->second;
}

/// Of two shares that take equally long the smaller one is.
bool HomeSearch::isFaster(int share, int other) {
  const std::optional<double> a = seconds(share), b = seconds(other);
  return a && (!b || *a < *b || (*a == *b && share < other));
}

/// The smallest share that passes; above `all` where none does.
int HomeSearch::least(Keeps test) {
  if (test(0))
    return 0;
  if (!test(all))
    return all + 1;
  int fails = 0, passes = all;
  while (passes - fails > 1) {
    const int middle = (fails + passes) / 2;
    (test(middle) ? passes : fails) = middle;
  }
  return passes;
}

void HomeSearch::between(int first, int last) {
  constexpr int parts = 4;
  int best = first;
  const auto consider = [&](int share) {
    if (first <= share && share <= last && isFaster(share, best))
      best = share;
  };
  for (int part = 1; part <= parts; ++part)
    consider(first + (last - first) * part / parts);
  for (int step = (last - first) / (2 * parts); step > 0; step /= 2)
    for (const int share : {best - step, best + step})
      consider(share);
}

/// One more, two more, four more: until two in a row are no faster.
void HomeSearch::beyond(int share) {
  int best = share;
  for (int more = 1, worse = 0; worse < 2 && share + more <= all; more *= 2) {
    const bool faster = isFaster(share + more, best);
    best = faster ? share + more : best;
    worse = faster ? 0 : worse + 1;
  }
}

/// What keeps everything is planned, too, on the way: all that a search of such plans alone would try.
int HomeSearch::leastKeeping() {
  return least([&](int share) { return keeps(share) && seconds(share); });
}

void HomeSearch::run() {
  const int first = least([&](int share) { return seconds(share).has_value(); });
  if (first > all)
    return;
  const int kept = leastKeeping();
  between(first, std::min(kept, all));
  if (kept <= all)
    beyond(kept);
}

void HomeSearch::runKeeping() {
  if (const int kept = leastKeeping(); kept <= all)
    beyond(kept);
}
