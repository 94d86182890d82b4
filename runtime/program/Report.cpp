// SPDX-License-Identifier: Apache-2.0
// Everything is printed to standard output; what the system says about this process comes from /proc and may be
// missing.

#include "runtime/program/Report.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/program/Batches.h"
#include "runtime/program/Schedule.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

namespace sluice {

std::string sizeText(size_t bytes) {
  const char *units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0)
    return text(bytes, " bytes");
  char out[32];
  std::snprintf(out, sizeof out, "%.1f %s", value, units[unit]);
  return out;
}

std::string bytesText(size_t bytes) {
  return bytes < 1024 ? sizeText(bytes) : text(bytes, " bytes (", sizeText(bytes), ")");
}

void announceMemory(const Program &program) {
  std::printf("device memory: %s, of them %zu live all the time\n", bytesText(program.deviceBytes).c_str(),
              program.deviceBase);
  std::printf("host memory:   %s", bytesText(program.hostBytes).c_str());
  if (program.others.pool)
    std::printf(", of them %zu for packed activations", program.others.pool);
  if (program.others.pool && runtimeTarget() == Target::Host)
    std::printf("; %zu more with --offload-to, in its file", program.others.spill);
  std::printf("\n");
  if (program.others.storage)
    std::printf("storage:       %s, in the file of --offload-to\n", bytesText(program.others.storage).c_str());
  if (runtimeTarget() == Target::Host)
    std::printf("together:      %s\n", bytesText(program.deviceBytes + program.hostBytes).c_str());
  std::fflush(stdout);
}

/// Value in bytes of a "Key:   123 kB" line of a /proc file; false when there is none.
static bool readKilobytes(const char *path, const std::string &key, size_t &bytes) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.compare(0, key.size() + 1, key + ":") == 0) {
      bytes = static_cast<size_t>(std::strtoull(line.c_str() + key.size() + 1, nullptr, 10)) * 1024;
      return true;
    }
  return false;
}

void warnOfEmptyBatch(const std::string &name, const Program &program, int64_t step) {
  std::fprintf(stderr,
               "%s: warning: all targets of a batch of step %lld are ignored (%lld): its loss and its gradients are 0; "
               "this is told once\n",
               printable(name).c_str(), static_cast<long long>(step),
               static_cast<long long>(program.inputs[program.outputs[0].target].ignoreIndex));
}

void printPlan(const Program &program) {
  std::printf("%s\ncompiled by: %s\nstrategy:    %s\n", printable(program.model).c_str(),
              printable(program.commandLine).c_str(), program.strategy);
  announceMemory(program);
  const std::string whose = program.turnCount > 0 ? text(" of turn ", program.turns[program.turnCount - 1].name) : "";
  std::printf("predicted:     %.6g s a step%s of %lld samples, with %d threads\n\n", program.predictedSecondsPerStep,
              whose.c_str(), static_cast<long long>(program.batch), program.threads);
  int width = 6;
  for (int i = 0; i < program.planRows; ++i)
    width = std::max(width, static_cast<int>(printable(program.plan[i].tensor).size()));
  width = std::min(width, 60);
  std::printf("%-*s  %14s  %-13s  %-10s  %s\n", width, "tensor", "bytes", "steps", "action", "node");
  for (int i = 0; i < program.planRows; ++i) {
    const PlanRow &row = program.plan[i];
    std::string steps = text(row.firstStep, "-", row.lastStep);
    std::printf("%-*s  %14lld  %-13s  %-10s  %s\n", width, printable(row.tensor).c_str(),
                static_cast<long long>(row.bytes), steps.c_str(), row.action, printable(row.node).c_str());
  }
}

double StepTimes::median() const { return medianOf(seconds.size()); }

