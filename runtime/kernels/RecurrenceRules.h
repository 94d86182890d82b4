// SPDX-License-Identifier: Apache-2.0
// What one unit of one sample does in a step of a recurrent layer, and its gradient, for both targets. A rule finds the
// products with the state before in the places that the gates have among the saved numbers, and leaves the gates there.
#pragma once

#include "runtime/Math.h"
#include "runtime/Recurrence.h"

namespace sluice::recurrence {

/// A sample's rows at one step; `width` units apart from gate to gate. Pointers that a cell has no use for are null.
struct ForwardRow {
  int64_t width;
  const float *x, *before, *bias; ///< the inputs' gates; h of the step before; of the product that is reset
  float *saved, *hidden, *cell;   ///< cell: c of the step before, and then of this one
  float *reset;                   ///< r * h of the step before, for the second product of a Gru
};
struct BackwardRow {
  int64_t width;
  const float *dy, *saved, *hidden, *before, *cellBefore;
  /// carry: what later steps say of h, on entry of this step's, on exit that part of the step before's which comes
  /// without a product. carryCell: the gradient of c, of this step and then of the step before.
  float *carry, *carryCell, *dgates, *reset;
};

/// Facts of a cell: the gates whose products are added before a rule runs, [0, early); those from there on need
/// what the first rule made. `direct`: h of the step before also takes part without a product.
struct Lstm {
  static constexpr RecurrentCell cell = RecurrentCell::Lstm;
  static constexpr int early = 4;
  static constexpr bool direct = false;
  static constexpr int64_t slot(int64_t gate) { return gate; }

  SLUICE_KERNEL static void forward(const ForwardRow &r, int64_t u) {
    const int64_t n = r.width;
    const float i = logistic(r.x[u] + r.saved[u]), o = logistic(r.x[n + u] + r.saved[n + u]);
    const float f = logistic(r.x[2 * n + u] + r.saved[2 * n + u]);
    const float g = hyperbolicTangent(r.x[3 * n + u] + r.saved[3 * n + u]);
    const float c = f * r.cell[u] + i * g;
    r.saved[u] = i, r.saved[n + u] = o, r.saved[2 * n + u] = f, r.saved[3 * n + u] = g, r.saved[4 * n + u] = c;
    r.cell[u] = c;
    r.hidden[u] = o * hyperbolicTangent(c);
  }
  SLUICE_KERNEL static void backward(const BackwardRow &r, int64_t u) {
    const int64_t n = r.width;
    const float i = r.saved[u], o = r.saved[n + u], f = r.saved[2 * n + u], g = r.saved[3 * n + u];
    const float c = hyperbolicTangent(r.saved[4 * n + u]), dh = r.dy[u] + r.carry[u];
    const float dc = r.carryCell[u] + dh * o * (1.0f - c * c);
    r.dgates[u] = dc * g * i * (1.0f - i);
    r.dgates[n + u] = dh * c * o * (1.0f - o);
    r.dgates[2 * n + u] = dc * r.cellBefore[u] * f * (1.0f - f);
    r.dgates[3 * n + u] = dc * i * (1.0f - g * g);
    r.carryCell[u] = dc * f;
  }
};

/// Of both grus: h = (1 - z) * n + z * h of the step before; dgates of z, the gradient before tanh, and carry.
SLUICE_KERNEL float blend(float z, float n, float before) { return (1.0f - z) * n + z * before; }
SLUICE_KERNEL float blendBackward(const BackwardRow &r, int64_t u) {
  const float z = r.saved[u], n = r.saved[2 * r.width + u], dh = r.dy[u] + r.carry[u];
  r.dgates[u] = dh * (r.before[u] - n) * z * (1.0f - z);
  r.carry[u] = dh * z;
  return dh * (1.0f - z) * (1.0f - n * n);
}

struct Gru {
  static constexpr RecurrentCell cell = RecurrentCell::Gru;
  static constexpr int early = 2;
  static constexpr bool direct = true;
  static constexpr int64_t slot(int64_t gate) { return gate; }

