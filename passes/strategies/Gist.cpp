// SPDX-License-Identifier: Apache-2.0
// gist: A. Jain et al., Gist: Efficient Data Encoding for Deep Neural Network Training, ISCA 2018, Section 4.
//
// Rule: between its last forward and its first backward use a tensor needs only what its backward readers read: one
// bit an element of a ReLU before a pool, an index of a max-pool's window, the nonzeros of a ReLU before a
// convolution; the rest may lose precision.
//
// Changed: masks, indices and counters where the backward ops read them as they are; sparse storage (SSDC) has a size
// that depends on data, which a static plan cannot promise. Delayed precision reduction (DPR) is off unless asked for,
// because it is lossy, and has one width, 16 bits.
//
// Complexity O(ops).
//
// Knobs: dpr=0 (1: what no form replaces is packed to fp16 until its first backward reader).
//
// Fails where the encoded step does not fit; it knows no other action.
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

namespace sluice::planner {

static Answer planGist(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  if (!combiner.can(Codec::Mask) && !combiner.can(Codec::Argmax) && !combiner.can(Codec::Counter))
    return Refused{"strategy 'gist' needs codec 'mask', 'argmax' or 'counter', which the target does not execute"};
  Choice choice;
  choice.encode = true;
  if (numberKnob(options, "dpr", 0) > 0) {
    if (Status may = checkAbility(options, "gist", Codec::Fp16); !may)
      return Refused{may.error()};
    for (int b = 0; b < static_cast<int>(problem.buffers.size()); ++b)
      if (problem.buffers[b].activation && encodingOf(problem.buffers[b], Codec::Fp16))
        choice.compressed.push_back(b);
  }
  return answerOf(combiner.attempt(choice), "gist", memory);
}

Strategy gistStrategy() {
  Strategy s{"gist", "lossless encodings (Jain et al. 2018)", planGist};
  s.knobs = {{"dpr"}};
  s.actions = {Codec::Mask, Codec::Argmax, Codec::Counter, Codec::Fp16};
  return s;
}

} // namespace sluice::planner
