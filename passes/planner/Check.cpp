// SPDX-License-Identifier: Apache-2.0
// The plan's shape, contents and bytes, see PlanCheck.h.
#include "passes/planner/Check.h"
#include "passes/planner/PlanCheck.h"

#include <algorithm>
#include <map>

namespace sluice::planner {

/// Numbers and indices, so that nothing after it reads beyond an array.
Status PlanCheck::shape() {
  const int n = problem.ops.size();
  if (plan.decisions.size() != problem.buffers.size())
    return Error{"plan has " + std::to_string(plan.decisions.size()) + " decisions for " +
                 std::to_string(problem.buffers.size()) + " buffers"};
  if (!plan.alternatives.empty() && plan.alternatives.size() != problem.ops.size())
    return Error{"plan has " + std::to_string(plan.alternatives.size()) + " alternatives for " + std::to_string(n) +
                 " ops"};
  for (size_t k = 0; k < plan.alternatives.size(); ++k)
    if (plan.alternatives[k] < 0 ||
        plan.alternatives[k] >= std::max(1, static_cast<int>(problem.ops[k].alternatives.size())))
      return Error{op(k) + " has " + std::to_string(problem.ops[k].alternatives.size()) + " alternatives, plan names " +
                   std::to_string(plan.alternatives[k])};
  int before = 0;
  for (const Recompute &r : plan.recomputes) {
    if (Status status = segment(r); !status)
      return status;
    if (r.before < before)
      return Error{"recompute before op " + std::to_string(r.before) + " stands behind that before op " +
                   std::to_string(before)};
    before = r.before;
  }
  return Success{};
}

/// Only forward ops that may run again do, after their first run.
Status PlanCheck::segment(const Recompute &r) const {
  const int n = problem.ops.size();
  if (r.before < 0 || r.before >= n)
    return Error{"recompute stands before op " + std::to_string(r.before) + ", there are " + std::to_string(n)};
  for (int k : r.ops)
    if (k < 0 || k >= r.before)
      return Error{"recompute before op " + std::to_string(r.before) + " runs op " + std::to_string(k) +
                   ", which has not run yet"};
    else if (problem.ops[k].phase != Phase::Forward || !problem.ops[k].recomputable)
      return Error{op(k) + " may not run twice, plan runs it again before op " + std::to_string(r.before)};
  return Success{};
}

/// The program that the plan describes: all runs in order, where each position begins, and what each run uses of each
/// buffer. Everything else here is read off these lists.
Status PlanCheck::layOut() {
  uses.resize(problem.buffers.size());
  std::vector<std::vector<const Recompute *>> before(problem.ops.size());
  for (const Recompute &r : plan.recomputes)
    before[r.before].push_back(&r);
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k) {
    opens.push_back(runs.size());
    for (const Recompute *r : before[k])
      for (int again : r->ops)
        runs.push_back({again, k, true});
    runs.push_back({k, k, false});
  }
  opens.push_back(runs.size());
  for (int r = 0; r < static_cast<int>(runs.size()); ++r) {
    std::map<int, Use> here;
    const Op &ran = problem.ops[runs[r].op];
    const bool other = runs[r].again && ran.rerun;
    for (int b : other ? ran.rerun->reads : ran.reads)
      here[b] = {r, true, false};
    for (int b : other ? ran.rerun->writes : ran.writes)
      here.emplace(b, Use{r, false, true}).first->second.writes = true;
    for (auto [b, use] : here)
      uses[b].push_back(use);
  }
  noteInversions();
  return Success{};
}

/// Inversions read their sources just before the first run of a position. Bad indices are reported later.
void PlanCheck::noteInversions() {
  for (size_t b = 0; b < plan.decisions.size(); ++b) {
    const Decision &d = plan.decisions[b];
    const int needed = d.absences.empty() ? -1 : d.absences.front().neededBy;
    if (d.action != Action::Invert || !problem.buffers[b].inversion || needed < 0 ||
        needed >= static_cast<int>(problem.ops.size()))
      continue;
    const int run = opens[needed];
    for (int source : problem.buffers[b].inversion->sources) {
      std::vector<Use> &list = uses[source];
      list.insert(std::find_if(list.begin(), list.end(), [&](const Use &use) { return use.run >= run; }),
                  Use{run, true, false, true});
    }
  }
}

