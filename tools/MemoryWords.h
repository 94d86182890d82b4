// SPDX-License-Identifier: Apache-2.0
// The words of the flags that say how much memory there is, and what may be lost for it.
#pragma once

#include "runtime/Result.h"
#include "tools/Driver.h"

#include <string>
#include <vector>

namespace sluice {

/// Reads the words of --host-budget (SIZE, 0, unlimited, or the arena that takes what is offloaded;
/// empty: none) and --workspace-limit (SIZE; empty:
/// none) and looks at that of --memory-budget, which `options` has with the target and the form of the output.
Status takeMemory(const std::string &hostBudget, const std::string &workspaceLimit, DriverOptions &options);
/// Of a budget that is too small: a note with the unit that was probably meant, a percentage only where `shares` of
/// memory are taken; none for what is no small number without a unit.
std::vector<std::string> unitMeant(const std::string &budget, bool shares);
constexpr const char
    *stateHomeHelp =
        "where optimizer states live between updates: device; storage, the file of --offload-to (host); "
        "or host, its memory (cuda); auto: as many there as a plan within the budget needs, and more where that is "
        "faster (default device)",
    *parameterHomeHelp = "where parameters live between the ops that use them, each fetched for its op: device, "
                         "storage (host) or host (cuda), or auto, as --state-home (default device)",
    *updatesHelp = "where updates run of parameters that are in host memory with all their states: home, by "
                   "threads of the host, to whom gradients go; or device (default home)";
/// --state-home, --parameter-home and --updates, once the target and --shard are known.
Status takeHomes(const std::string &states, const std::string &parameters, const std::string &updates,
                 DriverOptions &options);

/// --parts: a number of parts of the largest loss's rows, or auto; empty: one.
Status takeParts(const std::string &word, PipelineOptions &pipeline);

/// Of --strategy: an unknown one is a mistake of the command line, not of the model.
Status checkStrategy(const std::string &strategy);

/// The same of --allow-lossy (names, separated by commas; empty: none) and --error-budget (a number; empty: none).
Status takeLossy(const std::string &allowLossy, const std::string &errorBudget, DriverOptions &options);

} // namespace sluice