double StepTimes::medianOf(size_t first) const {
  if (seconds.empty())
    return 0;
  std::vector<double> later(seconds.begin() + (seconds.size() > 1),
                            seconds.begin() + static_cast<long>(std::min(first, seconds.size())));
  const auto middle = later.begin() + static_cast<long>(later.size() / 2);
  std::nth_element(later.begin(), middle, later.end());
  return *middle;
}

/// Of turns, as often as they come.
double StepTimes::predicted(const Program &program) const {
  double seconds = program.turnCount > 0 ? 0 : program.predictedSecondsPerStep, steps = 0;
  for (int i = 0; i < program.turnCount; ++i) {
    const auto own = static_cast<double>(program.turns[i].steps);
    seconds += own * program.turns[i].predictedSecondsPerStep;
    steps += own;
  }
  return seconds / std::max(1.0, steps) * static_cast<double>(batches);
}

double StepTimes::samplesPerSecond(const Program &program) const {
  return static_cast<double>(program.batch * batches * ranks) / std::max(1e-9, median());
}

void printWhatIsTrained(const Program &program, const Dataset &data, const Arguments &arguments, int64_t done,
                        int64_t last, int64_t ranks) {
  const int64_t batches = arguments.accumulate.value_or(1), rising = Schedule(arguments).warmupOf(last);
  if (done < last && rising > last && arguments.leads)
    std::fprintf(stderr, "%s: warning: --warmup takes %lld steps, the run ends after %lld: none has the rate of --lr\n",
                 printable(arguments.name).c_str(), static_cast<long long>(rising), static_cast<long long>(last));
  if (done >= last)
    std::printf("nothing to train: step %lld is done, the run ends at step %lld\n", static_cast<long long>(done),
                static_cast<long long>(last));
  const std::string together = ranks > 1 ? text(" of each of ", ranks, " ranks") : "";
  if (batches * ranks > 1)
    std::printf("each step has %lld batches of %lld samples%s\n", static_cast<long long>(batches),
                static_cast<long long>(program.batch), together.c_str());
  if (program.normRanks > 1)
    std::printf("BatchNorm normalizes the batches of %d ranks together\n", program.normRanks);
  if (arguments.leads)
    warnOfUnevenBatches(arguments.name, program, batches * ranks);
  if (int64_t dropped = data.dropped())
    std::printf("%lld of %lld samples are left out of every epoch: they do not fill a batch of %lld\n",
                static_cast<long long>(dropped), static_cast<long long>(data.samples()),
                static_cast<long long>(program.batch));
}

void printReport(const Program &program, const Session &session, const StepTimes &times) {
  if (!times.seconds.empty())
    std::printf("time:          %.6g s a step (median of %zu), predicted %.6g%s; %.4g samples/s\n", times.median(),
                times.seconds.size(), times.predicted(program),
                program.bucketCount > 0 ? " for the largest shape"
                : program.turnCount > 0 ? " for the mean of the turns"
                                        : "",
                times.samplesPerSecond(program));
  std::printf("device memory: %zu of %zu bytes touched\n", session.peak(Space::Device), program.deviceBytes);
  std::printf("host memory:   %zu of %zu bytes touched\n", session.peak(Space::Host), program.hostBytes);
  if (program.others.storage)
    std::printf("storage:       %zu of %zu bytes touched\n", session.peak(Space::Storage), program.others.storage);
  if (runtimeTarget() == Target::Host)
    std::printf("together:      %zu of %zu bytes touched\n", session.peak(Space::Device) + session.peak(Space::Host),
                program.deviceBytes + program.hostBytes);
  if (size_t resident = residentPeak())
    std::printf("whole process: %s resident at most\n", bytesText(resident).c_str());
  std::fflush(stdout);
}

/// Whether the op was part of the action.
static bool isOf(const OpRecord &record, const ActionRow &row) {
  return row.role != OpRole::Compute && factsOf(record.node.role).countedAs == row.role &&
         record.node.codec.kind == row.codec.kind && record.node.codec.mask == row.codec.mask;
}

