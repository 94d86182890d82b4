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
/// the inputs' parts of the gates with their biases, weight [G*H,H] multiplies the state of the step before, initial
/// [B,H] is the state before the first step. Absent where the cell has none: saved (Lstm [T,B,5H]: i, o, f, g, c; Gru
/// [T,B,3H]: z, r, n; GruLinearBeforeReset [T,B,4H]: z, r, n, and the product with its bias). With `reverse` time runs
/// backwards.
class Recurrence : public Kernel {
public:
  Recurrence(Node node, RecurrentCell cell, Shape gates, bool reverse);
  /// hidden [T,B,H] and saved; cell [B,H]: c of the last step. extra: c before the first step [B,H], or the bias [H]
  /// of the product that GruLinearBeforeReset resets.
  void forward(Stream &, const Tensor &gates, const Tensor &weight, const Tensor &initial, const Tensor &extra,
               const Tensor &hidden, const Tensor &saved, const Tensor &cell, const Tensor &scratch) const;
  /// dgates, dinitial and `rest`: Lstm: gradient of the first c [B,H], that of the last one being dcell, which may be
  /// absent; Gru: r * h of the step before [T,B,H]; GruLinearBeforeReset: gradient of the product [T,B,H].
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
