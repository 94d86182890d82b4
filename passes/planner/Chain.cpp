// SPDX-License-Identifier: Apache-2.0
// Sums over a chain: peaks, floors and bounds.
#include "passes/planner/Chain.h"

#include "passes/planner/Bounds.h"

#include <algorithm>
#include <cmath>

namespace sluice::planner {

static Status checkArray(const char *name, const std::vector<double> &values, size_t expected) {
  if (values.size() != expected)
    return Error{std::string("'") + name + "' has " + std::to_string(values.size()) + " entries, " +
                 std::to_string(expected) + " are needed"};
  for (size_t i = 0; i < values.size(); ++i)
    // Sums of a million such entries stay exact enough and finite.
    if (!std::isfinite(values[i]) || values[i] < 0 || values[i] > 1e30)
      return Error{std::string("'") + name + "' entry " + std::to_string(i) + " is " + std::to_string(values[i]) +
                   ", it must be between 0 and 1e30"};
  return Success{};
}

Status checkChain(const Chain &chain) {
  const size_t n = chain.uF.size();
  if (n == 0)
    return Error{"chain is empty: 'u_f' has 0 entries, at least 1 is needed"};
  const struct {
    const char *name;
    const std::vector<double> &values;
    size_t expected;
  } arrays[] = {{"u_f", chain.uF, n},   {"u_b", chain.uB, n},   {"x", chain.x, n + 1},    {"y", chain.y, n + 1},
                {"ex_f", chain.exF, n}, {"ex_b", chain.exB, n}, {"saved", chain.saved, n}};
  for (const auto &array : arrays)
    if (Status status = checkArray(array.name, array.values, array.expected); !status)
      return status;
  if (!chain.kinds.empty() && chain.kinds.size() != n)
    return Error{"'op' has " + std::to_string(chain.kinds.size()) + " entries, " + std::to_string(n) + " are needed"};
  if (const double b = chain.bandwidth; b != 0 && !(b >= 1e-9 && b <= 1e30))
    return Error{"'bandwidth' is " + std::to_string(b) + ", it must be 0 or between 1e-9 and 1e30"};
  return Success{};
}

double forwardBytes(const Chain &chain, int i) {
  double bytes = chain.exF[i];
  for (int j = 0; j <= i + 1; ++j)
    bytes += chain.moved(j);
  return bytes;
}

double backwardBytes(const Chain &chain, int i) {
  double bytes = chain.exB[i] + chain.y[i] + chain.y[i + 1];
  for (int j = 0; j <= i + 1; ++j)
    bytes += chain.moved(j);
  return bytes;
}

/// The stage at hand needs its input and its output there, beside what stays of those before it; in the backward half
/// the gradients of both come on top.
double chainNeed(const Chain &chain, const std::vector<bool> &offloaded) {
  double need = 0, kept = 0; // kept: bytes of x_0..x_(i-1) that stay
  for (int i = 0; i <= chain.last(); ++i) {
    const double here = kept + chain.moved(i) + chain.moved(i + 1);
    need = std::max({need, here + chain.exF[i], here + chain.exB[i] + chain.y[i] + chain.y[i + 1]});
    if (!offloaded[i])
      kept += chain.moved(i);
  }
  return need;
}

double chainPeak(const Chain &chain) { return chainNeed(chain, std::vector<bool>(chain.uF.size(), false)); }

double byteSlack(const Chain &chain) { return 1e-12 * (1 + chainPeak(chain)); }

double chainFloor(const Chain &chain) { return chainNeed(chain, std::vector<bool>(chain.uF.size(), true)); }

Seconds chainCompute(const Chain &chain) {
  Seconds total = 0;
  for (int i = 0; i <= chain.last(); ++i)
    total += chain.uF[i] + chain.uB[i];
  return total;
}

Seconds chainBound(const Chain &chain, double memory) {
  const double excess = chainPeak(chain) - memory;
  if (excess <= byteSlack(chain)) // what rounding leaves over has no link to cross, if there is none
    return chainCompute(chain);
  return std::max(chainCompute(chain), 2 * excess / chain.bandwidth);
}

// Sound for any schedule, as each op has to find what it needs within the memory, whatever was done before; the largest
// bound of all ops holds.
Seconds chainRecomputeBound(const Chain &chain, double memory, bool offloads) {
  const double peak = chainPeak(chain), slack = byteSlack(chain);
  Seconds bound = 0;
  const Seconds compute = chainCompute(chain);
  Seconds forward = 0, backward = compute;
  // Any op bounds; the one at the peak misses most. Its own x_i and x_(i+1) must be there.
  for (int i = 0; i <= chain.last(); ++i) {
    backward -= chain.uB[i]; // starts so late
    for (auto [bytes, before] : {std::pair(forwardBytes(chain, i), forward), {backwardBytes(chain, i), backward}}) {
      if (bytes < peak)
        continue;
      double movable = 0;
      std::vector<std::pair<double, Seconds>> parts;
      for (int j = 0; j < i; ++j) {
        movable += offloads && chain.bandwidth > 0 ? chain.moved(j) : 0;
        if (j > 0 && chain.moved(j) > 0)
          parts.push_back({chain.moved(j), chain.uF[j - 1]});
      }
      if (i > 0 && chain.saved[i - 1] > 0) // what came with x_i is not needed by stage i
        parts.push_back({chain.saved[i - 1], chain.uF[i - 1]});
      const double perByte = movable > 0 ? 1 / chain.bandwidth : 0;
      // Less by what rounding may have added: at the smallest memory nothing else may be left to make room with.
      const double missing = bytes - memory - slack;
      bound = std::max(bound, splitBound(before, compute - before, missing, {{movable, perByte, perByte}}, parts));
    }
    forward += chain.uF[i];
  }
  return bound;
}

} // namespace sluice::planner
