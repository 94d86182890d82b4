// SPDX-License-Identifier: Apache-2.0
// gist: A. Jain et al., Gist: Efficient Data Encoding for Deep Neural Network Training, ISCA 2018, Section 4.
//
// Rule: between its last forward and its first backward use a tensor needs only what its backward readers read: one
// bit an element of a ReLU before a pool, an index of a max-pool's window, the nonzeros of a ReLU before a
// convolution; the rest may lose precision.
//
// Changed: the lossless forms only, on ops that can read them directly; sparse storage (SSDC) has a size that
// depends on data, which a static plan cannot promise, and delayed precision reduction is lossy and not executable
// yet.
//
// Complexity O(ops).
//
// No knobs.
//
// Fails where the encoded step does not fit; it knows no other action.
#include "passes/strategies/Combine.h"
#include "passes/strategies/Strategies.h"

namespace sluice::planner {

Answer planGist(const Problem &problem, Bytes memory, const Options &options) {
  const Combiner combiner(problem, memory, options);
  if (!combiner.can("mask") && !combiner.can("argmax"))
    return Refused{"strategy 'gist' needs codec 'mask' or 'argmax', which the target does not execute"};
  Choice choice;
  choice.encode = true;
  return answerOf(combiner.attempt(choice), "gist", memory);
}

} // namespace sluice::planner