  SLUICE_KERNEL static void forward(const ForwardRow &r, int64_t u) {
    const int64_t n = r.width;
    const float reset = logistic(r.x[n + u] + r.saved[n + u]);
    r.saved[u] = logistic(r.x[u] + r.saved[u]);
    r.saved[n + u] = reset;
    r.reset[u] = reset * r.before[u];
  }
  SLUICE_KERNEL static void forwardLate(const ForwardRow &r, int64_t u) {
    const int64_t n = r.width;
    const float fresh = hyperbolicTangent(r.x[2 * n + u] + r.saved[2 * n + u]);
    r.saved[2 * n + u] = fresh;
    r.hidden[u] = blend(r.saved[u], fresh, r.before[u]);
  }
  SLUICE_KERNEL static void backward(const BackwardRow &r, int64_t u) {
    r.dgates[2 * r.width + u] = blendBackward(r, u);
    r.reset[u] = r.saved[r.width + u] * r.before[u];
  }
  /// The place of r among dgates has the gradient of r * h.
  SLUICE_KERNEL static void backwardLate(const BackwardRow &r, int64_t u) {
    const float reset = r.saved[r.width + u], d = r.dgates[r.width + u];
    r.carry[u] += d * reset;
    r.dgates[r.width + u] = d * r.before[u] * reset * (1.0f - reset);
  }
};

struct GruLinearBeforeReset {
  static constexpr RecurrentCell cell = RecurrentCell::GruLinearBeforeReset;
  static constexpr int early = 3;
  static constexpr bool direct = true;
  static constexpr int64_t slot(int64_t gate) { return gate == 2 ? 3 : gate; }

  SLUICE_KERNEL static void forward(const ForwardRow &r, int64_t u) {
    const int64_t n = r.width;
    const float z = logistic(r.x[u] + r.saved[u]), reset = logistic(r.x[n + u] + r.saved[n + u]);
    const float q = r.saved[3 * n + u] + r.bias[u], fresh = hyperbolicTangent(r.x[2 * n + u] + reset * q);
    r.saved[u] = z, r.saved[n + u] = reset, r.saved[2 * n + u] = fresh, r.saved[3 * n + u] = q;
    r.hidden[u] = blend(z, fresh, r.before[u]);
  }
  SLUICE_KERNEL static void backward(const BackwardRow &r, int64_t u) {
    const int64_t n = r.width;
    const float reset = r.saved[n + u], d = blendBackward(r, u);
    r.dgates[n + u] = d * r.saved[3 * n + u] * reset * (1.0f - reset);
    r.dgates[2 * n + u] = d;
    r.reset[u] = d * reset;
  }
};

template <bool Tanh> struct Rnn {
  static constexpr RecurrentCell cell = Tanh ? RecurrentCell::RnnTanh : RecurrentCell::RnnRelu;
  static constexpr int early = 1;
  static constexpr bool direct = false;
  static constexpr int64_t slot(int64_t) { return 0; }

  SLUICE_KERNEL static void forward(const ForwardRow &r, int64_t u) {
    const float x = r.x[u] + r.hidden[u];
    r.hidden[u] = Tanh ? hyperbolicTangent(x) : x < 0 ? 0.0f : x; // NaN stays
  }
  SLUICE_KERNEL static void backward(const BackwardRow &r, int64_t u) {
    const float h = r.hidden[u], dh = r.dy[u] + r.carry[u];
    r.dgates[u] = Tanh ? dh * (1.0f - h * h) : h > 0 ? dh : 0.0f;
  }
};

/// Calls body(Lstm{}), or with another cell's rule.
template <typename Body> void forCell(RecurrentCell cell, Body &&body) {
  switch (cell) {
  case RecurrentCell::Lstm:
    return body(Lstm{});
  case RecurrentCell::Gru:
    return body(Gru{});
  case RecurrentCell::GruLinearBeforeReset:
    return body(GruLinearBeforeReset{});
  case RecurrentCell::RnnTanh:
    return body(Rnn<true>{});
  case RecurrentCell::RnnRelu:
    return body(Rnn<false>{});
  }
}

/// Whether a cell has products that wait for its first rule.
template <typename Rule> constexpr bool isLate() { return Rule::early < gatesOf(Rule::cell); }

} // namespace sluice::recurrence
