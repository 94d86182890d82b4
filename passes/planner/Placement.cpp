// SPDX-License-Identifier: Apache-2.0
// Packs by moments; where that ends higher than packing by steps had, by steps. Lives that meet at a moment meet in a
// step, so places by steps are good for both.
#include "passes/planner/Placement.h"

#include "passes/planner/Pack.h"

#include <algorithm>

namespace sluice::planner {

/// Workspaces come last, the others in order of birth, as buffers of a scheduled program do.
static std::vector<Life> inOrderOfBirth(const Program &program) {
  std::vector<Life> lives;
  for (const Life &life : program.lives)
    if (life.bytes > 0)
      lives.push_back(life);
  std::stable_sort(lives.begin(), lives.end(), [](const Life &a, const Life &b) {
    const auto key = [](const Life &life) { return std::pair(life.form == Life::Form::Workspace, life.begin()); };
    return key(a) < key(b);
  });
  return lives;
}

// By moments a workspace and the form that is packed after its op need not meet, though they share a step. Packing
// finer lives may still end higher, as heuristics do.
Placement placeLives(const Problem &problem, const Plan &plan, Bytes enough) {
  const std::vector<Life> lives = inOrderOfBirth(expand(problem, plan));
  std::vector<PackItem> moments, steps;
  for (const Life &life : lives) {
    moments.push_back({"", life.begin(), life.end(), life.bytes, problem.alignment, {}});
    steps.push_back({"", life.first, life.last + 1, life.bytes, problem.alignment, {}});
  }
  countBeginnings(moments);
  PackOptions options;
  options.goodEnough = std::max<Bytes>(0, enough - problem.base);
  Packing packing = pack(moments, options);
  Placement placement;
  if (const Bytes known = plan.arenaBytes - problem.base; known > 0 && packing.height > known) {
    options.goodEnough = known;
    if (Packing other = pack(steps, options); other.height < packing.height)
      packing = std::move(other);
  }
  placement.arena = problem.base + packing.height;
  for (size_t i = 0; i < lives.size(); ++i)
    placement.places.push_back({lives[i], packing.offsets[i]});
  return placement;
}

} // namespace sluice::planner
