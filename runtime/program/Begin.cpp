// SPDX-License-Identifier: Apache-2.0
// Kernels come first: what they need is known before any memory is taken.
#include "runtime/program/Begin.h"

#include "runtime/Errors.h"
#include "runtime/Kernels.h"
#include "runtime/Printable.h"
#include "runtime/Ranks.h"
#include "runtime/Watchdog.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sys/stat.h>
#include <thread>

namespace sluice {

void prepareKernels(const Program &program, const Entry &entry, std::optional<int64_t> wanted) {
  // Beside a GPU threads only draw weights and gather batches, which no plan depends on.
  const int64_t usual =
      runtimeTarget() == Target::Cuda ? std::max(1u, std::thread::hardware_concurrency()) : program.threads;
  setThreads(static_cast<int>(wanted.value_or(usual)));
  setKernelPolicy(program.workspaceLimit, program.precision); // the limit depends on it
  limitInstructions(program.level);
  setRecordedEngines(program.engines, program.engineCount);
  try {
    entry.makeKernels();
    buildPrimitives();
  } catch (const MemoryNotAvailable &error) {
    if (runtimeTarget() == Target::Cuda || threads() == program.threads)
      throw;
    throw MemoryNotAvailable(text(error.what(), "; the plan was made for ", program.threads, " threads, there are ",
                                  threads(), ": run with --threads ", program.threads,
                                  ", or compile again with sluicec --threads=", threads()));
  }
}

std::unique_ptr<Session> openSession(const Program &program, size_t deviceBytes, const char *hostFile) {
  return std::make_unique<Session>(deviceBytes, program.hostBytes, program.events, hostFile, program.others);
}

/// A kernel that runs for a hundred times what the longest one was predicted to take will hardly end; who waits for it
/// learns which one it is. Of several ranks the one that it belongs to ends all, as one that stands still does; those
/// that wait for it meanwhile, or for one that is slow, say for which.
static void watch(Session &session, const Program &program, std::function<void(const std::string &)> say) {
  const double longest = program.predictedSecondsOfLongest;
  Ranks *ranks = session.ranks;
  watchStreams(session, std::max(ranks ? 6.0 : 10.0, 100 * longest),
               [say = std::move(say), longest, ranks](const char *, const Node &node, const char *op, double seconds) {
                 if (ranks && factsOf(node.role).together) {
                   // A rank that is lost is found by then.
                   if (const std::string line = ranks->whatWaits(); seconds >= 10 && !line.empty())
                     say(text(line, ", for ", std::lround(seconds), " s by now"));
                   return;
                 }
                 char times[96];
                 std::snprintf(times, sizeof times, "%.0f s, no kernel or copy was predicted to take more than %.3g",
                               seconds, longest);
                 const std::string line = text("node '", nameOf(node), "' (", op, ") has been running for ", times);
                 if (ranks)
                   ranks->endAll(line);
                 say(line);
               });
}

void beginSession(Session &session, const Program &program, const StepState &state,
                  std::map<int, ParameterGroup> groups, bool graphs, std::function<void(const std::string &)> say,
                  const GivenLater &later) {
  session.state = state;
  session.enableGraphs(graphs);
  watch(session, program, std::move(say));
  session.groups = std::move(groups);
  initializeVariables(session, program, state.seed, later);
}

void requireUnused(const std::string &flag, const std::string &path) {
  struct stat status;
  if (lstat(path.c_str(), &status) == 0)
    throw UsageError(text(flag, " ", path, ": exists already"));
}

} // namespace sluice
