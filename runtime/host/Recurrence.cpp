// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. The weight is packed once; a step is one parallel loop over samples and units, whose products and
// pointwise part a thread does one after the other, two loops for a Gru, whose second product needs what the first
// made of all units. Each number is one sum in a fixed order: bits do not depend on the number of threads.
#include "runtime/Recurrence.h"

#include "runtime/host/PanelProduct.h"
#include "runtime/host/Parallel.h"
#include "runtime/kernels/RecurrenceRules.h"

#include <algorithm>
#include <cstring>

namespace sluice {

using recurrence::BackwardRow;
using recurrence::ForwardRow;

namespace {

/// Samples [row, end), units [unit, endUnit), which are the panels [first, last).
struct Part {
  int64_t row, end, first, last, unit, endUnit;
};

/// A run over all steps. `weights` holds the gates' packed weights, `reset` what a Gru's second product reads.
template <typename Rule> class Steps {
public:
  Steps(const Recurrence::Geometry &g, float *scratch)
      : g(g), product(g.width, g.width), weights(scratch), reset(scratch + gates * product.packedSize()) {}

  void forward(const float *x, const float *weight, const float *initial, const float *extra, float *hidden,
               float *saved, float *cell) const {
    pack(weight, false);
    if (cell)
      memcpy(cell, extra, static_cast<size_t>(state()) * sizeof(float));
    for (int64_t step = 0; step < g.steps; ++step) {
      const int64_t t = g.at(step);
      const float *before = step ? hidden + g.at(step - 1) * state() : initial;
      auto row = [&](int64_t i) {
        const int64_t at = t * g.batch + i;
        return ForwardRow{g.width,
                          x + at * gates * g.width,
                          before + i * g.width,
                          extra,
                          saved + at * kept * g.width,
                          hidden + at * g.width,
                          cell + (cell ? i * g.width : 0),
                          reset + i * g.width};
      };
      float *products = kept ? saved + t * kept * state() : hidden + t * state();
      forParts([&](const Part &part) {
        for (int gate = 0; gate < Rule::early; ++gate)
          multiply(part, gate, before, g.width, products + Rule::slot(gate) * g.width, std::max<int64_t>(1, kept));
        for (int64_t i = part.row; i < part.end; ++i) {
          const ForwardRow r = row(i);
#pragma GCC ivdep
          for (int64_t u = part.unit; u < part.endUnit; ++u)
            Rule::forward(r, u);
        }
      });
      if constexpr (recurrence::isLate<Rule>())
        forParts([&](const Part &part) {
          multiply(part, Rule::early, reset, g.width, products + Rule::slot(Rule::early) * g.width, kept);
          for (int64_t i = part.row; i < part.end; ++i) {
            const ForwardRow r = row(i);
#pragma GCC ivdep
            for (int64_t u = part.unit; u < part.endUnit; ++u)
              Rule::forwardLate(r, u);
          }
        });
    }
  }

  /// What backward() reads and writes.
  struct Gradients {
    const float *dy, *initial, *hidden, *saved, *initialCell;
    float *dgates, *dinitial, *rest;
  };

  void backward(const float *weight, const float *dcell, const Gradients &p) const {
    pack(weight, true);
    if (Rule::cell == RecurrentCell::Lstm && dcell)
      memcpy(p.rest, dcell, static_cast<size_t>(state()) * sizeof(float));
    else if (Rule::cell == RecurrentCell::Lstm)
      std::fill_n(p.rest, state(), 0.0f);
    for (int64_t step = g.steps - 1; step >= 0; --step) {
      forParts([&](const Part &part) {
        carry(part, step + 1, p);
        for (int64_t i = part.row; i < part.end; ++i) {
          const BackwardRow r = row(step, i, p);
#pragma GCC ivdep
          for (int64_t u = part.unit; u < part.endUnit; ++u)
            Rule::backward(r, u);
        }
      });
      if constexpr (recurrence::isLate<Rule>())
        forParts([&](const Part &part) {
          float *dgates = p.dgates + g.at(step) * gates * state();
          multiply(part, Rule::early, dgates + Rule::early * g.width, gates * g.width, dgates + g.width, gates);
          for (int64_t i = part.row; i < part.end; ++i) {
            const BackwardRow r = row(step, i, p);
#pragma GCC ivdep
            for (int64_t u = part.unit; u < part.endUnit; ++u)
              Rule::backwardLate(r, u);
          }
        });
    }
    forParts([&](const Part &part) { carry(part, 0, p); });
  }

private:
  static constexpr int64_t gates = gatesOf(Rule::cell), kept = savedOf(Rule::cell);

  int64_t state() const { return g.batch * g.width; }

  /// Each gate's weight as the right factor of the forward or the backward products.
  void pack(const float *weight, bool backward) const {
    for (int64_t gate = 0; gate < gates; ++gate)
      product.pack(weight + gate * g.width * g.width, backward ? g.width : 1, backward ? 1 : g.width,
                   weights + gate * product.packedSize());
  }

  /// to[part] = (to +) from times the gate's weight; rows of `to` are `units` layers wide.
  void multiply(const Part &part, int64_t gate, const float *from, int64_t fromStep, float *to, int64_t units,
                bool add = false) const {
    const int64_t step = units * g.width;
    product.run({from + part.row * fromStep, fromStep, part.end - part.row}, weights + gate * product.packedSize(),
                part.first, part.last, to + part.row * step, step, add);
  }

  /// Adds to the gradient of h after step - 1 what comes through the products of `step`, in the place of dinitial.
  void carry(const Part &part, int64_t step, const Gradients &p) const {
    if (step == g.steps) {
      for (int64_t i = part.row; i < part.end; ++i)
        std::fill(p.dinitial + i * g.width + part.unit, p.dinitial + i * g.width + part.endUnit, 0.0f);
      return;
    }
    const int64_t t = g.at(step);
    for (int64_t gate = 0; gate < Rule::early; ++gate) {
      const bool own = Rule::cell == RecurrentCell::GruLinearBeforeReset && gate == 2; // not that of the inputs' part
      const float *from = own ? p.rest + t * state() : p.dgates + t * gates * state() + gate * g.width;
      multiply(part, gate, from, own ? g.width : gates * g.width, p.dinitial, 1, Rule::direct || gate > 0);
    }
  }

  BackwardRow row(int64_t step, int64_t i, const Gradients &p) const {
    const int64_t t = g.at(step), at = t * g.batch + i, before = step ? g.at(step - 1) * g.batch + i : 0;
    constexpr bool lstm = Rule::cell == RecurrentCell::Lstm;
    return {g.width,
            p.dy + at * g.width,
            kept ? p.saved + at * kept * g.width : nullptr,
            p.hidden + at * g.width,
            step ? p.hidden + before * g.width : p.initial + i * g.width,
            !lstm  ? nullptr
            : step ? p.saved + (before * kept + 4) * g.width
                   : p.initialCell + i * g.width,
            p.dinitial + i * g.width,
            lstm ? p.rest + i * g.width : nullptr,
            p.dgates + at * gates * g.width,
            lstm || !kept ? nullptr : p.rest + at * g.width};
  }

  /// Cuts a step among the threads: by panels, and by samples where there are few units. Small steps stay on one.
  template <typename Body> void forParts(Body &&body) const {
    constexpr int64_t little = 1 << 15;
    const int64_t wanted = state() * gates * g.width < little ? 1 : threads();
    const int64_t panels = product.panels(), across = std::min(panels, wanted),
                  down = std::min(g.batch, (wanted + across - 1) / across);
    parallelFor(across * down, [&](int64_t task) {
      const int64_t column = task % across, row = task / across;
      Part part{g.batch * row / down,
                g.batch * (row + 1) / down,
                panels * column / across,
                panels * (column + 1) / across,
                0,
                0};
      part.unit = part.first * product.width(), part.endUnit = std::min(g.width, part.last * product.width());
      body(part);
    });
  }

  const Recurrence::Geometry g;
  const PanelProduct product;
  float *weights, *reset;
};

} // namespace

Recurrence::Recurrence(Node node, RecurrentCell cell, Shape gates, bool reverse)
    : Kernel(node), geometry(recurrenceGeometry(node, cell, gates, reverse)) {
  const int64_t packed = gatesOf(cell) * PanelProduct(geometry.width, geometry.width).packedSize();
  const int64_t reset = cell == RecurrentCell::Gru ? geometry.batch * geometry.width : 0;
  workspace = static_cast<size_t>(packed + reset) * sizeof(float);
}

void Recurrence::forward(Stream &stream, const Tensor &gates, const Tensor &weight, const Tensor &initial,
                         const Tensor &extra, const Tensor &hidden, const Tensor &saved, const Tensor &cell,
                         const Tensor &scratch) const {
  const float *x = stream.data<float>(gates), *w = stream.data<float>(weight), *first = stream.data<float>(initial),
              *other = stream.data<float>(extra);
  float *h = stream.data<float>(hidden), *kept = stream.data<float>(saved), *c = stream.data<float>(cell),
        *pad = stream.data<float>(scratch);
  stream.launch(node, "recurrence", [this, x, w, first, other, h, kept, c, pad] {
    recurrence::forCell(geometry.cell, [&](auto rule) {
      Steps<decltype(rule)>(geometry, pad).forward(x, w, first, other, h, kept, c);
    });
  });
}

void Recurrence::backward(Stream &stream, const Tensor &dy, const Tensor &weight, const Tensor &initial,
                          const Tensor &hidden, const Tensor &saved, const Tensor &initialCell, const Tensor &dcell,
                          const Tensor &dgates, const Tensor &dinitial, const Tensor &rest,
                          const Tensor &scratch) const {
  const float *w = stream.data<float>(weight), *dc = stream.data<float>(dcell), *pdy = stream.data<float>(dy),
              *first = stream.data<float>(initial), *h = stream.data<float>(hidden), *kept = stream.data<float>(saved),
              *firstCell = stream.data<float>(initialCell);
  float *dx = stream.data<float>(dgates), *dh = stream.data<float>(dinitial), *more = stream.data<float>(rest),
        *pad = stream.data<float>(scratch);
  stream.launch(node, "recurrence_backward", [this, w, dc, pdy, first, h, kept, firstCell, dx, dh, more, pad] {
    recurrence::forCell(geometry.cell, [&](auto rule) {
      Steps<decltype(rule)>(geometry, pad).backward(w, dc, {pdy, first, h, kept, firstCell, dx, dh, more});
    });
  });
}

} // namespace sluice
