// RUN: sluice-opt %s --sluice-fuse | FileCheck %s
// The scalar rules of ops that no other test fuses, each against its formula.

// CHECK-LABEL: func.func @leaky_relu
// CHECK: ^bb0(%[[X:.*]]: f32):
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[ALPHA:.*]] = arith.constant 2.500000e-01 : f32
// CHECK-DAG: %[[POSITIVE:.*]] = arith.cmpf ogt, %[[X]], %[[ZERO]] : f32
// CHECK-DAG: %[[SMALL:.*]] = arith.mulf %[[X]], %[[ALPHA]] : f32
// CHECK: %[[Y:.*]] = arith.select %[[POSITIVE]], %[[X]], %[[SMALL]] : f32
// CHECK-NEXT: train.yield %[[Y]]
func.func @leaky_relu(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = train.leaky_relu %x {alpha = 2.5e-1 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @scale
// CHECK: ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT: %[[FACTOR:.*]] = arith.constant 3.000000e+00 : f32
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[X]], %[[FACTOR]] : f32
// CHECK-NEXT: train.yield %[[Y]]
func.func @scale(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = train.scale %x {factor = 3.0 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @sub
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT: %[[Y:.*]] = arith.subf %[[A]], %[[B]] : f32
// CHECK-NEXT: train.yield %[[Y]]
func.func @sub(%a: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  %y = train.sub %a, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @div
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT: %[[Y:.*]] = arith.divf %[[A]], %[[B]] : f32
// CHECK-NEXT: train.yield %[[Y]]
func.func @div(%a: tensor<8x4xf32>, %b: tensor<8x1xf32>) -> tensor<8x4xf32> {
  %y = train.div %a, %b : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// A drop is a draw below the ratio; what is kept is 1 / (1 - 0.75) = 4 times as large.
// CHECK-LABEL: func.func @dropout
// CHECK: ^bb0(%[[X:.*]]: f32):
// CHECK-DAG: %[[DRAW:.*]] = train.uniform {key = 7 : i64} : () -> f32
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4.000000e+00 : f32
// CHECK-DAG: %[[KEPT:.*]] = arith.mulf %[[X]], %[[FOUR]] : f32
// CHECK-DAG: %[[DROPPED:.*]] = arith.cmpf olt, %[[DRAW]], %{{.*}} : f32
// CHECK: %[[Y:.*]] = arith.select %[[DROPPED]], %{{.*}}, %[[KEPT]] : f32
// CHECK-NEXT: train.yield %[[Y]]
func.func @dropout(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = train.dropout %x {ratio = 7.5e-1 : f32, key = 7 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// One draw for a sample.
// CHECK-LABEL: func.func @stochastic_depth
// CHECK: train.uniform {group = 4 : i64, key = 7 : i64} : () -> f32
func.func @stochastic_depth(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = train.dropout %x {ratio = 7.5e-1 : f32, key = 7 : i64, group = 4 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// dx = scale * rstd * ((dy - dbias / 32) - xhat * dscale / 32)
// CHECK-LABEL: func.func @normalize_backward
// CHECK: channels [2, 3, 4, 5, 6] sums 0
// CHECK: ^bb0(%[[DY:.*]]: f32, %[[X:.*]]: f32, %[[MEAN:.*]]: f32, %[[RSTD:.*]]: f32, %[[SCALE:.*]]: f32, %[[DSCALE:.*]]: f32, %[[DBIAS:.*]]: f32):
// CHECK-DAG: %[[INVERSE:.*]] = arith.constant 3.125000e-02 : f32
// CHECK-DAG: %[[FROM:.*]] = arith.subf %[[X]], %[[MEAN]] : f32
// CHECK-DAG: %[[XHAT:.*]] = arith.mulf %[[FROM]], %[[RSTD]] : f32
// CHECK-DAG: %[[B:.*]] = arith.mulf %[[DBIAS]], %[[INVERSE]] : f32
// CHECK-DAG: %[[S:.*]] = arith.mulf %[[DSCALE]], %[[INVERSE]] : f32
// CHECK-DAG: %[[FIRST:.*]] = arith.subf %[[DY]], %[[B]] : f32
// CHECK-DAG: %[[SECOND:.*]] = arith.mulf %[[XHAT]], %[[S]] : f32
// CHECK-DAG: %[[CENTRED:.*]] = arith.subf %[[FIRST]], %[[SECOND]] : f32
// CHECK-DAG: %[[FACTOR:.*]] = arith.mulf %[[SCALE]], %[[RSTD]] : f32
// CHECK: %[[DX:.*]] = arith.mulf %[[FACTOR]], %[[CENTRED]] : f32
// CHECK-NEXT: train.yield %[[DX]]
func.func @normalize_backward(%dy: tensor<8x4x2x2xf32>, %x: tensor<8x4x2x2xf32>, %mean: tensor<4xf32>, %rstd: tensor<4xf32>, %scale: tensor<4xf32>, %dscale: tensor<4xf32>, %dbias: tensor<4xf32>) -> tensor<8x4x2x2xf32> {
  %dx = train.normalize_backward %dy, %x, %mean, %rstd, %scale, %dscale, %dbias {count = 32 : i64} : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x2x2xf32>
  return %dx : tensor<8x4x2x2xf32>
}

// Sums of dy * (x - mean) / sqrt(variance + epsilon) and of dy.
// CHECK-LABEL: func.func @channel_affine_reduce
// CHECK: channels [2, 3] sums 2
// CHECK: ^bb0(%[[DY:.*]]: f32, %[[X:.*]]: f32, %[[MEAN:.*]]: f32, %[[VARIANCE:.*]]: f32):
// CHECK-DAG: %[[FROM:.*]] = arith.subf %[[X]], %[[MEAN]] : f32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG: %[[EPSILON:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-DAG: %[[MORE:.*]] = arith.addf %[[VARIANCE]], %[[EPSILON]] : f32
// CHECK-DAG: %[[ROOT:.*]] = math.sqrt %[[MORE]] : f32
// CHECK-DAG: %[[RSTD:.*]] = arith.divf %[[ONE]], %[[ROOT]] : f32
// CHECK-DAG: %[[XHAT:.*]] = arith.mulf %[[FROM]], %[[RSTD]] : f32
// CHECK: %[[DSCALE:.*]] = arith.mulf %[[DY]], %[[XHAT]] : f32
// CHECK-NEXT: train.yield %[[DSCALE]], %[[DY]]
func.func @channel_affine_reduce(%dy: tensor<8x4x2x2xf32>, %x: tensor<8x4x2x2xf32>, %mean: tensor<4xf32>, %variance: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %dscale, %dbias = train.channel_affine_reduce %dy, %x, %mean, %variance {epsilon = 1.25e-1 : f32} : (tensor<8x4x2x2xf32>, tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %dscale, %dbias : tensor<4xf32>, tensor<4xf32>
}

// dy * (scale / sqrt(variance + epsilon))
// CHECK-LABEL: func.func @channel_affine_backward
// CHECK: channels [1, 2] sums 0
// CHECK: ^bb0(%[[DY:.*]]: f32, %[[VARIANCE:.*]]: f32, %[[SCALE:.*]]: f32):
// CHECK-DAG: %[[MORE:.*]] = arith.addf %[[VARIANCE]], %{{.*}} : f32
// CHECK-DAG: %[[ROOT:.*]] = math.sqrt %[[MORE]] : f32
// CHECK-DAG: %[[RSTD:.*]] = arith.divf %{{.*}}, %[[ROOT]] : f32
// CHECK-DAG: %[[FACTOR:.*]] = arith.mulf %[[SCALE]], %[[RSTD]] : f32
// CHECK: %[[DX:.*]] = arith.mulf %[[DY]], %[[FACTOR]] : f32
// CHECK-NEXT: train.yield %[[DX]]
func.func @channel_affine_backward(%dy: tensor<8x4x2x2xf32>, %variance: tensor<4xf32>, %scale: tensor<4xf32>) -> tensor<8x4x2x2xf32> {
  %dx = train.channel_affine_backward %dy, %variance, %scale {epsilon = 1.25e-1 : f32} : (tensor<8x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x2x2xf32>
  return %dx : tensor<8x4x2x2xf32>
}
