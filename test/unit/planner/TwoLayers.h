// SPDX-License-Identifier: Apache-2.0
// A step that is small enough to be timed by hand.
#pragma once

#include "passes/planner/Plan.h"
#include "passes/planner/Problem.h"
#include "passes/planner/Program.h"

namespace sluice::planner {

/// load; f: a -> z; g: z -> w; backward of g reads z, backward of f reads a and z. One second each.
inline Problem twoLayers() {
  Problem p;
  p.alignment = 1;
  p.link = {10, 10, 10, 0};
  for (const char *name : {"a", "z", "w", "dz", "da"}) {
    Buffer b;
    b.name = name;
    b.bytes = 100;
    p.buffers.push_back(b);
  }
  auto op = [&](const char *name, Phase phase, std::vector<int> reads, std::vector<int> writes) {
    Op o;
    o.name = name;
    o.phase = phase;
    o.seconds = 1;
    o.reads = std::move(reads);
    o.writes = std::move(writes);
    p.ops.push_back(o);
  };
  op("load", Phase::Forward, {}, {0});
  op("f", Phase::Forward, {0}, {1});
  op("g", Phase::Forward, {1}, {2});
  op("bg", Phase::Backward, {2, 1}, {3});
  op("bf", Phase::Backward, {3, 0, 1}, {4});
  p.buffers[0].activation = p.buffers[1].activation = true;
  p.buffers[0].offloadable = p.buffers[1].offloadable = true;
  return p;
}

/// `a` leaves after f and is back for the backward of f.
inline Plan away(const Problem &p, Action action, Codec codec) {
  Plan plan = keepPlan(p);
  plan.decisions[0] = {action, codec, {{1, 2, 3, 4}}, ""};
  return plan;
}

} // namespace sluice::planner
