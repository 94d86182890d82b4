// SPDX-License-Identifier: Apache-2.0
// The kernel of scaled dot-product attention.
#pragma once

#include "runtime/AttentionGeometry.h"
#include "runtime/Kernels.h"

#include <memory>

namespace sluice {

enum class AttentionPass { Forward, Backward };

struct AttentionOptions {
  Shape mask = {}, kept = {}; ///< rank 0: there is none
  bool causal = false;
  float ratio = 0; ///< of the dropout whose draws have this key
  int64_t key = 0;
  DataType type = DataType::F32;
  Algorithm algorithm = {};
  Shape qView = {}, kView = {}, vView = {}, yView = {}; ///< see AttentionViews
  KERNEL_OPTION(withMask, mask)
  KERNEL_OPTION(withKept, kept)
  KERNEL_OPTION(withCausal, causal)
  KERNEL_OPTION(withRatio, ratio)
  KERNEL_OPTION(withKey, key)
  KERNEL_OPTION(withType, type)
  KERNEL_OPTION(withAlgorithm, algorithm)
  KERNEL_OPTION(withQView, qView)
  KERNEL_OPTION(withKView, kView)
  KERNEL_OPTION(withVView, vView)
  KERNEL_OPTION(withYView, yView)

  AttentionViews views() const { return {qView, kView, vView, yView}; }
};

/// y = dropout(softmax(scale * q k^T + mask)) v without a tensor of [rows, keys]: blocks of keys pass by, each row with
/// its largest score and its sum so far (T. Dao, FlashAttention-2, arXiv:2307.08691, algorithms 1 and 2). q
/// [..,rows,depth], k [..,keys,depth], v [..,keys,columns], y [..,rows,columns], row-major; mask F32
/// broadcasts to [..,rows,keys]. So does kept, F32: where it is not above 0 the score is the mask's number
/// alone, and no gradient passes. `causal`: row i sees keys 0 to i alone. Where a row sees no key at all its y is 0.
/// logsumexp [..,rows] F32: logarithm of the sum of a row's exponentials, +infinity where it sees no key; the backward
/// pass computes the probabilities again from it. With a mask it is [2,..,rows]: a row's largest score, and the
/// logarithm of the sum of exponentials of the distances to it, which would be lost beside the number of a mask that
/// hides a whole row. The draws of a ratio above 0 are those of a dropout with
/// this key of the whole [..,rows,keys]. Bits do not depend on the number of threads. With type BF16 or F16 all but
/// mask and logsumexp are that. A view, a list as AttentionViews has it, says where an operand's elements stand
/// in its tensor, its gradient's likewise: parts of one tensor may be several operands, and their gradients parts of
/// one.
class Attention : public Kernel {
public:
  Attention(Node node, AttentionPass pass, Shape q, Shape k, Shape v, float scale, AttentionOptions options = {});
  void forward(Stream &, const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &mask, const Tensor &kept,
               const Tensor &y, const Tensor &logsumexp, const Tensor &scratch) const;
  /// dq, dk and dv from dy and what forward() read and wrote; masks have no gradient.
  void backward(Stream &, const Tensor &dy, const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &mask,
                const Tensor &kept, const Tensor &y, const Tensor &logsumexp, const Tensor &dq, const Tensor &dk,
                const Tensor &dv, const Tensor &scratch) const;

  struct Impl;

private:
  AttentionGeometry geometry;
  float scale;
  bool causal;
  float ratio;
  uint64_t key;
  std::shared_ptr<const Impl> impl; ///< cuda: the engine of bf16, shared by all of one geometry
};

} // namespace sluice
