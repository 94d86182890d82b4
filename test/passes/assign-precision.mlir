// RUN: sluice-opt %s --split-input-file --sluice-assign-precision | FileCheck %s
// RUN: sed 's/precision = "bf16"/precision = "fp16"/' %s | sluice-opt --split-input-file --sluice-assign-precision | sed 's/xf16/xbf16/g' | FileCheck %s
// The same with f16 for bf16.
// A network from its image to its update in bf16: what products read is narrow, what stays wide and where casts stand.

module attributes {train.precision = "bf16"} {
train.variable @w role(parameter) init(zero) : tensor<8x3x3x3xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<8x3x3x3xf32>
train.variable @bias role(parameter) init(zero) : tensor<8xf32>
train.variable @fc role(parameter) init(zero) : tensor<10x8xf32>
train.variable @"fc/momentum" role(optimizer) init(zero) : tensor<10x8xf32>

// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x3x8x8xf32, #train.layout<nhwc>>
func.func @step(%x: tensor<4x3x8x8xf32, #train.layout<nhwc>>, %target: tensor<4xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<8x3x3x3xf32>
  %bias = train.read @bias : tensor<8xf32>
  // The image and the weights are rounded right before the convolution, the weights into its engine's order, and belong to its forward op. The
  // bias stays. Three channels become eight.
  // CHECK: %[[XH:.*]] = train.cast %[[X]] {train.forward = 0 : i64} : {{.*}} -> tensor<4x8x8x8xbf16, #train.layout<nhwc>>
  // CHECK-NEXT: %[[WH:.*]] = train.cast %{{.*}} {train.forward = 0 : i64} : (tensor<8x3x3x3xf32>) -> tensor<8x8x3x3xbf16, #train.layout<nhwc>>
  // CHECK-NEXT: %[[Y:.*]] = train.conv %[[XH]], %[[WH]], %{{.*}}tensor<8xf32>) -> tensor<4x8x8x8xbf16, #train.layout<nhwc>>
  // 2 * (4*8*8*8) * 72 operations at half of 2 TFLOP/s take less than 4096 + 1152 + 32 + 4096 bytes at 1 GB/s.
  // COST: train.conv {{.*}}train.cost = #train.cost<seconds = 9.376
  %y = train.conv %x, %w, %bias {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64, train.forward = 0 : i64} : (tensor<4x3x8x8xf32, #train.layout<nhwc>>, tensor<8x3x3x3xf32>, tensor<8xf32>) -> tensor<4x8x8x8xf32, #train.layout<nhwc>>
  // Statistics are vectors; the region computes in f32.
  // CHECK-NEXT: %[[MEAN:.*]], %[[RSTD:.*]] = train.batch_norm_statistics %[[Y]] {{.*}} -> (tensor<8xf32>, tensor<8xf32>)
  %mean, %rstd = train.batch_norm_statistics %y {epsilon = 1.0e-5 : f32, train.forward = 1 : i64} : (tensor<4x8x8x8xf32, #train.layout<nhwc>>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK-NEXT: %[[Z:.*]] = train.fused(%[[Y]], %[[MEAN]], %[[RSTD]] : tensor<4x8x8x8xbf16, #train.layout<nhwc>>, tensor<8xf32>, tensor<8xf32>) {{.*}}-> (tensor<4x8x8x8xbf16, #train.layout<nhwc>>)
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32):
  %z = train.fused (%y, %mean, %rstd : tensor<4x8x8x8xf32, #train.layout<nhwc>>, tensor<8xf32>, tensor<8xf32>) channels [1, 2] sums 0 -> (tensor<4x8x8x8xf32, #train.layout<nhwc>>) attributes {train.forward = 2 : i64} {
  ^bb0(%a: f32, %m: f32, %r: f32):
    %0 = arith.subf %a, %m : f32
    %1 = arith.mulf %0, %r : f32
    train.yield %1 : f32
  }
  // CHECK: %[[P:.*]] = train.average_pool %[[Z]] {{.*}} -> tensor<4x8x1x1xbf16, #train.layout<nhwc>>
  %p = train.average_pool %z {kernel = array<i64: 8, 8>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, train.forward = 3 : i64} : (tensor<4x8x8x8xf32, #train.layout<nhwc>>) -> tensor<4x8x1x1xf32, #train.layout<nhwc>>
  // CHECK-NEXT: %[[R:.*]] = train.reorder %[[P]] {{.*}} -> tensor<4x8x1x1xbf16>
  // CHECK-NEXT: %[[F:.*]] = train.reshape %[[R]] {{.*}} -> tensor<4x8xbf16>
  %r = train.reorder %p {train.forward = 4 : i64} : (tensor<4x8x1x1xf32, #train.layout<nhwc>>) -> tensor<4x8x1x1xf32>
  %f = train.reshape %r {train.forward = 4 : i64} : (tensor<4x8x1x1xf32>) -> tensor<4x8xf32>
  %fc = train.read @fc : tensor<10x8xf32>
  // The gradient of a loss over classes leads to products, and so do the logits that it reads: they are rounded, the loss needs no cast, and the gradient has their type.
  // CHECK: %[[FCH:.*]] = train.cast %{{.*}} : (tensor<10x8xf32>) -> tensor<10x8xbf16>
  // CHECK-NEXT: %[[L:.*]] = train.matmul %[[F]], %[[FCH]] {{.*}} -> tensor<4x10xbf16>
  // CHECK-NEXT: train.softmax_cross_entropy %[[L]]
  %l = train.matmul %f, %fc {transpose_b = true, train.forward = 5 : i64} : (tensor<4x8xf32>, tensor<10x8xf32>) -> tensor<4x10xf32>
  %loss = train.softmax_cross_entropy %l, %target {train.forward = 6 : i64} : (tensor<4x10xf32>, tensor<4xi64>) -> tensor<f32>
  // CHECK-NEXT: %[[DLH:.*]] = train.loss_backward softmax_cross_entropy %[[L]], {{.*}} : (tensor<4x10xbf16>, tensor<4xi64>) -> tensor<4x10xbf16>
  %dl = train.loss_backward softmax_cross_entropy %l, %target {train.backward = 6 : i64} : (tensor<4x10xf32>, tensor<4xi64>) -> tensor<4x10xf32>
  // A weight gradient is f32, the gradient of an activation is not; both products share the casts.
  // CHECK-NEXT: %[[DFC:.*]] = train.matmul %[[DLH]], %[[F]] {{.*}} -> tensor<10x8xf32>
  // CHECK-NEXT: %[[DF:.*]] = train.matmul %[[DLH]], %[[FCH]] {{.*}} -> tensor<4x8xbf16>
  // CHECK: train.update(%[[DFC]],
  %dfc = train.matmul %dl, %f {transpose_a = true, train.backward = 5 : i64} : (tensor<4x10xf32>, tensor<4x8xf32>) -> tensor<10x8xf32>
  %df = train.matmul %dl, %fc {train.backward = 5 : i64} : (tensor<4x10xf32>, tensor<10x8xf32>) -> tensor<4x8xf32>
  %old1 = train.read @fc : tensor<10x8xf32>
  %old1_0 = train.read @"fc/momentum" : tensor<10x8xf32>
  %new1:2 = train.update(%dfc, %old1, %old1_0) rule(sgd) {train.backward = 5 : i64} : tensor<10x8xf32>
  %dr = train.reshape %df {train.backward = 4 : i64} : (tensor<4x8xf32>) -> tensor<4x8x1x1xf32>
  %dp = train.reorder %dr {train.backward = 4 : i64} : (tensor<4x8x1x1xf32>) -> tensor<4x8x1x1xf32, #train.layout<nhwc>>
  // CHECK: %[[DZ:.*]] = train.average_pool_backward {{.*}} -> tensor<4x8x8x8xbf16, #train.layout<nhwc>>
  %dz = train.average_pool_backward %dp {kernel = array<i64: 8, 8>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, train.backward = 3 : i64} : (tensor<4x8x1x1xf32, #train.layout<nhwc>>) -> tensor<4x8x8x8xf32, #train.layout<nhwc>>
  // Sums over channels stay vectors of f32 beside a full result in bf16.
  // CHECK-NEXT: %[[D:.*]]:2 = train.fused(%[[DZ]] : tensor<4x8x8x8xbf16, #train.layout<nhwc>>) {{.*}}-> (tensor<4x8x8x8xbf16, #train.layout<nhwc>>, tensor<8xf32>)
  %dy, %sum = train.fused (%dz : tensor<4x8x8x8xf32, #train.layout<nhwc>>) channels [] sums 1 -> (tensor<4x8x8x8xf32, #train.layout<nhwc>>, tensor<8xf32>) attributes {train.backward = 2 : i64} {
  ^bb0(%a: f32):
    train.yield %a, %a : f32, f32
  }
  // The gradients of the new channels' weights, of which there are none, go.
  // CHECK: %[[DW:.*]] = train.conv_backward_weight %[[D]]#0, %[[XH]] {{.*}} -> tensor<8x8x3x3xf32>
  // CHECK-NEXT: %[[KEPT:.*]] = train.slice %[[DW]] {axis = 1 : i64, length = 3 : i64, start = 0 : i64, train.backward = 0 : i64} : (tensor<8x8x3x3xf32>) -> tensor<8x3x3x3xf32>
  // CHECK: train.update(%[[KEPT]],
  %dw = train.conv_backward_weight %dy, %x {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64, train.backward = 0 : i64} : (tensor<4x8x8x8xf32, #train.layout<nhwc>>, tensor<4x3x8x8xf32, #train.layout<nhwc>>) -> tensor<8x3x3x3xf32>
  %old2 = train.read @w : tensor<8x3x3x3xf32>
  %old2_0 = train.read @"w/momentum" : tensor<8x3x3x3xf32>
  %new2:2 = train.update(%dw, %old2, %old2_0) rule(sgd) {train.backward = 0 : i64} : tensor<8x3x3x3xf32>
  return %loss : tensor<f32>
}
}

// -----

// An image that is bf16 already stays as it is, and so does one in groups.
module attributes {train.precision = "bf16"} {
// CHECK-LABEL: func.func @few_channels
func.func @few_channels(%x: tensor<4x4x8x8xf32, #train.layout<nhwc>>, %w: tensor<4x2x1x1xf32>, %v: tensor<8x4x1x1xf32>) -> tensor<4x8x8x8xf32, #train.layout<nhwc>> {
  // CHECK: train.cast %arg0 {{.*}} -> tensor<4x4x8x8xbf16, #train.layout<nhwc>>
  // CHECK: train.cast %arg1 {{.*}} -> tensor<4x2x1x1xbf16, #train.layout<nhwc>>
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 2 : i64} : (tensor<4x4x8x8xf32, #train.layout<nhwc>>, tensor<4x2x1x1xf32>) -> tensor<4x4x8x8xf32, #train.layout<nhwc>>
  // CHECK: train.cast %arg2 {{.*}} -> tensor<8x4x1x1xbf16, #train.layout<nhwc>>
  %z = train.conv %y, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x4x8x8xf32, #train.layout<nhwc>>, tensor<8x4x1x1xf32>) -> tensor<4x8x8x8xf32, #train.layout<nhwc>>
  return %z : tensor<4x8x8x8xf32, #train.layout<nhwc>>
}
}

// -----

// Ops without a kernel for bf16 get casts around them, and what they alone read is stored wide at once. Behind the last product nothing is narrow.
module attributes {train.precision = "bf16"} {
// CHECK-LABEL: func.func @wide_ops
func.func @wide_ops(%x: tensor<4x8x8x8xf32, #train.layout<nhwc>>, %w: tensor<8x8x1x1xf32>, %target: tensor<4x8x8x8xf32>, %c: tensor<8xf32>) -> tensor<f32> {
  // CHECK: %[[W:.*]] = train.cast %arg1
  // CHECK: %[[Y:.*]] = train.conv {{.*}} -> tensor<4x8x8x8xbf16, #train.layout<nhwc>>
  %y = train.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x8x8x8xf32, #train.layout<nhwc>>, tensor<8x8x1x1xf32>) -> tensor<4x8x8x8xf32, #train.layout<nhwc>>
  // CHECK: %[[R:.*]] = train.fused(%[[Y]] : tensor<4x8x8x8xbf16, #train.layout<nhwc>>) {{.*}}-> (tensor<4x8x8x8xf32, #train.layout<nhwc>>)
  %r = train.fused (%y : tensor<4x8x8x8xf32, #train.layout<nhwc>>) channels [] sums 0 -> (tensor<4x8x8x8xf32, #train.layout<nhwc>>) {
  ^bb0(%a: f32):
    %0 = arith.addf %a, %a : f32
    train.yield %0 : f32
  }
  // CHECK: %[[N:.*]], %{{.*}}, %{{.*}} = train.batch_norm %[[R]], {{.*}} -> (tensor<4x8x8x8xf32, #train.layout<nhwc>>, tensor<8xf32>, tensor<8xf32>)
  // CHECK-NEXT: %[[NH:.*]] = train.cast %[[N]]
  %n, %mean, %rstd = train.batch_norm %r, %c, %c {epsilon = 1.0e-5 : f32} : (tensor<4x8x8x8xf32, #train.layout<nhwc>>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8x8x8xf32, #train.layout<nhwc>>, tensor<8xf32>, tensor<8xf32>)
  // Pool and normalization are on the way to a product: they work on the rounded tensor.
  // CHECK-NEXT: %[[P:.*]], %{{.*}} = train.max_pool %[[NH]] {{.*}} -> (tensor<4x8x8x8xbf16, #train.layout<nhwc>>, tensor<4x8x8x8xi8, #train.layout<nhwc>>)
  %p, %i = train.max_pool %n {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<4x8x8x8xf32, #train.layout<nhwc>>) -> (tensor<4x8x8x8xf32, #train.layout<nhwc>>, tensor<4x8x8x8xi8, #train.layout<nhwc>>)
  // CHECK-NEXT: %[[Q:.*]] = train.lrn %[[P]] {{.*}} -> tensor<4x8x8x8xbf16, #train.layout<nhwc>>
  %q = train.lrn %p {size = 5 : i64, alpha = 1.0e-4 : f32, beta = 7.5e-1 : f32, bias = 1.0 : f32} : (tensor<4x8x8x8xf32, #train.layout<nhwc>>) -> tensor<4x8x8x8xf32, #train.layout<nhwc>>
  // CHECK-NEXT: %[[Z:.*]] = train.conv %[[Q]], %[[W]] {{.*}} -> tensor<4x8x8x8xbf16, #train.layout<nhwc>>
  %z = train.conv %q, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<4x8x8x8xf32, #train.layout<nhwc>>, tensor<8x8x1x1xf32>) -> tensor<4x8x8x8xf32, #train.layout<nhwc>>
  // A convolution cannot store f32: what moves the result moves halves, and the loss gets a cast.
  // CHECK-NEXT: %[[O:.*]] = train.reorder %[[Z]] : {{.*}} -> tensor<4x8x8x8xbf16>
  // CHECK-NEXT: %[[OW:.*]] = train.cast %[[O]] : (tensor<4x8x8x8xbf16>) -> tensor<4x8x8x8xf32>
  // CHECK-NEXT: train.mse %[[OW]], %arg2
  %o = train.reorder %z : (tensor<4x8x8x8xf32, #train.layout<nhwc>>) -> tensor<4x8x8x8xf32>
  %loss = train.mse %o, %target : (tensor<4x8x8x8xf32>, tensor<4x8x8x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// A mean is a sum: it stays wide, and what is made from it and a narrow tensor is narrow where a product reads it. What only means and their
// like flow into stays wide.
module attributes {train.precision = "bf16"} {
// CHECK-LABEL: func.func @layer_norm
func.func @layer_norm(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[Y:.*]] = train.matmul {{.*}} -> tensor<4x8xbf16>
  %y = train.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: %[[M:.*]] = train.sum_to %[[Y]] {{.*}} : (tensor<4x8xbf16>) -> tensor<4x1xf32>
  %m = train.sum_to %y {factor = 1.25e-1 : f32} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  // CHECK-NEXT: %[[S:.*]] = train.fused(%[[M]] : tensor<4x1xf32>) {{.*}}-> (tensor<4x1xf32>)
  %s = train.fused (%m : tensor<4x1xf32>) channels [] sums 0 -> (tensor<4x1xf32>) {
  ^bb0(%a: f32):
    %0 = arith.addf %a, %a : f32
    train.yield %0 : f32
  }
  // CHECK: %[[N:.*]] = train.fused(%[[Y]], %[[S]] : tensor<4x8xbf16>, tensor<4x1xf32>) {{.*}}-> (tensor<4x8xbf16>)
  %n = train.fused (%y, %s : tensor<4x8xf32>, tensor<4x1xf32>) channels [] sums 0 -> (tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.subf %a, %b : f32
    train.yield %0 : f32
  }
  // CHECK: %[[Z:.*]] = train.matmul %[[N]], %{{.*}} -> tensor<4x8xf32>
  // CHECK-NEXT: return %[[Z]]
  %z = train.matmul %n, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}
}

// -----

// Logits without a gradient, as those of @evaluate, stay as they are summed. A gradient that something scales is rounded after that.
module attributes {train.precision = "bf16"} {
// CHECK-LABEL: func.func @evaluated
func.func @evaluated(%x: tensor<4x8xf32>, %w: tensor<10x8xf32>, %target: tensor<4xi64>) -> tensor<f32> {
  // CHECK: train.matmul {{.*}} -> tensor<4x10xf32>
  %y = train.matmul %x, %w {transpose_b = true} : (tensor<4x8xf32>, tensor<10x8xf32>) -> tensor<4x10xf32>
  %loss = train.softmax_cross_entropy %y, %target : (tensor<4x10xf32>, tensor<4xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}
// CHECK-LABEL: func.func @scaled
func.func @scaled(%x: tensor<4x8xf32>, %w: tensor<10x8xf32>, %target: tensor<4xi64>, %scale: tensor<f32>) -> tensor<10x8xf32> {
  // CHECK: train.matmul {{.*}} -> tensor<4x10xbf16>
  %y = train.matmul %x, %w {transpose_b = true} : (tensor<4x8xf32>, tensor<10x8xf32>) -> tensor<4x10xf32>
  // CHECK-NEXT: train.loss_backward {{.*}} : (tensor<4x10xbf16>, tensor<4xi64>) -> tensor<4x10xf32>
  %dy = train.loss_backward softmax_cross_entropy %y, %target : (tensor<4x10xf32>, tensor<4xi64>) -> tensor<4x10xf32>
  // CHECK-NEXT: train.fused{{.*}} -> (tensor<4x10xbf16>)
  %d = train.fused (%dy, %scale : tensor<4x10xf32>, tensor<f32>) channels [] sums 0 -> (tensor<4x10xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.mulf %a, %b : f32
    train.yield %0 : f32
  }
  %dw = train.matmul %d, %x {transpose_a = true} : (tensor<4x10xf32>, tensor<4x8xf32>) -> tensor<10x8xf32>
  return %dw : tensor<10x8xf32>
}
}

// -----

// Any other precision leaves everything as it is.
module attributes {train.precision = "tf32"} {
// CHECK-LABEL: func.func @tf32
// CHECK-NOT: bf16
func.func @tf32(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = train.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
}