bool PlanCheck::isRewritten(int b) const {
  return std::any_of(uses[b].begin(), uses[b].end(), [&](const Use &use) { return use.writes && runs[use.run].again; });
}

/// What each buffer is to have done to it, whatever its absences.
Status PlanCheck::decisions() {
  for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b) {
    const Decision &d = plan.decisions[b];
    if (factsOf(d.action).absences == Absences::None) {
      if (!d.absences.empty())
        return Error{buffer(b) + " is away " + std::to_string(d.absences.size()) + " times, its action allows none"};
      if (d.codec)
        return Error{buffer(b) + " is packed with " + codecName(d.codec) + ", its action packs nothing"};
      if (d.action == Action::Recompute && !isRewritten(b))
        return Error{buffer(b) + " is to be computed again, and nothing that runs again writes it"};
      continue;
    }
    for (auto step : {&PlanCheck::absences, &PlanCheck::allowed})
      if (Status status = (this->*step)(b, d); !status)
        return status;
  }
  return Success{};
}

/// Counts writers: the content that op k expects of a buffer is the number of original writers before k; its re-run may
/// read what its first run wrote. An inversion expects what all forward writers left.
Status PlanCheck::contentOf(int b) const {
  std::vector<int> writers;
  int forward = 0;
  for (const Use &use : uses[b])
    if (use.writes && !runs[use.run].again) {
      writers.push_back(runs[use.run].op);
      forward += problem.ops[writers.back()].phase == Phase::Forward;
    }
  int state = 0;
  const Decision &d = plan.decisions[b];
  for (const Use &use : uses[b]) {
    const Run &run = runs[use.run];
    const int rank = std::lower_bound(writers.begin(), writers.end(), run.op) - writers.begin();
    const bool wroteFirst = rank < static_cast<int>(writers.size()) && writers[rank] == run.op;
    const int expected = use.inverts ? forward : rank + (run.again && wroteFirst && !use.writes);
    const bool bitsOnly = d.action == Action::Encode && run.position >= d.absences.front().freeBefore;
    if ((use.reads || (use.writes && rank > 0)) && !bitsOnly && state != expected)
      return Error{op(run.op) +
                   (use.inverts ? " and an inversion"
                    : run.again ? " again"
                                : "") +
                   " at position " + std::to_string(run.position) + " finds " + buffer(b) + " after " +
                   std::to_string(state) + " writers, it needs " + std::to_string(expected)};
    if (use.writes)
      state = rank + 1;
    if (use.writes && run.again && !use.reads && !d.absences.empty())
      return Error{buffer(b) + " is written again at position " + std::to_string(run.position) +
                   " although it leaves before " + std::to_string(d.absences.front().freeBefore)};
  }
  return Success{};
}

Status PlanCheck::content() {
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    if (Status status = contentOf(b); !status)
      return status;
  return Success{};
}

/// The run with which the bytes end that come back from a packed form; -1: with the last use.
int PlanCheck::lastOfValues(int b) const {
  const Decision &d = plan.decisions[b];
  const std::vector<int> *readers = nullptr;
  for (const Encoding &e : problem.buffers[b].encodings)
    if (d.action == Action::Compress && e.codec == d.codec && !readers)
      readers = &e.maskReaders;
  if (!readers || readers->empty())
    return -1;
  int last = opens[d.absences.front().neededBy + 1] - 1;
  bool tail = false;
  for (const Use &use : uses[b]) {
    const Run &run = runs[use.run];
    const bool mask = !run.again && !use.inverts && std::count(readers->begin(), readers->end(), run.op) > 0;
    if (use.run > last && !mask)
      last = use.run;
    tail = use.run > last;
  }
  return tail ? last : -1;
}

