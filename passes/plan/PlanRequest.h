// SPDX-License-Identifier: Apache-2.0
// What a command line asks the planner for. plan-memory and reports read it here, so that a report plans what is
// compiled.
#pragma once

#include "passes/strategies/Registry.h"
#include "runtime/TargetTable.h"

#include <optional>
#include <string>

namespace sluice {

/// Words that were read and found to fit together; nothing has been asked of a strategy yet.
struct PlanRequest {
  std::string name; ///< of the strategy
  planner::Options
      options; ///< its knobs, the lossy actions that are allowed, and what programs of the target can carry out
  /// Knob `codec` of every strategy: fp16 packs the floats of all copies, zvc those that are expected to shrink; None:
  /// raw bytes.
  Codec::Kind codec = Codec::None;
  int64_t pool = 0;                  ///< of every zvc of the plan, see Codec: knob `codec=zvc:pool=BYTES`
  int rate = 0;                      ///< of every zfp of the plan that has none of its own, see Codec: knob `rate`
  std::optional<double> errorBudget; ///< see Problem

  /// A codec of the plan with these parameters.
  Codec withParameters(Codec codec) const;
};

/// Reads --strategy=NAME[,k=v...] and --allow-lossy=NAME[,NAME...]; the registry knows the names of
/// strategies and their own knobs. With `oneMemory` nothing is offloaded to the host: its bytes would stay in the same
/// memory. With an error budget above 0 all lossy codecs are allowed unless some are named. `home`: of what is
/// offloaded.
Result<PlanRequest> parsePlanRequest(const std::string &strategy, const std::string &allowLossy, bool oneMemory,
                                     double errorBudget = 0, Space home = Space::Host);

/// What a strategy that is refused because it may not offload needs, for the end of a message.
extern const char *const secondMemoryHint;

} // namespace sluice
