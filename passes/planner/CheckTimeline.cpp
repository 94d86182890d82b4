// SPDX-License-Identifier: Apache-2.0
// Replays a timeline against its plan: who ran when, and which bytes were on the device meanwhile.
#include "passes/planner/Check.h"

#include <algorithm>
#include <map>

namespace sluice::planner {

namespace {

struct Span {
  Seconds start, end;
};

/// One timeline. The steps over all streams and over compute leave `starts` and `ends` by position,
/// which copies are then held against.
class TimelineCheck {
public:
  TimelineCheck(const Problem &problem, const Plan &plan, const Timeline &timeline)
      : problem(problem), plan(plan), timeline(timeline) {}

  Status check() {
    for (auto step : {&TimelineCheck::indices, &TimelineCheck::streams, &TimelineCheck::order, &TimelineCheck::codecs,
                      &TimelineCheck::collect, &TimelineCheck::exchanges, &TimelineCheck::transfers,
                      &TimelineCheck::usedAtHome, &TimelineCheck::contention})
      if (Status status = (this->*step)(); !status)
        return status;
    return Success{};
  }

private:
  Status indices();
  Status streams();
  Status order();
  Status codecs();
  Status collect();
  Status exchanges() { return checkExchanges(problem, timeline, starts, ends); }
  Status transfers();
  Status usedAtHome() { return checkUsesAtHome(problem, plan, timeline, starts, ends); }
  Status contention();
  Status counted(int b, const Decision &d);
  Status transfer(int b, const Decision &d);
  Status absence(int b, const Absence &away, Span o, Span i);
  Status reuse(int b, const Absence &away, Span i);
  Status duration(int b, const Span &span, bool leaves) const;
  Seconds leastCopy(int b, bool leaves) const;
  Seconds visits(int op) const;
  /// That of an action which has one.
  Absence only(int b) const {
    const std::vector<Absence> &absences = plan.decisions[b].absences;
    return absences.empty() ? Absence() : absences.front();
  }
  std::string name(int b) const { return "'" + problem.buffers[b].name + "'"; }
  Seconds opens(int position) const { return position < int(starts.size()) ? starts[position] : timeline.makespan; }

