// SPDX-License-Identifier: Apache-2.0
// Optimizer updates, in PyTorch's order of operations. Hyperparameters are taken when the update is enqueued.
#include "runtime/Kernels.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/UpdateRules.h"

#include <string>

namespace sluice {

namespace {

constexpr int64_t grain = 1 << 15;

void sgdRange(float *__restrict w, const float *__restrict dw, float *__restrict m, int64_t count,
              const SgdFactors &f) {
  if (!m || f.momentum == 0)
    for (int64_t i = 0; i < count; ++i)
      sgdElement(w[i], dw[i], f);
  else
    for (int64_t i = 0; i < count; ++i)
      sgdElement(w[i], dw[i], m[i], f);
}

void adamRange(float *__restrict w, const float *__restrict dw, float *__restrict m, float *__restrict v, int64_t count,
               const AdamFactors &f) {
  for (int64_t i = 0; i < count; ++i)
    adamElement(w[i], dw[i], m[i], v[i], f);
}

} // namespace

void updateSgd(Stream &stream, const Tensor &w, const Tensor &dw, const Tensor &momentum, const char *node) {
  checkUpdate(node, w, dw);
  checkUpdate(node, w, momentum);
  float *pw = stream.data<float>(w), *pm = stream.data<float>(momentum);
  const float *pdw = stream.data<float>(dw);
  const int64_t count = w.shape.elements();
  stream.launch(node, "update_sgd", [pw, pdw, pm, count, factors = SgdFactors(stream.session.state)] {
    parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
      sgdRange(pw + begin, pdw + begin, pm ? pm + begin : nullptr, end - begin, factors);
    });
  });
}

void updateAdam(Stream &stream, const Tensor &w, const Tensor &dw, const Tensor &expAvg, const Tensor &expAvgSq,
                WeightDecay decay, const char *node) {
  const bool decoupled = decay == WeightDecay::Decoupled;
  for (const Tensor *other : {&dw, &expAvg, &expAvgSq})
    checkUpdate(node, w, *other);
  float *pw = stream.data<float>(w), *pm = stream.data<float>(expAvg), *pv = stream.data<float>(expAvgSq);
  const float *pdw = stream.data<float>(dw);
  const int64_t count = w.shape.elements();
  const AdamFactors factors(stream.session.state, decoupled);
  stream.launch(node, decoupled ? "update_adamw" : "update_adam", [pw, pdw, pm, pv, count, factors] {
    parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
      adamRange(pw + begin, pdw + begin, pm + begin, pv + begin, end - begin, factors);
    });
  });
}

} // namespace sluice
