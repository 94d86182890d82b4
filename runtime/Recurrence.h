// SPDX-License-Identifier: Apache-2.0
// The kernel of recurrent layers: steps that run one after the other.
#pragma once

#include "runtime/Kernels.h"

namespace sluice {

/// What a recurrent layer computes in a step, with the gates in ONNX's order (operators LSTM, GRU and RNN):
/// S. Hochreiter, J. Schmidhuber, Long Short-Term Memory, 1997, with the forget gate of F. Gers et al., 2000; K. Cho et
/// al., arXiv:1406.1078, eq. 5 to 8, and as cuDNN and PyTorch have it, resetting after the product.
enum class RecurrentCell { Lstm, Gru, GruLinearBeforeReset, RnnTanh, RnnRelu };

/// Gates of a cell, and numbers of each unit and step that it saves for the backward pass.
constexpr int64_t gatesOf(RecurrentCell cell) {
  return cell == RecurrentCell::Lstm                                                 ? 4
         : cell == RecurrentCell::Gru || cell == RecurrentCell::GruLinearBeforeReset ? 3
                                                                                     : 1;
}
constexpr int64_t savedOf(RecurrentCell cell) {
  return cell == RecurrentCell::Lstm                   ? 5
         : cell == RecurrentCell::Gru                  ? 3
         : cell == RecurrentCell::GruLinearBeforeReset ? 4
                                                       : 0;
}

/// T steps of a layer of H units in one direction, for B samples; all tensors F32 and row-major. gates [T,B,G*H] holds
/// the inputs' parts x of the gates with their biases, weight [G*H,H] the matrices W that multiply the state h' of the
/// step before, initial [B,H] is the state before the first step. With `reverse` time runs backwards.
///
/// In this order of gates, s being the logistic function:
/// - Lstm i, o, f, g: i, o, f = s(x + W h'), g = tanh(x + W h'), c = f c' + i g, h = o tanh(c)
/// - Gru z, r, n: z, r = s(x + W h'), n = tanh(x + W (r h')), h = (1 - z) n + z h'
/// - GruLinearBeforeReset z, r, n: likewise, but n = tanh(x + r (W h' + bias))
/// - RnnTanh, RnnRelu: h = tanh(x + W h'), h = max(0, x + W h')
///
/// saved is absent where the cell has none: Lstm [T,B,5H]: i, o, f, g, c; Gru [T,B,3H]: z, r, n; GruLinearBeforeReset
/// [T,B,4H]: z, r, n and W h' + bias of n.
class Recurrence : public Kernel {
public:
  Recurrence(Node node, RecurrentCell cell, Shape gates, bool reverse);
  /// Writes hidden [T,B,H], h of every step, saved and, of an Lstm, cell [B,H]: c of the last step. extra: of an Lstm c
  /// before the first step [B,H], of GruLinearBeforeReset the bias [H]; else absent, like cell.
  void forward(Stream &, const Tensor &gates, const Tensor &weight, const Tensor &initial, const Tensor &extra,
               const Tensor &hidden, const Tensor &saved, const Tensor &cell, const Tensor &scratch) const;
  /// From dy [T,B,H], the gradient of hidden, writes dgates, dinitial and `rest`: Lstm: gradient of c before the first
  /// step [B,H], that of the last c being dcell, which may be absent; Gru: r h' [T,B,H]; GruLinearBeforeReset: gradient
  /// of W h' + bias of n [T,B,H]; else absent. The gradient of weight is a product of these with hidden, left to
  /// others.
  void backward(Stream &, const Tensor &dy, const Tensor &weight, const Tensor &initial, const Tensor &hidden,
                const Tensor &saved, const Tensor &initialCell, const Tensor &dcell, const Tensor &dgates,
                const Tensor &dinitial, const Tensor &rest, const Tensor &scratch) const;

  /// What kernels of either target go by.
  struct Geometry {
    RecurrentCell cell;
    int64_t steps, batch, width;
    bool reverse;
    /// Position in time of the step that runs as number `step`.
    int64_t at(int64_t step) const { return reverse ? steps - 1 - step : step; }
  };

private:
  Geometry geometry;
};

/// Throws std::invalid_argument naming `node` unless gates are [T,B,G*H].
Recurrence::Geometry recurrenceGeometry(const char *node, RecurrentCell cell, const Shape &gates, bool reverse);

} // namespace sluice
