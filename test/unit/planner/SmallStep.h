// SPDX-License-Identifier: Apache-2.0
// Steps that a test writes op by op: ops of one second each on buffers of 100 bytes.
#pragma once

#include "passes/planner/Problem.h"

#include <utility>

namespace sluice::planner::test {

struct SmallStep {
  Problem problem;

  explicit SmallStep(double bytesPerSecond) {
    problem.alignment = 1;
    problem.link = {bytesPerSecond, bytesPerSecond, bytesPerSecond, 0};
  }

  int buffer(bool activation) {
    Buffer b;
    b.name = "b" + std::to_string(problem.buffers.size());
    b.bytes = 100;
    b.activation = b.offloadable = activation;
    problem.buffers.push_back(b);
    return static_cast<int>(problem.buffers.size()) - 1;
  }

  void op(Phase phase, std::vector<int> reads, std::vector<int> writes) {
    Op o;
    o.name = "op" + std::to_string(problem.ops.size());
    o.phase = phase;
    o.seconds = 1;
    o.reads = std::move(reads);
    o.writes = std::move(writes);
    problem.ops.push_back(o);
  }
};

} // namespace sluice::planner::test
