// SPDX-License-Identifier: Apache-2.0
// Floor and bounds from the problem alone.
#include "passes/planner/Bounds.h"

#include "passes/planner/Program.h"

#include <algorithm>
#include <limits>
#include <set>

namespace sluice::planner {

static Seconds leastSeconds(const Op &op) {
  Seconds least = op.seconds;
  for (const Alternative &a : op.alternatives)
    least = std::min(least, a.seconds);
  return least;
}

static Bytes leastWorkspace(const Op &op) {
  Bytes least = op.workspace;
  for (const Alternative &a : op.alternatives)
    least = std::min(least, a.workspace);
  return least;
}

// Whatever a plan does, an op finds what it touches on the device while it runs.
Bytes memoryFloor(const Problem &problem) {
  Bytes floor = 0;
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k) {
    const Op &op = problem.ops[k];
    std::set<int> touched(op.reads.begin(), op.reads.end());
    touched.insert(op.writes.begin(), op.writes.end());
    Bytes bytes = aligned(problem, leastWorkspace(op));
    for (int b : touched) {
      Bytes least = problem.buffers[b].bytes;
      // A backward op may read the encoded form instead; what is packed comes back as a whole before anybody reads more
      // of it than its mask.
      if (op.phase != Phase::Forward)
        for (const Encoding &e : problem.buffers[b].encodings)
          if (readDirectly(e.codec) || std::count(e.maskReaders.begin(), e.maskReaders.end(), k) > 0)
            least = std::min(least, e.bytes);
      bytes += aligned(problem, least);
    }
    floor = std::max(floor, bytes);
  }
  return problem.base + floor;
}

namespace {

/// The convex trade of splitBound(): bytes by stream against re-runs.
class Trade {
public:
  Trade(Seconds before, Seconds after, double missing, const std::vector<Removal> &streams,
        std::vector<std::pair<double, Seconds>> parts)
      : before(before), after(after), missing(missing), streams(streams), parts(std::move(parts)) {
    std::sort(this->parts.begin(), this->parts.end(),
              [](const auto &a, const auto &b) { return a.second * b.first < b.second * a.first; });
  }

  /// Least makespan when the streams from `first` on may still carry bytes, `carried` are, and their copies take until
  /// `out` and `in` at least.
  Seconds least(size_t first, double carried, Seconds out, Seconds in) const {
    if (first == streams.size())
      return std::max(before, out) + std::max(after + again(missing - carried), in);
    const Removal &r = streams[first];
    const double most = std::min(r.bytes, std::max(0.0, missing - carried));
    auto at = [&](double bytes) {
      return least(first + 1, carried + bytes, std::max(out, bytes * r.out), std::max(in, bytes * r.in));
    };
    if (most <= 0)
      return at(0);
    double low = 0, high = most;
    for (int step = 0; step < 60; ++step) {
      const double third = (high - low) / 3;
      if (at(low + third) < at(high - third))
        high -= third;
      else // where both are infinite more must be carried
        low += third;
    }
    return std::min({at((low + high) / 2), at(0), at(most)}); // the search only comes near the ends
  }

private:
  /// Least seconds to run again what makes so many bytes: the cheapest bytes first, parts of a tensor in proportion.
  /// Infinite where all of them together are fewer.
  Seconds again(double bytes) const {
    Seconds cost = 0;
    for (auto [size, seconds] : parts) {
      if (bytes <= 0)
        return cost;
      cost += size > bytes ? seconds * bytes / size : seconds;
      bytes -= size;
    }
    return bytes > 1e-9 * missing ? std::numeric_limits<Seconds>::infinity() : cost;
  }

  const Seconds before, after;
  const double missing;
  const std::vector<Removal> &streams;
  std::vector<std::pair<double, Seconds>> parts;
};

} // namespace

Seconds splitBound(Seconds before, Seconds after, double missing, const std::vector<Removal> &streams,
                   std::vector<std::pair<double, Seconds>> parts) {
  if (missing <= 0)
    return before + after;
  // The search ends a little beside the minimum.
  return std::max(before + after,
                  (1 - 1e-9) * Trade(before, after, missing, streams, std::move(parts)).least(0, 0, 0, 0));
}

namespace {

/// The bound at single positions of the program that keeps everything.
class PositionBound {
public:
  /// Each op counts with its least time and its least workspace, though no one alternative may have both: the result
  /// stays a bound.
  PositionBound(const Problem &problem, Bytes memory, Abilities actions)
      : problem(problem), memory(memory), actions(actions), accesses(accessesOf(problem)),
        live(liveBytes(problem, expand(problem, keepPlan(problem)))), rerun(problem.buffers.size(), 0) {
    for (const Op &op : problem.ops) {
      live[seconds.size()] -= aligned(problem, op.workspace) - aligned(problem, leastWorkspace(op));
      seconds.push_back(leastSeconds(op));
      compute += seconds.back();
    }
    shareReruns();
  }

