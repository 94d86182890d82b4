// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: all cells in both directions against a plain loop in double, gradients against its differences,
// extents that fill no tile, results that the number of threads does not change.
#include "test/unit/runtime/Harness.h"

namespace sluice {
namespace {

struct Case {
  const char *name;
  RecurrentCell cell;
  int64_t steps, batch, width;
  bool reverse = false, readsCell = true;
};

std::ostream &operator<<(std::ostream &out, const Case &c) { return out << c.name; }

/// All operands, one after the other in what differences are taken of.
struct Operands {
  Numbers gates, weight, initial, extra;

  explicit Operands(const Case &c, unsigned seed = 1) {
    const int64_t g = gatesOf(c.cell), state = c.batch * c.width;
    gates = randomNumbers(c.steps * state * g, seed);
    weight = randomNumbers(g * c.width * c.width, seed + 1, 1 / std::sqrt(static_cast<double>(c.width)));
    initial = randomNumbers(state, seed + 2);
    if (c.cell == RecurrentCell::Lstm)
      extra = randomNumbers(state, seed + 3);
    if (c.cell == RecurrentCell::GruLinearBeforeReset)
      extra = randomNumbers(c.width, seed + 3);
  }
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// One sample's step: what ONNX says of LSTM, GRU and RNN. h and cell are those of the step before, then of this one.
void step(const Case &c, const Operands &o, size_t at, Numbers &h, Numbers &cell, Numbers &result) {
  const auto n = static_cast<size_t>(c.width), gates = static_cast<size_t>(gatesOf(c.cell));
  auto x = [&](size_t gate, size_t u) { return o.gates[at * gates * n + gate * n + u]; };
  auto product = [&](size_t gate, size_t u, const Numbers &from) {
    double sum = 0;
    for (size_t k = 0; k < n; ++k)
      sum += from[k] * o.weight[(gate * n + u) * n + k];
    return sum;
  };
  Numbers next(n), reset(n), update(n);
  for (size_t u = 0; u < n && gates == 3; ++u) {
    update[u] = logistic(x(0, u) + product(0, u, h));
    reset[u] = logistic(x(1, u) + product(1, u, h)) * (c.cell == RecurrentCell::Gru ? h[u] : 1);
  }
  for (size_t u = 0; u < n; ++u) {
    if (c.cell == RecurrentCell::Lstm) {
      const double i = logistic(x(0, u) + product(0, u, h)), f = logistic(x(2, u) + product(2, u, h));
      cell[u] = f * cell[u] + i * std::tanh(x(3, u) + product(3, u, h));
      next[u] = logistic(x(1, u) + product(1, u, h)) * std::tanh(cell[u]);
    } else if (gates == 3) {
      const double from =
          c.cell == RecurrentCell::Gru ? product(2, u, reset) : reset[u] * (product(2, u, h) + o.extra[u]);
      next[u] = (1 - update[u]) * std::tanh(x(2, u) + from) + update[u] * h[u];
    } else {
      const double sum = x(0, u) + product(0, u, h);
      next[u] = c.cell == RecurrentCell::RnnTanh ? std::tanh(sum) : std::max(0.0, sum);
    }
  }
  h = next;
  std::copy(h.begin(), h.end(), result.begin() + static_cast<std::ptrdiff_t>(at * n));
}

/// Hidden states [T,B,H], and the last c after them.
Numbers reference(const Case &c, const Operands &o) {
  const auto n = static_cast<size_t>(c.width);
  Numbers result(static_cast<size_t>(c.steps * c.batch) * n), cells;
  for (size_t b = 0; b < static_cast<size_t>(c.batch); ++b) {
    auto row = [&](const Numbers &from) {
      return Numbers(from.begin() + static_cast<std::ptrdiff_t>(b * n),
                     from.begin() + static_cast<std::ptrdiff_t>((b + 1) * n));
    };
    Numbers h = row(o.initial), cell = c.cell == RecurrentCell::Lstm ? row(o.extra) : Numbers();
    for (int64_t i = 0; i < c.steps; ++i)
      step(c, o, static_cast<size_t>((c.reverse ? c.steps - 1 - i : i) * c.batch) + b, h, cell, result);
    cells.insert(cells.end(), cell.begin(), cell.end());
  }
  result.insert(result.end(), cells.begin(), cells.end());
  return result;
}

/// A layer on a device, with its results.
struct Layer {
  const Case &c;
  Harness h;
  Recurrence kernel;
  Tensor gates, weight, initial, extra, hidden, saved, cell, space;

