// SPDX-License-Identifier: Apache-2.0
// Writing and reading of `train.plan`, see PlanAttribute.h.
#include "passes/PlanAttribute.h"

#include "passes/planner/Words.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace sluice;

namespace {

/// First and last op that touches every buffer, for reports.
struct Lives {
  std::vector<int64_t> first, last;
  explicit Lives(const planner::Problem &problem)
      : first(problem.buffers.size(), -1), last(problem.buffers.size(), -1) {
    for (size_t op = 0; op < problem.ops.size(); ++op)
      for (const auto *list : {&problem.ops[op].reads, &problem.ops[op].writes})
        for (int buffer : *list) {
          if (first[buffer] < 0)
            first[buffer] = op;
          last[buffer] = op;
        }
  }
};

class Dictionary {
public:
  explicit Dictionary(MLIRContext *context) : b(context) {}
  Dictionary &set(StringRef key, int64_t value) { return add(key, b.getI64IntegerAttr(value)); }
  Dictionary &set(StringRef key, double value) { return add(key, b.getF64FloatAttr(value)); }
  Dictionary &set(StringRef key, StringRef value) { return add(key, b.getStringAttr(value)); }
  Dictionary &add(StringRef key, Attribute value) {
    entries.push_back(b.getNamedAttr(key, value));
    return *this;
  }
  DictionaryAttr get() { return b.getDictionaryAttr(entries); }

private:
  Builder b;
  SmallVector<NamedAttribute> entries;
};

int64_t integer(DictionaryAttr entry, StringRef key, int64_t missing = -1) {
  auto value = entry.getAs<IntegerAttr>(key);
  return value ? value.getInt() : missing;
}
double real(DictionaryAttr entry, StringRef key) {
  auto value = entry.getAs<FloatAttr>(key);
  return value ? value.getValueAsDouble() : 0;
}

} // namespace

DictionaryAttr sluice::planAttribute(MLIRContext *context, const planner::Problem &problem, const planner::Plan &plan,
                                     const PlanSummary &summary, const std::vector<ActionCost> &costs,
                                     const std::vector<std::string> &nodes) {
  Builder b(context);
  Lives lives(problem);
  SmallVector<Attribute> decisions, recomputes;
  for (size_t i = 0; i < plan.decisions.size(); ++i) {
    const planner::Decision &d = plan.decisions[i];
    if (!problem.buffers[i].activation)
      continue;
    Dictionary entry(context);
    entry.set("storage", int64_t(problem.buffers[i].id))
        .set("name", problem.buffers[i].name)
        .set("bytes", problem.buffers[i].bytes);
    entry.set("first", lives.first[i])
        .set("last", lives.last[i])
        .set("action", StringRef(planner::actionName(d.action)))
        .set("codec", StringRef(d.codec));
    entry.set("offload_after", int64_t(d.offloadAfter)).set("free_before", int64_t(d.freeBefore));
    entry.set("prefetch_after", int64_t(d.prefetchAfter))
        .set("needed_by", int64_t(d.neededBy))
        .set("reason", StringRef(d.reason));
    entry.set("node", StringRef(nodes[i])).set("seconds", costs[i].seconds).set("stall", costs[i].stall);
    if (costs[i].freesNothing)
      entry.add("frees_nothing", b.getUnitAttr());
    decisions.push_back(entry.get());
  }
  for (const planner::Recompute &r : plan.recomputes) {
    SmallVector<int64_t> ops(r.ops.begin(), r.ops.end());
    recomputes.push_back(
        Dictionary(context).set("before", int64_t(r.before)).add("ops", b.getDenseI64ArrayAttr(ops)).get());
  }
  Dictionary all(context);
  all.set("strategy", StringRef(plan.strategy))
      .set("budget", summary.budget)
      .set("base", summary.base)
      .set("floor", summary.floor);
  all.set("keep_arena", summary.keepArena).set("keep_seconds", summary.keepSeconds).set("seconds", summary.seconds);
  all.set("lower_bound", summary.lowerBound).set("longest", summary.longest).set("arena", int64_t(plan.arenaBytes));
  if (!plan.alternatives.empty()) {
    SmallVector<int64_t> chosen(plan.alternatives.begin(), plan.alternatives.end());
    all.add("alternatives", b.getDenseI64ArrayAttr(chosen));
  }
  return all.add("decisions", b.getArrayAttr(decisions)).add("recomputes", b.getArrayAttr(recomputes)).get();
}

PlanSummary sluice::summaryOfAttribute(DictionaryAttr attribute) {
  PlanSummary s;
  s.budget = integer(attribute, "budget", 0);
  s.base = integer(attribute, "base", 0);
  s.floor = integer(attribute, "floor", 0);
  s.keepArena = integer(attribute, "keep_arena", 0);
  s.keepSeconds = real(attribute, "keep_seconds");
  s.seconds = real(attribute, "seconds");
  s.lowerBound = real(attribute, "lower_bound");
  s.longest = real(attribute, "longest");
  return s;
}

planner::Plan sluice::planOfAttribute(DictionaryAttr attribute, int storages) {
  planner::Plan plan;
  plan.decisions.resize(storages);
  if (auto name = attribute.getAs<StringAttr>("strategy"))
    plan.strategy = name.str();
  plan.arenaBytes = integer(attribute, "arena", 0);
  if (auto list = attribute.getAs<ArrayAttr>("decisions"))
    for (auto entry : list.getAsRange<DictionaryAttr>()) {
      int64_t storage = integer(entry, "storage");
      if (storage < 0 || storage >= storages)
        continue;
      planner::Decision &d = plan.decisions[storage];
      if (auto action = entry.getAs<StringAttr>("action"))
        d.action = planner::findAction(action.getValue()).value_or(d.action);
      if (auto codec = entry.getAs<StringAttr>("codec"))
        d.codec = codec.str();
      if (auto reason = entry.getAs<StringAttr>("reason"))
        d.reason = reason.str();
      d.offloadAfter = integer(entry, "offload_after");
      d.freeBefore = integer(entry, "free_before");
      d.prefetchAfter = integer(entry, "prefetch_after");
      d.neededBy = integer(entry, "needed_by");
    }
  if (auto list = attribute.getAs<ArrayAttr>("recomputes"))
    for (auto entry : list.getAsRange<DictionaryAttr>()) {
      planner::Recompute r;
      r.before = integer(entry, "before");
      if (auto ops = entry.getAs<DenseI64ArrayAttr>("ops"))
        r.ops.assign(ops.asArrayRef().begin(), ops.asArrayRef().end());
      plan.recomputes.push_back(r);
    }
  if (auto chosen = attribute.getAs<DenseI64ArrayAttr>("alternatives"))
    plan.alternatives.assign(chosen.asArrayRef().begin(), chosen.asArrayRef().end());
  return plan;
}
