// SPDX-License-Identifier: Apache-2.0
// A node of LSTM, GRU or RNN as its importers see it.
#ifndef SLUICE_FRONTEND_RECURRENT_LAYER_H
#define SLUICE_FRONTEND_RECURRENT_LAYER_H

#include "frontend/Compositions.h"

namespace sluice {

/// One of the functions that the standard names for gates and states.
struct Activation {
  enum class Kind {
    Affine,
    Elu,
    HardSigmoid,
    LeakyRelu,
    Relu,
    ScaledTanh,
    Sigmoid,
    Softplus,
    Softsign,
    Tanh,
    ThresholdedRelu
  };
  Kind kind;
  double alpha = 0, beta = 0; ///< where the function has them
};

/// One for each name, with the numbers of activation_alpha and activation_beta, which those that have some take in
/// order; none after an error.
llvm::SmallVector<Activation> activationsOf(NodeImport &node, llvm::ArrayRef<std::string> names);

/// One direction of a layer, in the order of the standard: forward, then reverse.
struct Direction {
  std::optional<train::Cell> cell;              ///< that of train.recurrence; none: its steps are unrolled
  llvm::SmallVector<Activation, 3> activations; ///< f, g and h of the standard, as many as the op has
  bool reverse;
};

/// The node's directions and extents, and its tensors: the inputs of all steps as rows [T*B,I], what has the directions
/// in front. Null where the node has none.
struct Layer {
  llvm::SmallVector<Direction> directions;
  bool batchFirst = false, couples = false, linearBeforeReset = false;
  bool halfBias = false; ///< the second half of the bias stands for none, see TensorRoles::halfBiases
  double clip = 0;       ///< 0: none
  int64_t gates = 0, steps = 0, batch = 0, inputs = 0, width = 0;
  mlir::Value rows, weight, recurrent, bias, hidden, cells, peepholes;
  mlir::Value lengths; ///< of sequences that end early, as numbers [1,B,1]

  int64_t count() const { return directions.size(); }
  int64_t columns() const { return gates * width; }
};

/// What the steps of one direction read: the inputs' part of the gates [T,B,G*H], the states' weight [G*H,H], h and c
/// before the first step [B,H], the bias [H] of the product that a gru with linear_before_reset resets, and peepholes
/// [3*H]. Null where there is none.
struct Parts {
  mlir::Value gates, weight, before, cell, inner, peepholes;
};

/// What one direction computes: [T,B,H], [1,B,H] twice; null where nothing reads it, and after an error.
struct Output {
  mlir::Value hidden, last, cell;
};

/// Lengths of sequences, the node's input `input`, into layer.lengths; it needs the layer's steps and batch. Lengths
/// that all are that of the tensor say nothing.
mlir::LogicalResult readLengths(NodeImport &node, int input, Layer &layer);

/// Rows [T*B,...] with every sequence back to front, the steps after its end where they are; done twice, nothing.
mlir::Value turned(NodeImport &node, const Layer &layer, mlir::Value rows);

/// 0, 1 and so on [T,1,1], and where steps lie in their sequence 1, else 0 [T,B,1].
mlir::Value stepNumbers(NodeImport &node, const Layer &layer);
mlir::Value insideOf(NodeImport &node, const Layer &layer);

/// The steps of a direction op by op: for cells that train.recurrence does not have.
Output unrolledOf(NodeImport &node, const Layer &layer, const Direction &direction, const Parts &parts);

} // namespace sluice

#endif