  Seconds run() const {
    Seconds bound = compute;
    for (int position : peaks())
      bound = std::max(bound, (1 - 1e-12) * at(position)); // its sums are in another order than a timeline's
    return bound;
  }

private:
  bool can(Ability ability) const { return actions.has(ability); }
  void shareReruns();
  std::vector<int> peaks() const;
  Seconds at(int position) const;

  const Problem &problem;
  const Bytes memory;
  const Abilities actions;
  const std::vector<Accesses> accesses;
  std::vector<Bytes> live;
  std::vector<Seconds> seconds; ///< of the ops
  std::vector<Seconds> rerun;   ///< a buffer's share of its producers' time
  Seconds compute = 0;
};

/// One re-run brings back all that an op writes.
void PositionBound::shareReruns() {
  for (size_t b = 0; b < rerun.size(); ++b)
    for (int producer : problem.buffers[b].producers) {
      const Op &op = problem.ops[producer];
      double all = 0;
      for (int other : op.writes)
        all += static_cast<double>(problem.buffers[other].bytes);
      const Seconds least = op.rerun ? std::min(op.rerun->seconds, seconds[producer]) : seconds[producer];
      rerun[b] += all > 0 ? least * problem.buffers[b].bytes / all : 0;
    }
}

/// Positions above the limit where live bytes are no smaller than beside them, the highest ones.
std::vector<int> PositionBound::peaks() const {
  constexpr size_t most = 24;
  std::vector<int> found;
  const int n = live.size();
  for (int k = 0; k < n; ++k)
    if (live[k] > memory && (k == 0 || live[k] > live[k - 1]) && (k + 1 == n || live[k] >= live[k + 1]))
      found.push_back(k);
  std::stable_sort(found.begin(), found.end(), [&](int a, int b) { return live[a] > live[b]; });
  found.resize(std::min(found.size(), most));
  return found;
}

/// The bound at one position, by splitBound(): what must be away there, what can take it away, and how fast. Every
/// choice is the one that favours plans: the best codec of any buffer is taken for the whole link, parts of a tensor
/// may leave, and an op's own buffers alone have to be there.
Seconds PositionBound::at(int position) const {
  const Op &op = problem.ops[position];
  double missing = static_cast<double>(live[position] - memory);
  const double never = std::numeric_limits<double>::infinity();
  double perByte = can(Codec::Fp16) ? 0.5 : 1;
  for (const Buffer &buffer : problem.buffers) {
    if (problem.zerosStay && can(Codec::Zvc))
      perByte = std::min(perByte, keptShare(buffer));
    for (const Encoding &form : buffer.encodings)
      if (!readDirectly(form.codec) && can(form.codec))
        perByte = std::min(perByte, static_cast<double>(form.bytes) / static_cast<double>(buffer.bytes));
  }
  Removal link = {0, perByte / problem.link.d2h, perByte / problem.link.h2d}, codec = {0, never, never};
  std::vector<std::pair<double, Seconds>> parts;
  for (size_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer &buffer = problem.buffers[b];
    const Accesses &a = accesses[b];
    if (a.first < 0 || a.last < position)
      continue;
    const auto uses = [&](const std::vector<int> &list) {
      return std::find(list.begin(), list.end(), static_cast<int>(b)) != list.end();
    };
    const bool used = uses(op.reads) || uses(op.writes);
    const double raw = static_cast<double>(aligned(problem, buffer.bytes));
    double bytes = raw;
    if (a.lastForward < 0 || a.lastForward >= position || a.firstLater <= a.lastForward) {
      // Between two forward ops, or two backward ops, content may be moved, but not be made again.
      if (a.first < position && !used && buffer.offloadable && can(Action::Offload))
        link.bytes += bytes;
      continue;
    }
    for (const Encoding &e : buffer.encodings) {
      const double form = static_cast<double>(aligned(problem, e.bytes));
      if (!can(e.codec))
        continue;
      if (readDirectly(e.codec) || std::count(e.maskReaders.begin(), e.maskReaders.end(), position) > 0) {
        bytes = std::min(bytes, form);
      } else if (!used && raw > form) {
        codec.bytes += raw - form;
        codec.out = std::min(codec.out, e.encodeSeconds / (raw - form));
        codec.in = std::min(codec.in, e.decodeSeconds / (raw - form));
      }
    }
    missing -= raw - bytes;
    if (used || bytes <= 0)
      continue;
    if (buffer.offloadable && can(Action::Offload))
      link.bytes += bytes;
    if (can(Action::Recompute) && !buffer.producers.empty())
      parts.push_back({bytes, rerun[b] * bytes / raw});
    if (can(Action::Invert) && buffer.inversion)
      parts.push_back({bytes, buffer.inversion->seconds * bytes / raw});
  }
  Seconds before = 0;
  for (int k = 0; k < position; ++k)
    before += seconds[k];
  return seconds[position] + splitBound(before, compute - before - seconds[position], missing, {link, codec}, parts);
}

} // namespace

Seconds actionBound(const Problem &problem, Bytes memory, Abilities actions) {
  return PositionBound(problem, memory, actions).run();
}

} // namespace sluice::planner