/// The buffer's bytes as changes at runs: those of its lives, less those of its absences, and the forms that stand in
/// for it meanwhile. Until the raw bytes are free, and while they return, both count.
void PlanCheck::addLiveBytes(int b, std::vector<Bytes> &change) const {
  const Decision &d = plan.decisions[b];
  const Bytes size = padded(problem.buffers[b].bytes);
  auto add = [&](int first, int last, Bytes bytes) {
    if (first > last)
      return;
    change[first] += bytes;
    change[last + 1] -= bytes;
  };
  const bool away = !d.absences.empty();
  if (away)
    switch (const Absence &first = d.absences.front(); first.kind()) {
    case AbsenceKind::AroundEnd: // the only one, see visit()
      return add(problem.buffers[b].born ? uses[b].front().run : opens[first.returnAfter + 1],
                 opens[first.freeBefore] - 1, size);
    case AbsenceKind::Between:
      break;
    }
  const int values = away ? lastOfValues(b) : -1;
  // Backwards: between two accesses the bytes are needed unless the later one begins a new life.
  int needed = -1; // last run of the life that the scan is in
  for (int i = static_cast<int>(uses[b].size()) - 1; i >= 0; --i) {
    const Use &use = uses[b][i];
    needed = std::max(needed, use.run);
    bool begins = use.writes && !use.reads && runs[use.run].again;
    int from = use.run;
    if (i == 0) {
      begins = true;
      from = use.writes && !use.reads ? use.run : 0;
    }
    if (!begins)
      continue;
    add(from, needed, size);
    for (const Absence &a : d.absences) {
      const int gone = opens[a.freeBefore], back = factsOf(d.action).returns ? opens[a.returnAfter + 1] : runs.size();
      if (from < gone && needed >= gone)
        add(gone, std::min(needed, back - 1), -size);
    }
    if (values >= 0 && needed > values)
      add(values + 1, needed, -size);
    needed = -1;
  }
  if (!away)
    return;
  // What stands in for the raw bytes meanwhile, of actions with one absence.
  const Absence &only = d.absences.front();
  const int last = d.action == Action::Encode || values >= 0 ? uses[b].back().run : opens[only.neededBy];
  if (d.action == Action::Invert)
    add(opens[only.leaveAfter + 1] - 1, last, padded(problem.buffers[b].inversion->sideBytes));
  if (d.action == Action::Encode || d.action == Action::Compress)
    for (const Encoding &e : problem.buffers[b].encodings)
      if (e.codec == d.codec) {
        add(opens[only.leaveAfter + 1] - 1, last, padded(e.bytes));
        break;
      }
}

/// Live bytes and workspace of each run against the memory. Inversions of one position run one after the other, before
/// its first run, in the largest of their workspaces.
Status PlanCheck::bytes() {
  std::vector<Bytes> change(runs.size() + 1, 0);
  for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
    addLiveBytes(b, change);
  std::vector<Bytes> inverting(problem.ops.size(), 0); // workspace of the inversions at a position
  for (size_t b = 0; b < plan.decisions.size(); ++b)
    if (const Decision &d = plan.decisions[b]; d.action == Action::Invert) {
      Bytes &here = inverting[d.absences.front().neededBy];
      here = std::max(here, problem.buffers[b].inversion->workspace);
    }
  Bytes now = problem.base;
  for (size_t r = 0; r < runs.size(); ++r) {
    now += change[r];
    const Op &op = problem.ops[runs[r].op];
    Bytes workspace = op.workspace;
    if (!plan.alternatives.empty() && !op.alternatives.empty())
      workspace = op.alternatives[plan.alternatives[runs[r].op]].workspace;
    if (runs[r].again && op.rerun)
      workspace = op.rerun->workspace;
    if (opens[runs[r].position] == static_cast<int>(r))
      workspace = std::max(workspace, inverting[runs[r].position]);
    if (now + padded(workspace) > memory)
      return Error{this->op(runs[r].op) + " at position " + std::to_string(runs[r].position) + " needs " +
                   std::to_string(now + padded(workspace)) + " bytes, memory is " + std::to_string(memory)};
  }
  return Success{};
}

Status checkPlan(const Problem &problem, const Plan &plan, Bytes memory) {
  Status status = PlanCheck(problem, plan, memory).check();
  return status ? checkErrors(problem, plan) : status;
}

} // namespace sluice::planner
