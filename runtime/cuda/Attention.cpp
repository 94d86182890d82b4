// SPDX-License-Identifier: Apache-2.0
// Attention of halves through cuDNN's engines where it has one, else on kernels of our own. Those of one geometry share
// an engine. Both write the same logsumexp, so that either may go backward after the other.
#include "runtime/Attention.h"

#include "runtime/cuda/AttentionEngine.h"
#include "runtime/cuda/Cut.h"
#include "runtime/cuda/SharedEngine.h"

#include <cstring>

namespace sluice {

struct Attention::Impl {
  std::shared_ptr<SharedEngine<AttentionEngine>> engine;
};

static std::shared_ptr<SharedEngine<AttentionEngine>> shared(const char *node, const AttentionProblem &p,
                                                             int64_t bytes) {
  int32_t scale, ratio;
  std::memcpy(&scale, &p.scale, sizeof scale), std::memcpy(&ratio, &p.ratio, sizeof ratio);
  const bool engine = cuda::attentionHasEngine(p.g, p.type);
  std::string key;
  auto add = [&key](int64_t word) { key += std::to_string(word) + " "; };
  for (int64_t word :
       {static_cast<int64_t>(p.pass), p.g.members, p.g.rows, p.g.keys, p.g.depth, p.g.columns, int64_t{scale},
        int64_t{ratio}, int64_t{p.causal}, int64_t{engine}, bytes, static_cast<int64_t>(p.type)})
    add(word);
  for (const AttentionView *view : {&p.g.q, &p.g.k, &p.g.v, &p.g.y}) {
    add(view->offset), add(view->row);
    for (int i = 0; i < p.g.leading; ++i)
      add(p.g.extents[i]), add(view->steps[i]);
  }
  add(p.g.mask.present), add(p.g.mask.row);
  for (int i = 0; i < p.g.leading; ++i)
    add(p.g.mask.steps[i]);
  return SharedEngine<AttentionEngine>::of(key, node,
                                           "runs on kernels of our own, which are slow: ", [=](std::string &reason) {
                                             return AttentionEngine::choose(p, bytes, reason);
                                           });
}

Attention::Attention(Node node, AttentionPass pass, Shape q, Shape k, Shape v, float scale, AttentionOptions options)
    : Kernel(node), geometry(node, q, k, v, options.mask, options.kept, options.views()), scale(scale),
      causal(options.causal), ratio(options.ratio), key(static_cast<uint64_t>(options.key)) {
  if (!isHalf(options.type))
    return;
  const int64_t limit = grantedWorkspace(options.algorithm);
  workspace = static_cast<size_t>(cuda::attentionScratch(limit, pass, geometry, ratio, options.type));
  impl = std::make_shared<Impl>(
      Impl{shared(node, {pass, geometry, scale, causal, ratio, key, options.type}, static_cast<int64_t>(workspace))});
}

static AttentionOperands operandsOf(Stream &stream, const Tensor &q, const Tensor &k, const Tensor &v,
                                    const Tensor &mask, const Tensor &kept, const Tensor &y, const Tensor &logsumexp) {
  return {stream.address(q),
          stream.address(k),
          stream.address(v),
          stream.data<float>(mask),
          stream.data<float>(kept),
          stream.address(y),
          stream.data<float>(logsumexp)};
}

void Attention::forward(Stream &stream, const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &mask,
                        const Tensor &kept, const Tensor &y, const Tensor &logsumexp, const Tensor &scratch) const {
  const AttentionOperands operands = operandsOf(stream, q, k, v, mask, kept, y, logsumexp);
  const AttentionProblem problem{AttentionPass::Forward, geometry, scale, causal, ratio, key, q.type};
  const DeviceState *state = ratio > 0 ? deviceState(stream) : nullptr;
  void *space = stream.address(scratch);
  stream.launch(node, "attention", [&] {
    if (const AttentionEngine *engine = impl ? impl->engine->get() : nullptr)
      engine->run(native(stream), operands, state, space);
    else
      tiledAttention(native(stream), problem, state, operands);
  });
}

void Attention::backward(Stream &stream, const Tensor &dy, const Tensor &q, const Tensor &k, const Tensor &v,
                         const Tensor &mask, const Tensor &kept, const Tensor &y, const Tensor &logsumexp,
                         const Tensor &dq, const Tensor &dk, const Tensor &dv, const Tensor &scratch) const {
  AttentionOperands operands = operandsOf(stream, q, k, v, mask, kept, y, logsumexp);
  operands.dy = stream.address(dy);
  operands.dq = stream.address(dq), operands.dk = stream.address(dk), operands.dv = stream.address(dv);
  const AttentionProblem problem{AttentionPass::Backward, geometry, scale, causal, ratio, key, q.type};
  const DeviceState *state = ratio > 0 ? deviceState(stream) : nullptr;
  void *space = stream.address(scratch);
  stream.launch(node, "attention_backward", [&] {
    if (const AttentionEngine *engine = impl ? impl->engine->get() : nullptr)
      engine->run(native(stream), operands, state, space);
    else
      tiledAttentionGradient(native(stream), problem, state, operands);
  });
}

} // namespace sluice
