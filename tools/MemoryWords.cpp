// SPDX-License-Identifier: Apache-2.0
// On the host a second arena lies in the same memory, so that a budget is of both unless --host-budget says otherwise.
#include "tools/MemoryWords.h"

#include "passes/plan/Budget.h"

namespace sluice {

static std::string takeSize(const char *flag, const std::string &text, const char *others, int64_t &into) {
  const auto bytes = parseSize(text);
  if (!bytes)
    return std::string(flag) + " takes bytes, 600MiB or 8GiB" + others + ", not '" + text + "'";
  into = *bytes;
  return "";
}

std::string takeMemory(const std::string &hostBudget, const std::string &workspaceLimit, DriverOptions &options) {
  PipelineOptions &pipeline = options.pipeline;
  pipeline.oneMemory = pipeline.target == Target::Host && hostBudget.empty() &&
                       (!pipeline.budget.empty() || options.emit == Emit::Report);
  std::string wrong;
  if (hostBudget == "0")
    pipeline.hostBudget = 0;
  else if (!hostBudget.empty() && hostBudget != "unlimited")
    wrong = takeSize("--host-budget", hostBudget, ", 0 or unlimited", pipeline.hostBudget);
  if (wrong.empty() && !workspaceLimit.empty())
    wrong = takeSize("--workspace-limit", workspaceLimit, "", pipeline.workspaceLimit);
  // The words alone: what a percentage is of, plan-memory knows.
  if (wrong.empty() && !pipeline.budget.empty() && !parseBudget(pipeline.budget, 1 << 20, 0))
    wrong = "--memory-budget takes bytes, 600MiB, 8GiB, 40% or 40%act, not '" + pipeline.budget + "'";
  return wrong;
}

} // namespace sluice
