// SPDX-License-Identifier: Apache-2.0
// Optimizer updates, and what gradients go through before them. Hyperparameters are taken when a kernel is enqueued.
#include "runtime/Update.h"

#include "runtime/host/LineSum.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/SumMessages.h"
#include "runtime/kernels/UpdateRules.h"

namespace sluice {

namespace {

constexpr int64_t grain = 1 << 15;
/// Ranges of a sum; their number is the same for any number of threads.
constexpr int64_t parts = leastNormParts;

/// The tensors of an update, from where it begins. States that a rule has not are the one before, or w, which it leaves
/// alone.
struct Pointers {
  float *w, *first, *second;
  const float *dw, *norm;
  int64_t count;

  Pointers(Stream &stream, const Tensor &w, const Tensor &dw, const Tensor &norm, const Tensor &first,
           const Tensor &second, UpdatedShare share)
      : w(stream.data<float>(w) + share.first), first(first.present ? stream.data<float>(first) : this->w),
        second(second.present ? stream.data<float>(second) : this->first), dw(stream.data<float>(dw) + share.gradient),
        norm(stream.data<float>(norm)), count(share.count) {}
};

/// Of an update with states of their own.
Pointers pointersOf(Stream &stream, Node node, const Tensor &w, const Tensor &dw, const Tensor &norm,
                    const Tensor &first, const Tensor &second) {
  return {stream, w, dw, norm, first, second, updatedShare(stream.session, node, w.shape, dw, {first, second})};
}

template <typename Rule>
void updateRange(const Pointers &p, int64_t begin, int64_t count, float factor, const UpdateFactors &f) {
  float *__restrict w = p.w + begin;
  const float *__restrict dw = p.dw + begin;
  float *s = p.first + begin, *t = p.second + begin;
  for (int64_t i = 0; i < count; ++i)
    Rule::apply(w[i], clippedElement(dw[i], f.clipValue) * factor, s[i], t[i], f);
}

template <typename Rule>
void launchUpdate(Stream &stream, Node node, const char *op, const Pointers &p, const UpdateFactors &f) {
  if (!f.lastBatch)
    return;
  stream.launch(node.as(OpRole::Update), op, [p, f] {
    const float factor = f.clipFactor(p.norm);
    parallelRanges(p.count, grain,
                   [&](int64_t begin, int64_t end) { updateRange<Rule>(p, begin, end - begin, factor, f); });
  });
}

UpdateFactors factorsOf(const Stream &stream, ParameterId id, bool decoupled = false) {
  return UpdateFactors(stream.session.state).of(stream.session.groupOf(id), decoupled);
}

double sumOfParts(const double *partials) {
  double total = 0;
  for (int64_t part = 0; part < parts; ++part)
    total += partials[part];
  return total;
}

/// Sum of value(i) over [0, count), in an order that depends on count alone.
template <typename Value> double sumOver(int64_t count, double *partials, Value &&value) {
  parallelFor(parts, [&](int64_t part) {
    const int64_t begin = count * part / parts;
    partials[part] = lineSum(count * (part + 1) / parts - begin, [&](int64_t i) { return value(begin + i); });
  });
  return sumOfParts(partials);
}

/// Of those parts and of what was before them.
float joinedNorm(const double *partials, const float *before) {
  return static_cast<float>(std::sqrt((before ? squareOf(*before) : 0) + sumOfParts(partials)));
}

} // namespace

void updateSgd(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
               const Tensor &momentum, Node node) {
  const UpdateFactors f = factorsOf(stream, id);
  const bool plain = !momentum.present || f.momentum == 0;
  const auto launch = plain ? launchUpdate<PlainSgd> : launchUpdate<MomentumSgd>;
  launch(stream, node, "update_sgd", pointersOf(stream, node, w, dw, norm, momentum, none), f);
}

void updateAdam(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
                const Tensor &expAvg, const Tensor &expAvgSq, WeightDecay decay, Node node) {
  const bool decoupled = decay == WeightDecay::Decoupled;
  launchUpdate<AdamRule>(stream, node, decoupled ? "update_adamw" : "update_adam",
                         pointersOf(stream, node, w, dw, norm, expAvg, expAvgSq), factorsOf(stream, id, decoupled));
}

void updateAdagrad(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
                   const Tensor &sum, Node node) {
  launchUpdate<AdagradRule>(stream, node, "update_adagrad", pointersOf(stream, node, w, dw, norm, sum, none),
                            factorsOf(stream, id));
}

void updateRmsProp(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
                   const Tensor &squareAvg, const Tensor &momentum, Node node) {
  const UpdateFactors f = factorsOf(stream, id);
  const auto launch = f.momentum == 0 ? launchUpdate<PlainRmsProp> : launchUpdate<MomentumRmsProp>;
  launch(stream, node, "update_rmsprop", pointersOf(stream, node, w, dw, norm, squareAvg, momentum), f);
}

void updateLion(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
                const Tensor &expAvg, Node node) {
  launchUpdate<LionRule>(stream, node, "update_lion", pointersOf(stream, node, w, dw, norm, expAvg, none),
                         factorsOf(stream, id, true));
}

Lamb::Lamb(Node node, Shape w) : Kernel(node), w(w) { workspace = parts * sizeof(double); }

void Lamb::update(Stream &stream, ParameterId id, const Tensor &w, const Tensor &dw, const Tensor &norm,
                  const Tensor &expAvg, const Tensor &expAvgSq, const Tensor &scratch) const {
  checkUpdate(node, this->w, {w, dw, expAvg, expAvgSq});
  const UpdateFactors f = factorsOf(stream, id);
  if (!f.lastBatch)
    return;
  double *partials = stream.data<double>(scratch);
  stream.launch(node.as(OpRole::Update), "update_lamb",
                [p = pointersOf(stream, node, w, dw, norm, expAvg, expAvgSq), f, partials] {
                  const float factor = f.clipFactor(p.norm);
                  const auto direction = [&](int64_t i) { return lambDirection(p.w[i], p.first[i], p.second[i], f); };
                  parallelRanges(p.count, grain, [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i)
                      lambMoments(clippedElement(p.dw[i], f.clipValue) * factor, p.first[i], p.second[i], f);
                  });
                  const double weights = sumOver(p.count, partials, [&](int64_t i) { return squareOf(p.w[i]); });
                  const double directions =
                      sumOver(p.count, partials, [&](int64_t i) { return squareOf(direction(i)); });
                  const float size = f.rate * trustRatio(weights, directions, f);
                  parallelRanges(p.count, grain, [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i)
                      p.w[i] -= size * direction(i);
                  });
                });
}

