// SPDX-License-Identifier: Apache-2.0
// Times come from the records, work from the program's table; both know ops by the names of profiles.

#include "runtime/program/Roofline.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace sluice {

void RooflineTimes::add(const RooflineTimes &other) {
  seconds += other.seconds, flops += other.flops, bytes += other.bytes;
  arithmetic += other.arithmetic, memory += other.memory, bound += other.bound;
}

RooflineTimes Roofline::sum() const {
  RooflineTimes sum;
  for (const RooflineOp &op : ops)
    sum.add(op.times.value_or(RooflineTimes{op.measured.seconds}));
  return sum;
}

/// A step of several batches does an op's work in each of them, but for updates: calls tell.
static RooflineTimes timesOf(const OpTimes &measured, const WorkRow &work, const Peaks &peaks) {
  RooflineTimes times;
  const double calls = static_cast<double>(measured.calls) / std::max(1, work.calls);
  times.seconds = measured.seconds;
  times.flops = calls * work.flops, times.bytes = calls * work.bytes;
  times.arithmetic = times.flops / peaks.flopsOf(work.arithmetic);
  times.memory = times.bytes / peaks.bandwidthFor(work.bytes / std::max(1, work.calls));
  times.bound = std::max(times.arithmetic, times.memory);
  return times;
}

Roofline rooflineOf(const Program &program, const std::vector<OpRecord> &records, int64_t steps, double stepSeconds,
                    const Peaks &peaks) {
  std::map<std::pair<std::string, std::string>, const WorkRow *> works;
  for (int i = 0; i < program.workRows; ++i)
    works.insert({{program.work[i].node, program.work[i].op}, &program.work[i]});
  std::vector<OpRecord> compute;
  std::copy_if(records.begin(), records.end(), std::back_inserter(compute),
               [](const OpRecord &record) { return record.stream == StreamId::Compute; });
  Roofline roofline{{}, peaks, steps, stepSeconds};
  for (OpTimes &measured : timesOfOps(compute, steps)) {
    const auto work = works.find({measured.node, measured.op});
    std::optional<RooflineTimes> times;
    if (work != works.end())
      times = timesOf(measured, *work->second, peaks);
    roofline.ops.push_back({std::move(measured), times});
  }
  return roofline;
}

namespace {

constexpr const char *head = "        ms  of step      GFLOP        MiB  arithmetic  memory    lost ms";

std::string formatted(const char *format, double value) {
  char out[64];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

/// The columns of `head`.
std::string columns(const RooflineTimes &times, bool known, double step) {
  const std::string taken =
      formatted("%10.3f", times.seconds * 1e3) + formatted("  %5.1f %%", 100 * times.seconds / std::max(1e-12, step));
  if (!known)
    return taken + "          -          -           -       -          -";
  const double seconds = std::max(1e-12, times.seconds);
  return taken + formatted("  %9.3f", times.flops * 1e-9) + formatted("  %9.2f", times.bytes / 1048576) +
         formatted("  %8.1f %%", 100 * times.arithmetic / seconds) +
         formatted("  %4.1f %%", 100 * times.memory / seconds) + formatted("  %9.3f", times.lost() * 1e3);
}

std::string lineOf(const RooflineOp &op, double step) {
  return columns(op.times.value_or(RooflineTimes{op.measured.seconds}), op.times.has_value(), step) + "  " +
         op.measured.op + "  " + printable(op.measured.node) + "\n";
}

std::string peaksText(const Peaks &peaks) {
  std::string out = "peaks:         " + formatted("%.1f GFLOP/s in fp32, ", peaks.flops * 1e-9);
  if (peaks.halfFlops > 0)
    out += formatted("%.1f in bf16, ", peaks.halfFlops * 1e-9);
  std::string separator = "";
  for (const Peaks::Bandwidth &row : peaks.memory) {
    out += separator + formatted("%.1f GB/s", row.rate * 1e-9) + formatted(" up to %.2f MiB", row.bytes / 1048576);
    separator = ", ";
  }
  return out + "; measured on this machine after the run\n";
}

/// Sums over ops of one kind, those that take most first.
std::string kindsText(const Roofline &roofline) {
  struct Kind {
    std::string op;
    RooflineTimes times;
    int nodes = 0;
    bool known = true;
  };
  std::vector<Kind> kinds;
  for (const RooflineOp &op : roofline.ops) {
    auto found = std::find_if(kinds.begin(), kinds.end(), [&](const Kind &kind) { return kind.op == op.measured.op; });
    if (found == kinds.end())
      found = kinds.insert(kinds.end(), {op.measured.op, {}});
    found->times.add(op.times.value_or(RooflineTimes{op.measured.seconds}));
    found->known = found->known && op.times;
    ++found->nodes;
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const Kind &a, const Kind &b) { return a.times.seconds > b.times.seconds; });
  std::string out;
  for (const Kind &kind : kinds)
    out += columns(kind.times, kind.known, roofline.stepSeconds) + "  " + kind.op +
           text("  of ", kind.nodes, kind.nodes == 1 ? " node\n" : " nodes\n");
  return out;
}

/// The step and what of it is in no op: waits, and what runs between kernels.
std::string stepText(const Roofline &roofline) {
  RooflineTimes step = roofline.sum(), between;
  between.seconds = roofline.stepSeconds - step.seconds;
  step.seconds = roofline.stepSeconds;
  return columns(between, false, roofline.stepSeconds) + "  between ops\n" + columns(step, true, roofline.stepSeconds) +
         "  step\n";
}

std::string losersText(const Roofline &roofline) {
  std::vector<const RooflineOp *> losers;
  for (const RooflineOp &op : roofline.ops)
    if (op.times && op.times->lost() > 0)
      losers.push_back(&op);
  std::stable_sort(losers.begin(), losers.end(),
                   [](const RooflineOp *a, const RooflineOp *b) { return a->times->lost() > b->times->lost(); });
  losers.resize(std::min<size_t>(10, losers.size()));
  std::string out;
  for (const RooflineOp *op : losers)
    out += lineOf(*op, roofline.stepSeconds);
  return out;
}

} // namespace

std::string textOf(const Roofline &roofline) {
  std::string all;
  for (const RooflineOp &op : roofline.ops)
    all += lineOf(op, roofline.stepSeconds);
  return peaksText(roofline.peaks) + text("roofline:      ops of a step, median of ", roofline.steps, "\n", head,
                                          "  op  node\n", all, "\nops of one kind\n", head, "  op\n",
                                          kindsText(roofline), "\nthe step\n", head, "\n", stepText(roofline),
                                          "\nops that lose most\n", head, "  op  node\n", losersText(roofline));
}

} // namespace sluice