  Layer(const Case &c, const Operands &o) : c(c), kernel("/lstm/LSTM", c.cell, shape(gatesOf(c.cell)), c.reverse) {
    const Shape state{c.batch, c.width};
    gates = h.tensor(shape(gatesOf(c.cell)), Layout::RowMajor, o.gates);
    weight = h.tensor({gatesOf(c.cell) * c.width, c.width}, Layout::RowMajor, o.weight);
    initial = h.tensor(state, Layout::RowMajor, o.initial);
    if (!o.extra.empty())
      extra = h.tensor(isLstm() ? state : Shape{c.width}, Layout::RowMajor, o.extra);
    hidden = h.tensor(shape(1));
    if (savedOf(c.cell))
      saved = h.tensor(shape(savedOf(c.cell)));
    if (isLstm())
      cell = h.tensor(state);
    space = h.workspace(kernel);
    kernel.forward(h.session.compute, gates, weight, initial, extra, hidden, saved, cell, space);
  }
  bool isLstm() const { return c.cell == RecurrentCell::Lstm; }
  Shape shape(int64_t count) const { return {c.steps, c.batch, count * c.width}; }

  Numbers results() {
    Numbers all = h.read(hidden);
    const Numbers last = isLstm() ? h.read(cell) : Numbers();
    all.insert(all.end(), last.begin(), last.end());
    return all;
  }
  /// Gradients of gates and initial states, and what the cell returns besides; dy holds those of results().
  std::vector<Numbers> backward(const Numbers &dy) {
    const auto count = static_cast<std::ptrdiff_t>(hidden.shape.elements());
    const Tensor gradient = h.tensor(shape(1), Layout::RowMajor, Numbers(dy.begin(), dy.begin() + count));
    const Tensor dcell = isLstm() && c.readsCell
                             ? h.tensor(initial.shape, Layout::RowMajor, Numbers(dy.begin() + count, dy.end()))
                             : none;
    const Tensor dgates = h.tensor(gates.shape), dinitial = h.tensor(initial.shape);
    const Tensor rest = isLstm() ? h.tensor(initial.shape) : savedOf(c.cell) ? h.tensor(shape(1)) : none;
    kernel.backward(h.session.compute, gradient, weight, initial, hidden, saved, isLstm() ? extra : none, dcell, dgates,
                    dinitial, rest, h.workspace(kernel));
    return {h.read(dgates), h.read(dinitial), rest.present ? h.read(rest) : Numbers()};
  }
};

class Recurrent : public testing::TestWithParam<Case> {};

TEST_P(Recurrent, ComputesWhatOnnxSays) {
  const Operands operands(GetParam());
  Layer layer(GetParam(), operands);
  EXPECT_CLOSE(layer.results(), reference(GetParam(), operands), 1e-6);
}

TEST_P(Recurrent, HasTheGradientsOfDifferences) {
  const Case &c = GetParam();
  Operands o(c);
  const Numbers outputs = reference(c, o);
  Numbers dy = randomNumbers(static_cast<int64_t>(outputs.size()), 9);
  if (!c.readsCell)
    std::fill(dy.begin() + c.steps * c.batch * c.width, dy.end(), 0);
  Layer layer(c, o);
  const std::vector<Numbers> gradients = layer.backward(dy);
  auto compare = [&](Numbers &operand, const Numbers &gradient, unsigned seed) {
    const Numbers x = operand, direction = randomNumbers(static_cast<int64_t>(x.size()), seed);
    const double want = slope(
        [&](const Numbers &moved) {
          operand = moved;
          return dot(dy, reference(c, o));
        },
        x, direction, 1e-5);
    operand = x;
    EXPECT_NEAR(dot(gradient, direction), want, 2e-5 * (1 + std::abs(want)));
  };
  for (unsigned seed : {20u, 21u, 22u}) {
    compare(o.gates, gradients[0], seed);
    compare(o.initial, gradients[1], seed);
    if (c.cell == RecurrentCell::Lstm)
      compare(o.extra, gradients[2], seed);
  }
}

/// Of Gru r * h of the step before, of GruLinearBeforeReset the gradient of the product: with them the weight's
/// gradient is one product over all steps.
TEST_P(Recurrent, ReturnsWhatTheWeightsGradientNeeds) {
  const Case &c = GetParam();
  if (gatesOf(c.cell) != 3)
    return;
  const bool behind = c.cell == RecurrentCell::GruLinearBeforeReset;
  Operands o(c);
  const Numbers dy = randomNumbers(c.steps * c.batch * c.width, 9);
  Layer layer(c, o);
  const std::vector<Numbers> gradients = layer.backward(dy);
  const Numbers hidden = layer.h.read(layer.hidden);
  const auto n = static_cast<size_t>(c.width), batch = static_cast<size_t>(c.batch);
  Numbers dweight(o.weight.size());
  for (int64_t i = 0; i < c.steps; ++i)
    for (size_t b = 0; b < batch; ++b) {
      const size_t at = static_cast<size_t>(c.reverse ? c.steps - 1 - i : i) * batch + b;
      const size_t last = c.reverse ? at + batch : at - batch;
      for (size_t gate = 0; gate < 3; ++gate)
        for (size_t u = 0; u < n; ++u)
          for (size_t k = 0; k < n; ++k) {
            const double before = i ? hidden[last * n + k] : o.initial[b * n + k];
            const double d = gradients[0][(at * 3 + gate) * n + u];
            const bool special = gate == 2;
            dweight[(gate * n + u) * n + k] += special && behind ? gradients[2][at * n + u] * before
                                               : special         ? d * gradients[2][at * n + k]
                                                                 : d * before;
          }
    }
  const Numbers x = o.weight, direction = randomNumbers(static_cast<int64_t>(x.size()), 30);
  const double want = slope(
      [&](const Numbers &moved) {
        o.weight = moved;
        return dot(dy, reference(c, o));
      },
      x, direction, 1e-5);
  EXPECT_NEAR(dot(dweight, direction), want, 5e-5 * (1 + std::abs(want)));
}

INSTANTIATE_TEST_SUITE_P(
    Cells, Recurrent,
    testing::Values(Case{"lstm", RecurrentCell::Lstm, 4, 3, 5},
                    Case{"lstm_reverse", RecurrentCell::Lstm, 3, 2, 17, true},
                    Case{"lstm_without_last_cell", RecurrentCell::Lstm, 3, 2, 4, false, false},
                    Case{"lstm_one", RecurrentCell::Lstm, 1, 1, 1}, Case{"lstm_wide", RecurrentCell::Lstm, 2, 7, 260},
                    Case{"gru", RecurrentCell::Gru, 4, 3, 5}, Case{"gru_reverse", RecurrentCell::Gru, 3, 2, 35, true},
                    Case{"gru_behind", RecurrentCell::GruLinearBeforeReset, 4, 3, 5},
                    Case{"gru_behind_reverse", RecurrentCell::GruLinearBeforeReset, 3, 21, 33, true},
                    Case{"tanh", RecurrentCell::RnnTanh, 5, 2, 19},
                    Case{"tanh_reverse", RecurrentCell::RnnTanh, 4, 3, 6, true},
                    Case{"relu", RecurrentCell::RnnRelu, 5, 2, 7}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(Recurrence, HasTheSameBitsWhateverTheThreads) {
  const Case many{"many", RecurrentCell::Gru, 3, 24, 70}, few{"few", RecurrentCell::Lstm, 2, 200, 16};
  for (const Case &c : {many, few}) {
    const int before = threads();
    const Operands operands(c);
    const Numbers dy =
        randomNumbers(c.steps * c.batch * c.width + (c.cell == RecurrentCell::Lstm ? c.batch * c.width : 0), 9);
    std::vector<std::vector<Numbers>> seen;
    for (int count : {1, 3}) {
      setThreads(count);
      Layer layer(c, operands);
      seen.push_back(layer.backward(dy));
      seen.back().push_back(layer.results());
    }
    setThreads(before);
    EXPECT_EQ(seen[0], seen[1]);
  }
}

TEST(Recurrence, RefusesGatesThatAreNone) {
  EXPECT_THROW(Recurrence("/lstm/LSTM", RecurrentCell::Lstm, {2, 3, 6}, false), std::invalid_argument);
  EXPECT_THROW(Recurrence("/gru/GRU", RecurrentCell::Gru, {2, 0, 6}, false), std::invalid_argument);
  EXPECT_THROW(Recurrence("/rnn/RNN", RecurrentCell::RnnTanh, {2, 3}, false), std::invalid_argument);
}

} // namespace
} // namespace sluice
