// SPDX-License-Identifier: Apache-2.0
// Replays a chain's timeline instant by instant, from its events alone: plain, quadratic, and without any helper of the
// simulator.
#include "passes/planner/ChainSimulate.h"

#include <algorithm>
#include <sstream>

namespace sluice::planner {

namespace {

/// One timeline. Each step takes for granted what the one before has found.
class ChainReplay {
public:
  ChainReplay(const Chain &c, double memory, const std::vector<bool> &offloaded, Release release,
              const ChainTimeline &timeline)
      : c(c), memory(memory), offloaded(offloaded), release(release), t(timeline), n(c.uF.size()), f(n), b(n), out(n),
        in(n) {}

  Status check() {
    for (auto step : {&ChainReplay::collect, &ChainReplay::exclusive, &ChainReplay::ordered, &ChainReplay::copies,
                      &ChainReplay::bytes})
      if (Status status = (this->*step)(); !status)
        return status;
    return Success{};
  }

private:
  struct Span {
    Seconds start = -1, end = -1;
  };
  Status collect();
  Status exclusive();
  Status ordered();
  Status copies();
  Status bytes();
  double bytesAt(Seconds time) const;
  double contentAt(int j, Seconds time) const;

  static std::string num(double v) {
    std::ostringstream s;
    s.precision(12);
    s << v;
    return s.str();
  }