GradientNorm::GradientNorm(Node node, Shape gradient) : Kernel(node), gradient(gradient) {
  workspace = parts * sizeof(double);
}

void GradientNorm::run(Stream &stream, const Tensor &gradient, const Tensor &before, const Tensor &norm,
                       const Tensor &scratch) const {
  checkUpdate(node, this->gradient, {gradient});
  if (!stream.session.state.lastBatch())
    return;
  const float *pg = stream.data<float>(gradient), *others = stream.data<float>(before);
  float *result = stream.data<float>(norm);
  double *partials = stream.data<double>(scratch);
  const int64_t count = gradient.shape.elements();
  stream.launch(node.as(OpRole::Update), "gradient_norm", [=, limit = stream.session.state.clipValue] {
    sumOver(count, partials, [&](int64_t i) { return squareOf(clippedElement(pg[i], limit)); });
    *result = joinedNorm(partials, others);
  });
}

SharesNorm::SharesNorm(Node node, int64_t elements) : Kernel(node), elements(elements) {
  workspace = parts * sizeof(double);
}

void SharesNorm::run(Stream &stream, const Tensor &gradient, const Tensor &before, const Tensor &room,
                     const Tensor &norm, const Tensor &scratch) const {
  const Session &session = stream.session;
  checkNormShare(node, session, elements, gradient, room);
  if (!session.state.lastBatch())
    return;
  const float *pg = stream.data<float>(gradient), *others = stream.data<float>(before);
  float *result = stream.data<float>(norm), *place = stream.data<float>(room);
  double *partials = stream.data<double>(scratch);
  const Awaited awaited = {"the norm of the gradient", node, session.state.step};
  stream.launch(Node(node).as(OpRole::Reduce), "shares_norm",
                [=, ranks = session.ranks, count = elements, limit = session.state.clipValue] {
                  const NormShare norm = normShare(*ranks, pg, count, parts, place, partials);
                  const NormParts &own = norm.own;
                  std::copy(norm.begun.from, norm.begun.from + norm.begun.count, norm.begun.to);
                  ranks->exchange(norm.ends, awaited);
                  parallelFor(own.end - own.first, [&](int64_t i) {
                    const int64_t part = own.first + i;
                    const float *data = own.data(part);
                    partials[part] = lineSum(own.begin(part + 1) - own.begin(part),
                                             [&](int64_t at) { return squareOf(clippedElement(data[at], limit)); });
                  });
                  ranks->exchange(norm.partials, awaited);
                  *result = joinedNorm(partials, others);
                });
}

void accumulateGradient(Stream &stream, const Tensor &dw, const Tensor &sum, Node node) {
  checkUpdate(node, sum.shape, {dw});
  const UpdateFactors f(stream.session.state);
  const float *pdw = stream.data<float>(dw);
  float *ps = stream.data<float>(sum);
  const int64_t count = sum.shape.elements();
  stream.launch(node.as(OpRole::Update), "accumulate", [pdw, ps, count, f] {
    parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        ps[i] = joinedElement(pdw[i], ps[i], f);
    });
  });
}

void averageWeights(Stream &stream, const Tensor &w, const Tensor &average, Node node) {
  checkUpdate(node, w.shape, {average});
  const StepState &state = stream.session.state;
  if (!state.lastBatch())
    return;
  const float *pw = stream.data<float>(w), keep = state.update() == 1 ? 0 : state.averageDecay;
  float *pa = stream.data<float>(average);
  const int64_t count = w.shape.elements();
  stream.launch(node.as(OpRole::Update), "average_weights", [pw, pa, count, keep] {
    parallelRanges(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        pa[i] = averagedElement(pw[i], pa[i], keep);
    });
  });
}

} // namespace sluice