  const Problem &problem;
  const Plan &plan;
  const Timeline &timeline;
  /// By buffer, in order: copies and jobs of the codec stream.
  std::map<int, std::vector<Span>> out, in;
  std::map<int, Seconds> spent[2];   ///< by buffer: encoding, decoding or inverting on the compute stream
  std::vector<Seconds> starts, ends; ///< of each position's first run and of its own op
  Seconds alone = 0;                 ///< of all that runs on the compute stream, nothing copied beside it
  // Times are sums of doubles in different orders on both sides.
  const Seconds slack = 1e-9 * (1 + timeline.makespan);
};

/// Ops run on compute, and all that is named is there, so that nothing after it reads beyond an array.
Status TimelineCheck::indices() {
  for (const Event &e : timeline.events) {
    const bool exchanges = e.what == Event::What::Exchange;
    const bool runs = e.what == Event::What::Run || e.what == Event::What::Rerun || exchanges;
    const int index = runs ? e.op : e.buffer, count = runs ? problem.ops.size() : problem.buffers.size();
    const int stream = indexOf(e.stream), streams = runs && !exchanges ? indexOf(Stream::Compute) + 1 : streamCount;
    const bool meets = exchanges || (e.what == Event::What::CopyIn && problem.visitorsHome == Space::Device);
    if (index < 0 || index >= count || stream < 0 || stream >= streams ||
        (e.stream == Stream::Communication ? !meets : exchanges) ||
        (e.what == Event::What::Use) != (e.stream == Stream::Home))
      return Error{"event at " + textOf(e.start) + " is of " + (runs ? "op " : "buffer ") + std::to_string(index) +
                   " of " + std::to_string(count) + ", on stream " + std::to_string(stream) + " of " +
                   std::to_string(streams)};
  }
  return Success{};
}

/// One thing at a time on each stream, by start; a link without duplex is one stream for both directions.
Status TimelineCheck::streams() {
  std::map<Stream, Seconds> freeAt;
  for (const Event &e : timeline.events) {
    if (!(e.start >= 0) || !(e.end >= e.start) || e.end > timeline.makespan + slack)
      return Error{"event runs from " + textOf(e.start) + " to " + textOf(e.end) + ", makespan is " +
                   textOf(timeline.makespan)};
    Stream stream = e.stream; // one engine may serve both directions
    if (e.what == Event::What::CopyIn && linkOf(problem, e.buffer).duplex == 0)
      stream = factsOf(homeOf(problem, e.buffer)).out;
    if (e.start + slack < freeAt[stream])
      return Error{std::string("stream ") + factsOf(e.stream).name + " starts at " + textOf(e.start) +
                   " while busy until " + textOf(freeAt[stream])};
    freeAt[stream] = std::max(freeAt[stream], e.end);
  }
  return Success{};
}

/// Compute runs what the plan says in the plan's order, with the codecs and inversions of a position where they belong,
/// and nothing shorter than it takes.
Status TimelineCheck::order() {
  std::vector<std::pair<int, bool>> expected; // op, again
  for (int k = 0; k < static_cast<int>(problem.ops.size()); ++k) {
    for (const Recompute &r : plan.recomputes)
      for (int op : r.before == k ? r.ops : std::vector<int>{})
        expected.push_back({op, true});
    expected.push_back({k, false});
  }
  size_t next = 0;
  bool opens = true, inverting = false;
  for (const Event &e : timeline.events) {
    if (e.stream != Stream::Compute)
      continue;
    if (e.what == Event::What::Encode) { // belongs to the op before
      if (const int last = only(e.buffer).leaveAfter; ends.size() != static_cast<size_t>(last + 1))
        return Error{name(e.buffer) + " is encoded after position " +
                     std::to_string(static_cast<int>(ends.size()) - 1) + ", not after its last " + "forward access " +
                     std::to_string(last)};
      spent[0][e.buffer] += e.end - e.start;
      continue;
    }
    if (opens)
      starts.push_back(e.start);
    const bool first = opens || inverting;
    opens = false;
    inverting = e.what != Event::What::Run && e.what != Event::What::Rerun;
    if (inverting) {
      if (const int needed = only(e.buffer).neededBy; !first || ends.size() != static_cast<size_t>(needed))
        return Error{name(e.buffer) + " is decoded at position " + std::to_string(ends.size()) + ", it is needed by " +
                     std::to_string(needed)};
      spent[1][e.buffer] += e.end - e.start;
      continue;
    }
    if (next == expected.size() || expected[next] != std::pair(e.op, e.what == Event::What::Rerun))
      return Error{"compute runs op " + std::to_string(e.op) + " as number " + std::to_string(next) +
                   ", the plan has another there"};
    Seconds seconds = problem.ops[e.op].seconds;
    if (!plan.alternatives.empty() && !problem.ops[e.op].alternatives.empty())
      seconds = problem.ops[e.op].alternatives[plan.alternatives[e.op]].seconds;
    if (problem.ops[e.op].rerun && e.what == Event::What::Rerun)
      seconds = problem.ops[e.op].rerun->seconds;
    else
      seconds += visits(e.op);
    if (e.end - e.start + slack < seconds)
      return Error{"op " + std::to_string(e.op) + " runs " + textOf(e.end - e.start) + " seconds, it takes " +
                   textOf(seconds)};
    alone += seconds;
    if (e.what == Event::What::Run) {
      ends.push_back(e.end);
      opens = true;
    }
    ++next;
  }
  return next == expected.size()
             ? Status(Success{})
             : Error{"compute runs " + std::to_string(next) + " ops of " + std::to_string(expected.size())};
}

/// Codecs and inversions on the compute stream take their time.
Status TimelineCheck::codecs() {
  for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b) {
    const Decision &d = plan.decisions[b];
    Seconds least[2] = {0, 0};
    if (d.action == Action::Encode)
      for (const Encoding &e : problem.buffers[b].encodings)
        if (e.codec == d.codec) {
          least[0] = e.encodeSeconds;
          least[1] = only(b).neededBy >= 0 ? e.decodeSeconds : 0;
          break;
        }
    if (d.action == Action::Invert)
      least[1] = problem.buffers[b].inversion->seconds;
    alone += least[0] + least[1];
    for (int side : {0, 1})
      if (spent[side][b] + slack < least[side])
        return Error{name(b) + " is " + (side ? "decoded" : "encoded") + " in " + textOf(spent[side][b]) +
                     " seconds, that takes " + textOf(least[side])};
  }
  return Success{};
}

/// Copies and jobs of the codec stream by buffer, on its arena's stream, of buffers whose action has such.
Status TimelineCheck::collect() {
  for (const Event &e : timeline.events) {
    if (e.stream == Stream::Compute || e.what == Event::What::Exchange || e.what == Event::What::Use)
      continue;
    const bool codec = e.stream == Stream::Codec,
               leaves = e.what == (codec ? Event::What::Encode : Event::What::CopyOut);
    const ArenaFacts &home = factsOf(homeOf(problem, e.buffer));
    if (!codec && e.stream != (leaves ? home.out : arrivalStream(problem, e.buffer)))
      return Error{"buffer " + name(e.buffer) + " is copied on " + factsOf(e.stream).name + ", it goes to the " +
                   home.name + " arena"};
    (leaves ? out : in)[e.buffer].push_back({e.start, e.end});
    if (plan.decisions[e.buffer].action != (codec ? Action::Compress : Action::Offload))
      return Error{"buffer " + name(e.buffer) +
                   (codec ? " is packed although it is not compressed" : " is copied although it is not offloaded")};
  }
  return Success{};
}

/// Of an offloaded buffer, the other direction idle.
Seconds TimelineCheck::leastCopy(int b, bool leaves) const {
  const Link &link = linkOf(problem, b);
  const Seconds least = crossingBytes(problem, plan, b) / (leaves ? link.d2h : link.h2d);
  return std::max(least, leastPacking(problem, plan, b, leaves)) + link.latency;
}

/// What an op waits for that comes right before it and leaves right after it; of what it makes for the copy home.
Seconds TimelineCheck::visits(int op) const {
  Seconds seconds = 0;
  for (int b : problem.ops[op].writes)
    if (problem.buffers[b].visits && !problem.buffers[b].born && plan.decisions[b].absences.empty())
      seconds += leastCopy(b, false) + (problem.buffers[b].dropped ? 0 : leastCopy(b, true));
  for (int b : problem.ops[op].sends)
    seconds += plan.decisions[b].absences.empty() ? leastCopy(b, true) : 0;
  return seconds;
}

Status TimelineCheck::duration(int b, const Span &span, bool leaves) const {
  const Seconds least =
      plan.decisions[b].action == Action::Compress ? leastCodec(problem, plan, b, leaves) : leastCopy(b, leaves);
  if (span.end - span.start + slack < least)
    return Error{"copy of " + name(b) + " lasts " + textOf(span.end - span.start) + " seconds, it takes " +
                 textOf(least)};
  return Success{};
}

/// Whoever returns after op p may take bytes that count as free from position p + 1 on: their copies out must be over.
Status TimelineCheck::reuse(int b, const Absence &away, Span i) {
  for (const auto &[other, spans] : out) {
    const Decision &d = plan.decisions[other];
    for (size_t k = 0; !spans.empty() && k < d.absences.size(); ++k) {
      const Span span = spans[d.copiesBefore(k + 1) - 1];
      if (d.absences[k].freeBefore <= away.returnAfter + 1 && i.start + slack < span.end)
        return Error{"copy in of " + name(b) + " starts at " + textOf(i.start) + ", bytes of " + name(other) +
                     " leave until " + textOf(span.end)};
    }
  }
  return Success{};
}

/// The four times of one absence, `o` its copy out and `i` the one back: leaves when the content is there, is gone
/// before its bytes are used again, returns when its op has ended, and is back before it is read.
Status TimelineCheck::absence(int b, const Absence &away, Span o, Span i) {
  if (away.leaveAfter >= 0 && o.start + slack < ends[away.leaveAfter])
    return Error{"copy out of " + name(b) + " starts at " + textOf(o.start) + ", op " +
                 std::to_string(away.leaveAfter) + " ends at " + textOf(ends[away.leaveAfter])};
  if (opens(away.freeBefore) + slack < o.end)
    return Error{"position " + std::to_string(away.freeBefore) + " reuses " + name(b) + " at " +
                 textOf(opens(away.freeBefore)) + ", its copy ends at " + textOf(o.end)};
  if (away.returnAfter >= 0 && i.start + slack < ends[away.returnAfter])
    return Error{"copy in of " + name(b) + " starts at " + textOf(i.start) + ", op " +
                 std::to_string(away.returnAfter) + " ends at " + textOf(ends[away.returnAfter])};
  if (opens(away.neededBy) + slack < i.end)
    return Error{"position " + std::to_string(away.neededBy) + " reads " + name(b) + " at " +
                 textOf(opens(away.neededBy)) + ", its copy ends at " + textOf(i.end)};
  return reuse(b, away, i);
}

Status TimelineCheck::transfer(int b, const Decision &d) {
  for (size_t k = 0; k < d.absences.size(); ++k) {
    const int after = d.absences[k].leaveAfter; // what is dropped is gone then
    const Span left = problem.buffers[b].dropped ? Span{ends[after], ends[after]} : out[b][d.copiesBefore(k + 1) - 1];
    const Span back =
        problem.buffers[b].born ? Span{starts[d.absences[k].neededBy], starts[d.absences[k].neededBy]} : in[b][k];
    if (Status status = absence(b, d.absences[k], left, back); !status)
      return status;
  }
  for (bool leaves : {true, false})
    for (Span span : leaves ? out[b] : in[b])
      if (Status status = duration(b, span, leaves); !status)
        return status;
  return Success{};
}

/// As many copies as the plan's absences ask for.
Status TimelineCheck::counted(int b, const Decision &d) {
  const size_t departures = problem.buffers[b].dropped ? 0 : d.copiesBefore(d.absences.size());
  const size_t returns = problem.buffers[b].born ? 0 : d.absences.size();
  if (out[b].size() != departures || in[b].size() != returns)
    return Error{"buffer " + name(b) + " is copied out " + std::to_string(out[b].size()) + " times and back " +
                 std::to_string(in[b].size()) + " times, the plan asks for " + std::to_string(departures) + " and " +
                 std::to_string(returns)};
  return Success{};
}

/// What cannot have been copied or packed while the compute stream was idle, as that was too short, cost contention.
Status TimelineCheck::contention() {
  Seconds least = alone, busy = 0;
  for (bool leaves : {true, false})
    for (const auto &[b, spans] : leaves ? out : in)
      for (Span span : spans) {
        Seconds idle = span.end - span.start;
        for (const Event &e : timeline.events)
          if (e.stream == Stream::Compute)
            idle -= std::max(0.0, std::min(e.end, span.end) - std::max(e.start, span.start));
        const bool packs = plan.decisions[b].action == Action::Compress;
        const Seconds lost = packs ? problem.codecContention * leastCodec(problem, plan, b, leaves)
                                   : linkOf(problem, b).contention.value_or(0) * crossingBytes(problem, plan, b) +
                                         problem.packingContention * leastPacking(problem, plan, b, leaves);
        const Seconds job = packs ? leastCodec(problem, plan, b, leaves) : leastCopy(b, leaves);
        least += job > 0 ? lost * std::clamp(1 - idle / job, 0.0, 1.0) : 0;
      }
  for (const Event &e : timeline.events)
    busy += e.stream == Stream::Compute ? e.end - e.start : 0;
  if (busy + slack < least)
    return Error{"compute is busy for " + textOf(busy) + " seconds, with the copies and codecs beside it that takes " +
                 textOf(least)};
  return Success{};
}

Status TimelineCheck::transfers() {
  for (auto check : {&TimelineCheck::counted, &TimelineCheck::transfer})
    for (int b = 0; b < static_cast<int>(plan.decisions.size()); ++b)
      if (plan.decisions[b].action == Action::Offload || plan.decisions[b].action == Action::Compress)
        if (Status status = (this->*check)(b, plan.decisions[b]); !status)
          return status;
  return Success{};
}

} // namespace

Status checkTimeline(const Problem &problem, const Plan &plan, const Timeline &timeline) {
  return TimelineCheck(problem, plan, timeline).check();
}

} // namespace sluice::planner
