// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of one tensor, activations above all, and what their gradients need besides arithmetic.
#ifndef SLUICE_IR_ACTIVATION_OPS
#define SLUICE_IR_ACTIVATION_OPS

include "ir/ElementwiseOps.td"

def Train_ReluOp : Train_UnaryOp<"relu"> {
  let summary = "x where x > 0, else 0; the gradient reads the result";
  let description = [{
    NaN passes: the value is NaN, and its gradient is dy.
    ```mlir
    %y = train.relu %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_LeakyReluOp : Train_LikeXOp<"leaky_relu"> {
  let summary = "x where x > 0, else alpha * x; for alpha > 0 the gradient reads the result, else x";
  let description = [{
    ```mlir
    %y = train.leaky_relu %x {alpha = 1.0e-2 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, F32Attr:$alpha);
}
def Train_ClipOp : Train_LikeXOp<"clip"> {
  let summary = "x limited to [min, max]; ReLU6 is clip to [0, 6]";
  let description = [{
    The gradient passes where min < x < max, as for ReLU6 and hardtanh in PyTorch; it reads the result.
    ```mlir
    %y = train.clip %x {min = 0.0 : f32, max = 6.0 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, F32Attr:$min, F32Attr:$max);
}
def Train_SigmoidOp : Train_UnaryOp<"sigmoid"> {
  let summary = "1 / (1 + exp(-x)); the gradient reads the result";
  let description = [{
    ```mlir
    %y = train.sigmoid %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_TanhOp : Train_UnaryOp<"tanh"> {
  let summary = "hyperbolic tangent; the gradient reads the result";
  let description = [{
    ```mlir
    %y = train.tanh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_ErfOp : Train_UnaryOp<"erf"> {
  let summary = "error function; the gradient reads x";
  let description = [{
    ```mlir
    %y = train.erf %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_GeluOp : Train_LikeXOp<"gelu"> {
  let summary = "Gaussian error linear unit, exact or by tanh; the gradient reads x";
  let description = [{
    x/2 * (1 + erf(x/sqrt(2))), or with `tanh` x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) (D. Hendrycks, K. Gimpel, arXiv:1606.08415, section 2).
    ```mlir
    %y = train.gelu %x {tanh = false} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, DefaultValuedAttr<BoolAttr, "false">:$tanh);
}
def Train_ExpOp : Train_UnaryOp<"exp"> {
  let summary = "e^x; the gradient reads the result";
  let description = [{
    ```mlir
    %y = train.exp %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_LogOp : Train_UnaryOp<"log"> {
  let summary = "natural logarithm; the gradient reads x";
  let description = [{
    ```mlir
    %y = train.log %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_SqrtOp : Train_UnaryOp<"sqrt"> {
  let summary = "square root; the gradient reads the result";
  let description = [{
    ```mlir
    %y = train.sqrt %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_ReciprocalOp : Train_UnaryOp<"reciprocal"> {
  let summary = "1/x; the gradient reads the result";
  let description = [{
    ```mlir
    %y = train.reciprocal %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_AbsOp : Train_UnaryOp<"abs"> {
  let summary = "magnitude; the gradient reads x, and is 0 where that is 0";
  let description = [{
    ```mlir
    %y = train.abs %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_SoftplusOp : Train_UnaryOp<"softplus"> {
  let summary = "log(1 + e^x); the gradient reads x";
  let description = [{
    ```mlir
    %y = train.softplus %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
}
def Train_EluOp : Train_LikeXOp<"elu"> {
  let summary = "x where x > 0, else alpha * (e^x - 1), alpha >= 0; the gradient reads the result";
  let description = [{
    ```mlir
    %y = train.elu %x {alpha = 1.0 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, F32Attr:$alpha);
}
def Train_TrigonometricOp : Train_LikeXOp<"trigonometric"> {
  let summary = "sine, cosine, tangent, their hyperbolic kin and the inverses of all; the gradient reads x";
  let description = [{
    NaN outside the domain of an inverse. Angles beyond 2^29 lose digits.
    ```mlir
    %y = train.trigonometric %x {function = 0 : i32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$x, Train_Trigonometry:$function);
}

// Backward rules.

def Train_ReluBackwardOp : Train_PointwiseBackwardOp<"relu_backward"> {
  let summary = "dy where y > 0 or y is NaN, else 0";
  let description = [{
    ```mlir
    %dx = train.relu_backward %dy, %y : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$y);
}
def Train_LeakyReluBackwardOp : Train_PointwiseBackwardOp<"leaky_relu_backward"> {
  let summary = "dy where the result (alpha > 0) was positive, else alpha * dy; reads x when alpha <= 0";
  let description = [{
    ```mlir
    %dx = train.leaky_relu_backward %dy, %y {alpha = 1.0e-2 : f32} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$y, F32Attr:$alpha);
}
def Train_ClipBackwardOp : Train_PointwiseBackwardOp<"clip_backward"> {
  let summary = "dy where min < y < max, else 0; reads the result";
  let description = [{
    ```mlir
    %dx = train.clip_backward %dy, %y {min = 0.0 : f32, max = 6.0 : f32} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$y, F32Attr:$min, F32Attr:$max);
}
def Train_SigmoidBackwardOp : Train_PointwiseBackwardOp<"sigmoid_backward"> {
  let summary = "dy * y * (1 - y)";
  let description = [{
    ```mlir
    %dx = train.sigmoid_backward %dy, %y : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$y);
}
def Train_TanhBackwardOp : Train_PointwiseBackwardOp<"tanh_backward"> {
  let summary = "dy * (1 - y * y)";
  let description = [{
    ```mlir
    %dx = train.tanh_backward %dy, %y : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$y);
}
def Train_ErfBackwardOp : Train_PointwiseBackwardOp<"erf_backward"> {
  let summary = "dy * 2/sqrt(pi) * exp(-x * x)";
  let description = [{
    ```mlir
    %dx = train.erf_backward %dy, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$x);
}
def Train_GeluBackwardOp : Train_PointwiseBackwardOp<"gelu_backward"> {
  let summary = "dy times the slope of train.gelu at x";
  let description = [{
    ```mlir
    %dx = train.gelu_backward %dy, %x {tanh = false} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$x, DefaultValuedAttr<BoolAttr, "false">:$tanh);
}
def Train_AbsBackwardOp : Train_PointwiseBackwardOp<"abs_backward"> {
  let summary = "dy with the sign of x, 0 where x is 0";
  let description = [{
    ```mlir
    %dx = train.abs_backward %dy, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$x);
}
def Train_EluBackwardOp : Train_PointwiseBackwardOp<"elu_backward"> {
  let summary = "dy where the result was positive, else dy * (y + alpha)";
  let description = [{
    ```mlir
    %dx = train.elu_backward %dy, %y {alpha = 1.0 : f32} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$y, F32Attr:$alpha);
}
def Train_TrigonometricBackwardOp : Train_PointwiseBackwardOp<"trigonometric_backward"> {
  let summary = "dy times the slope of train.trigonometric at x";
  let description = [{
    ```mlir
    %dx = train.trigonometric_backward %dy, %x {function = 0 : i32} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Train_Float:$dy, Train_Float:$x, Train_Trigonometry:$function);
}

#endif