  const Chain &c;
  const double memory;
  const std::vector<bool> &offloaded;
  const Release release;
  const ChainTimeline &t;
  const size_t n;
  std::vector<Span> f, b, out, in;
  const Seconds slack = 1e-9 * (1 + t.makespan);
};

/// Every op once, and a copy out and back of each tensor that is offloaded, of none else.
Status ChainReplay::collect() {
  for (const ChainEvent &e : t.events) {
    if (e.index < 0 || e.index >= int(n) || !(e.start >= -slack) || !(e.end + slack >= e.start) ||
        e.end > t.makespan + slack)
      return Error{e.name() + " runs from " + num(e.start) + " to " + num(e.end) + ", makespan is " + num(t.makespan)};
    auto &spans = e.what == ChainEvent::What::Forward    ? f
                  : e.what == ChainEvent::What::Backward ? b
                  : e.what == ChainEvent::What::Out      ? out
                                                         : in;
    if (spans[e.index].start != -1)
      return Error{e.name() + " appears twice"};
    spans[e.index] = {e.start, e.end};
  }
  for (size_t i = 0; i < n; ++i)
    if (f[i].start == -1 || b[i].start == -1 || (out[i].start != -1) != offloaded[i] ||
        (in[i].start != -1) != offloaded[i])
      return Error{"stage " + std::to_string(i) + " lacks an event or has one too many"};
  return Success{};
}

/// Pairs of what shares compute or the link: two of them may touch, not overlap.
Status ChainReplay::exclusive() {
  for (size_t i = 0; i < t.events.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const ChainEvent &p = t.events[i], &q = t.events[j];
      const bool compute = p.what == ChainEvent::What::Forward || p.what == ChainEvent::What::Backward;
      const bool other = q.what == ChainEvent::What::Forward || q.what == ChainEvent::What::Backward;
      if (compute == other && p.start + slack < q.end && q.start + slack < p.end)
        return Error{p.name() + " at " + num(p.start) + " overlaps " + q.name() + ", which runs until " + num(q.end)};
    }
  return Success{};
}

/// Ops take their time, forward by increasing and backward by decreasing index.
Status ChainReplay::ordered() {
  for (size_t i = 0; i < n; ++i) {
    if (f[i].end - f[i].start + slack < c.uF[i] || b[i].end - b[i].start + slack < c.uB[i])
      return Error{"stage " + std::to_string(i) + " runs shorter than its ops take"};
    if (i > 0 && (f[i].start + slack < f[i - 1].end || b[i - 1].start + slack < b[i].end))
      return Error{"stage " + std::to_string(i) + " runs out of order"};
  }
  return b[n - 1].start + slack < f[n - 1].end ? Status(Error{"backward starts before forward ends"}) : Success{};
}

/// A copy takes the time of its bytes; out after the tensor is made, back after it is out, and before it is read.
Status ChainReplay::copies() {
  for (size_t j = 0; j < n; ++j) {
    if (!offloaded[j])
      continue;
    const std::string x = "x_" + std::to_string(j);
    const Seconds least = c.moved(j) / c.bandwidth;
    if (out[j].end - out[j].start + slack < least || in[j].end - in[j].start + slack < least)
      return Error{"copies of " + x + " are shorter than the link allows, " + num(least) + " seconds"};
    if (j > 0 && out[j].start + slack < f[j - 1].end)
      return Error{x + " leaves at " + num(out[j].start) + ", before it is made at " + num(f[j - 1].end)};
    if (in[j].start + slack < out[j].end)
      return Error{x + " returns at " + num(in[j].start) + ", before it has left at " + num(out[j].end)};
    if (b[j].start + slack < in[j].end)
      return Error{"B_" + std::to_string(j) + " starts at " + num(b[j].start) + ", " + x + " is back at " +
                   num(in[j].end)};
  }
  return Success{};
}

/// Bytes of x_j on the device at a time.
double ChainReplay::contentAt(int j, Seconds time) const {
  const double size = c.x[j] + (j > 0 ? c.saved[j - 1] : 0);
  const Seconds born = j > 0 ? f[j - 1].start : -1, dead = j > 0 ? b[j - 1].end : b[0].end;
  if (time < born - slack || time > dead + slack)
    return 0;
  if (j >= int(n) || !offloaded[j])
    return size;
  if (release == Release::Partial) {
    const double left = std::clamp((time - out[j].start) * c.bandwidth, 0.0, size);
    const double back = std::clamp((time - in[j].start) * c.bandwidth, 0.0, size);
    return size - left + back;
  }
  // At the instant when bytes leave or come the smaller figure is right: who needs them may start at that very moment.
  return time + slack < std::max(out[j].end, f[j].end) || time > in[j].start + slack ? size : 0;
}

double ChainReplay::bytesAt(Seconds time) const {
  double bytes = 0;
  for (int j = 0; j <= int(n); ++j)
    bytes += contentAt(j, time);
  for (size_t i = 0; i < n; ++i) {
    if (time > f[i].start && time < f[i].end)
      bytes += c.exF[i];
    if (time > b[i].start && time < b[i].end)
      bytes += c.exB[i] + c.y[i] + c.y[i + 1];
  }
  return bytes;
}

/// Bytes change linearly between events, so it is enough to look just inside every interval between neighbouring
/// events.
Status ChainReplay::bytes() {
  std::vector<Seconds> times;
  for (const ChainEvent &e : t.events) {
    times.push_back(e.start);
    times.push_back(e.end);
  }
  std::sort(times.begin(), times.end());
  double scale = memory;
  for (size_t k = 1; k < times.size(); ++k) {
    const Seconds width = times[k] - times[k - 1];
    if (width <= 4 * slack)
      continue;
    for (Seconds time : {times[k - 1] + 1.5 * slack, times[k] - 1.5 * slack}) {
      // A partial copy moves bytes during the slack, too.
      const double allowance = 1e-9 * (1 + scale) + 4 * slack * c.bandwidth;
      if (bytesAt(time) > memory + allowance)
        return Error{num(bytesAt(time)) + " bytes are on the device at " + num(time) + ", memory is " + num(memory)};
    }
  }
  return Success{};
}

} // namespace

Status checkChain(const Chain &chain, double memory, const std::vector<bool> &offloaded, Release release,
                  const ChainTimeline &timeline) {
  return ChainReplay(chain, memory, offloaded, release, timeline).check();
}

} // namespace sluice::planner
