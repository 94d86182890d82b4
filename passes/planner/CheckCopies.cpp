// SPDX-License-Identifier: Apache-2.0
// What copies and codecs take at least, for checkTimeline(): worked out anew, as what it looks at is the simulator's.
#include "passes/planner/Check.h"

#include <algorithm>

namespace sluice::planner {

double crossingBytes(const Problem &problem, const Plan &plan, int b) {
  const Buffer &buffer = problem.buffers[b];
  const Codec with = plan.decisions[b].codec;
  const double raw = static_cast<double>(buffer.bytes);
  for (const Encoding &e : buffer.encodings)
    if (e.codec == with)
      return static_cast<double>(e.bytes);
  if (with.kind == Codec::Fp16)
    return raw / 2;
  if (with.kind != Codec::Zvc || !problem.zerosStay || buffer.elementBytes == 0)
    return raw;
  const double elements = raw / buffer.elementBytes;
  return std::min(raw, elements / 8 + elements * (1 - buffer.zeroFraction) * buffer.elementBytes);
}

Seconds leastPacking(const Problem &problem, const Plan &plan, int b, bool leaves) {
  for (const auto &[codec, rate] : problem.codecRates)
    if (codec == plan.decisions[b].codec)
      return static_cast<double>(problem.buffers[b].bytes) / rate;
  return leastCodec(problem, plan, b, leaves);
}

Seconds leastCodec(const Problem &problem, const Plan &plan, int b, bool leaves) {
  for (const Encoding &e : problem.buffers[b].encodings)
    if (e.codec == plan.decisions[b].codec)
      return leaves ? e.encodeSeconds : e.decodeSeconds;
  return 0;
}

} // namespace sluice::planner
