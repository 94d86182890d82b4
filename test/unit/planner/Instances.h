// SPDX-License-Identifier: Apache-2.0
// How many random instances the tests of the planner run.
#pragma once

namespace sluice::planner::test {

/// How many random instances a test of the planner runs: fewer under sanitizers, where each takes more than ten times
/// as long.
constexpr unsigned instances(unsigned ordinarily) {
#ifdef __SANITIZE_ADDRESS__
  return (ordinarily + 9) / 10;
#else
  return ordinarily;
#endif
}

} // namespace sluice::planner::test
