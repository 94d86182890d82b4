// SPDX-License-Identifier: Apache-2.0
// What Session::takeRecords() gave: --trace writes it for chrome://tracing or ui.perfetto.dev, one row per stream;
// --profile-out condenses it to seconds per op, the format that sluicec --profile reads.
#pragma once

#include "runtime/Engines.h"
#include "runtime/Program.h"
#include "runtime/program/GradientErrors.h"
#include "runtime/program/Links.h"

#include <string>
#include <vector>

namespace sluice {

/// How many steps at the start of a run are recorded: enough to see the steady state, small enough to open.
constexpr int64_t recordedSteps = 10;
/// The same when only the report of the plan's actions wants them.
constexpr int64_t reportedSteps = 4;

void writeTrace(const std::string &path, const std::vector<OpRecord> &records);

/// `records` of so many steps: what an op's name stands for takes the median of the steps' sums, in so many calls a
/// step; all together take what a step does. Beside it, where they were counted: shares of zeros in what the calls of a
/// step write. `engines`: the fastest ones, which have not run unless a profile had recorded them before.
/// `errors`: of gradients, where they were measured. `storage`: of the disk of --offload-to, where it was.
void writeProfile(const std::string &path, const std::vector<OpRecord> &records, int64_t recorded,
                  const LinkRates &links, int threads, const std::vector<EngineTime> &engines = {},
                  const std::vector<TensorError> &errors = {}, const std::optional<StorageRates> &storage = {});

} // namespace sluice
