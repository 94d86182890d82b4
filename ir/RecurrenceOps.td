// SPDX-License-Identifier: Apache-2.0
// Recurrent networks: the steps of LSTM, GRU and RNN, which run one after the other. What all steps can do at once is composed of other
// ops: the product of the inputs with their weights, and the gradients of both weights.
#ifndef SLUICE_IR_RECURRENCE_OPS
#define SLUICE_IR_RECURRENCE_OPS

include "ir/GradientOps.td"

def Train_RecurrenceOp : Train_ForwardOp<"recurrence", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_Differentiable, ["isWeightOperand"]>,
    DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"FullyConnected", results = ["", "_saved", "_cell"]>.decl;
  let summary = "hidden states of a recurrent layer in one direction, step by step";
  let description = [{
    `gates` [T,B,G*H] are the inputs' parts of the gates before their activation, with all biases that do not depend on the state; `weight`
    [G*H,H] is what the state h of the step before is multiplied with, `initial` [B,H] the state before the first step. Gates are in ONNX's
    order, s is the logistic function:

    - lstm, G = 4: i, o, f by s, g by tanh; c = f * c' + i * g; h = o * tanh(c). `extra` is c before the first step. Results after the
      hidden states: i, o, f, g, c of all steps [T,B,5*H], and c of the last one [B,H].
    - gru, G = 3: z, r by s; n = tanh(.. + (r * h') R'); h = (1 - z) * n + z * h'. Result after the hidden states: z, r, n [T,B,3*H].
    - gru_linear_before_reset, G = 3: n = tanh(.. + r * q) with q = h' R' + `extra`. Result after: z, r, n, q [T,B,4*H].
    - rnn_tanh and rnn_relu, G = 1: h is the activation.

    What is after the hidden states is there for the backward op, but for the last c, which has a gradient. With `reverse` the last step
    of time is the first one to run.

    - C1: gates have rank 3 and weight has G * H rows of H elements, none of them empty.
    - C2: initial is [B,H]; extra is [B,H] for lstm, [H] for gru_linear_before_reset and absent for others.

    ```mlir
    %h, %saved, %c = train.recurrence %gates, %weight, %h0, %c0 {cell = 0 : i32, reverse = false}
        : (tensor<20x8x64xf32>, tensor<64x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<20x8x16xf32>, tensor<20x8x80xf32>, tensor<8x16xf32>)
    ```
  }];
  let arguments = (ins Train_Float:$gates, Train_Float:$weight, Train_Float:$initial, Optional<Train_Float>:$extra, Train_Cell:$cell,
      DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Train_Float:$hidden, Variadic<Train_Float>:$rest);
}

def Train_RecurrenceBackwardOp : Train_GradientOp<"recurrence_backward", [Train_OwnKernel, DeclareOpInterfaceMethods<Train_Costed, ["flops", "work"]>]> {
  let extraClassDeclaration = Train_KernelFacts<"FullyConnected", results = ["", "_initial", "_rest"]>.decl;
  let summary = "gradients of train.recurrence with respect to gates and initial states";
  let description = [{
    `states` are what the cell saved; of an lstm also c before the first step and, where something reads the last c, its gradient. The result
    after dgates and dinitial is, of an lstm, the gradient of the first c; of a gru r * h', which is the factor of its last gate's weight; of a
    gru_linear_before_reset the gradient of q. The gradient of the weight is a product over all steps at once.

    - C1: train.recurrence of this cell maps dgates, weight and initial (and the first c) to dy, hidden and what was saved.
    - C2: results are those of the cell: dinitial has initial's shape, what is after it that of the first c, or of hidden.

    ```mlir
    %dgates, %dh0, %reset = train.recurrence_backward %dy, %weight, %h0, %h, %saved {cell = 1 : i32, reverse = false}
        : (tensor<20x8x16xf32>, tensor<48x16xf32>, tensor<8x16xf32>, tensor<20x8x16xf32>, tensor<20x8x48xf32>)
        -> (tensor<20x8x48xf32>, tensor<8x16xf32>, tensor<20x8x16xf32>)
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$weight, Train_Float:$initial, Train_Float:$hidden, Variadic<Train_Float>:$states,
      Train_Cell:$cell, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Train_Float:$dgates, Train_Float:$dinitial, Variadic<Train_Float>:$rest);
}

#endif