std::vector<MeasuredAction> measureActions(const Program &program, const std::vector<OpRecord> &records, int64_t steps,
                                           int64_t batches) {
  std::vector<MeasuredAction> actions;
  for (int i = 0; i < program.actionRows && steps > 0; ++i) {
    const ActionRow &row = program.actions[i];
    MeasuredAction measured{&row, 0, 0, row.predictedSeconds * static_cast<double>(batches)};
    for (const OpRecord &record : records)
      if (isOf(record, row)) {
        measured.seconds += (record.end - record.start) / static_cast<double>(steps);
        measured.movedBytes += record.bytes;
      }
    measured.movedBytes /= static_cast<size_t>(steps);
    actions.push_back(measured);
  }
  return actions;
}

void printActions(const Program &program, const Session &session, const std::vector<MeasuredAction> &actions,
                  int64_t allSteps) {
  if (actions.empty())
    return;
  std::printf("%-14s %8s %14s %14s %14s %14s\n", "action", "tensors", "bytes", "moved", "predicted ms", "measured ms");
  for (const auto &[row, moved, seconds, predicted] : actions)
    std::printf("%-14s %8d %14lld %14zu %14.3f %14.3f\n", row->action, row->tensors, static_cast<long long>(row->bytes),
                moved, predicted * 1e3, seconds * 1e3);
  if (const Session::PackedBytes packed = session.packedBytes(); packed.raw > 0 && allSteps > 0)
    std::printf("zvc:           %zu of %zu bytes a step were not zero and took %s (%.1f %% saved)\n",
                packed.packed / static_cast<size_t>(allSteps), packed.raw / static_cast<size_t>(allSteps),
                program.others.storage ? "room in a file" : "host memory",
                100.0 * (1 - static_cast<double>(packed.packed) / static_cast<double>(packed.raw)));
  if (const Session::PackedBytes packed = session.packedBytes(); program.others.pool > 0 && allSteps > 0) {
    std::printf("zvc pool:      %zu of %zu bytes used, instead of slots of %zu", packed.poolPeak, program.others.pool,
                program.others.spill);
    if (runtimeTarget() == Target::Host)
      std::printf("; %zu bytes a step went to the file of --offload-to",
                  packed.spilled / static_cast<size_t>(allSteps));
    std::printf("\n");
  }
  std::fflush(stdout);
}

size_t residentNow() {
  size_t bytes = 0;
  readKilobytes("/proc/self/status", "VmRSS", bytes);
  return bytes;
}

size_t residentPeak() {
  size_t bytes = 0;
  readKilobytes("/proc/self/status", "VmHWM", bytes);
  return bytes;
}

LogFields endFields(const Program &program, const Session &session, int64_t steps, const StepTimes &times) {
  LogFields fields = {{"device_peak_bytes", uint64_t{session.peak(Space::Device)}},
                      {"host_peak_bytes", uint64_t{session.peak(Space::Host)}},
                      {"resident_peak_bytes", uint64_t{residentPeak()}},
                      {"steps", steps},
                      {"median_ms", times.median() * 1e3},
                      {"predicted_ms", times.predicted(program) * 1e3}};
  if (runtimeTarget() == Target::Cuda)
    fields.push_back({"driver_bytes", uint64_t{session.driverBytes()}});
  if (const Session::PackedBytes packed = session.packedBytes(); packed.raw > 0 && steps > 0) {
    const auto perStep = [&](size_t bytes) { return static_cast<uint64_t>(bytes) / static_cast<uint64_t>(steps); };
    fields.push_back({"zvc_raw_bytes", perStep(packed.raw)});
    fields.push_back({"zvc_packed_bytes", perStep(packed.packed)});
    if (program.others.pool > 0) {
      fields.push_back({"zvc_pool_peak_bytes", uint64_t{packed.poolPeak}});
      fields.push_back({"zvc_spilled_bytes", perStep(packed.spilled)});
    }
  }
  return fields;
}

} // namespace sluice
