// SPDX-License-Identifier: Apache-2.0
// What copies between the arenas carry and how long they take, see Simulate.h.
#include "passes/planner/Program.h"
#include "passes/planner/Simulate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::planner {

/// What goes over the link, zeros among it unless they stay (Problem::zerosStay).
Bytes copiedBytes(const Problem &problem, int buffer, const Decision &decision) {
  const Bytes raw = problem.buffers[buffer].bytes;
  if (decision.codec.kind == Codec::Zvc)
    return problem.zerosStay
               ? static_cast<Bytes>(std::ceil(static_cast<double>(raw) * keptShare(problem.buffers[buffer])))
               : raw;
  if (const Encoding *form = encodingOf(problem.buffers[buffer], decision.codec))
    return form->bytes;
  return decision.codec.kind == Codec::Fp16 ? (raw + 1) / 2 : raw;
}

/// Codecs of a known rate take raw bytes at it in either direction; of others the form says both.
Seconds packingSeconds(const Problem &problem, int buffer, const Decision &decision, bool toHost) {
  for (const auto &[codec, rate] : problem.codecRates)
    if (codec == decision.codec)
      return problem.buffers[buffer].bytes / rate;
  const Encoding *form = encodingOf(problem.buffers[buffer], decision.codec);
  return !form ? 0 : toHost ? form->encodeSeconds : form->decodeSeconds;
}

Seconds lostToCopy(const Problem &problem, int buffer, const Decision &decision, bool toHost) {
  return linkOf(problem, buffer).contention.value_or(0) * copiedBytes(problem, buffer, decision) +
         problem.packingContention * packingSeconds(problem, buffer, decision, toHost);
}

double copyRateLimit(const Problem &problem, int buffer, const Decision &decision, bool toHost) {
  const Seconds packing = packingSeconds(problem, buffer, decision, toHost);
  return packing > 0 ? copiedBytes(problem, buffer, decision) / packing : std::numeric_limits<double>::infinity();
}

Seconds copySeconds(const Problem &problem, int buffer, const Decision &decision, bool toHost) {
  const Link &link = linkOf(problem, buffer);
  const double rate = std::min(toHost ? link.d2h : link.h2d, copyRateLimit(problem, buffer, decision, toHost));
  return link.latency + copiedBytes(problem, buffer, decision) / rate;
}

bool zerosPay(const Problem &problem, int buffer, bool pooled) {
  Decision packed;
  packed.codec = Codec::Zvc;
  const auto seconds = [&](const Decision &with) {
    return copySeconds(problem, buffer, with, true) + copySeconds(problem, buffer, with, false);
  };
  return keptShare(problem.buffers[buffer]) < 1 && (pooled || !problem.zerosStay || seconds(packed) < seconds({}));
}

Seconds longestTask(const Timeline &timeline) {
  Seconds longest = 0;
  for (const Event &event : timeline.events)
    longest = std::max(longest, event.end - event.start);
  return longest;
}

} // namespace sluice::planner
