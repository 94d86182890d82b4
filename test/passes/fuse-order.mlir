// RUN: sluice-opt %s --sluice-fuse | FileCheck %s
// A factor of rank 2 beside images of rank 3 is row-major, sums over their channels are taken with channels last: no one kernel walks both. Sums that stand
// alone, and factors beside ops without sums, merge as ever.

// CHECK-LABEL: func.func @matrix
// CHECK: train.rule = "mul"}
// CHECK: train.rule = "normalize_reduce"}
// CHECK: return
func.func @matrix(%dy: tensor<4x4x6xf32>, %m: tensor<4x6xf32>, %x: tensor<4x4x6xf32>, %scale: tensor<4xf32>, %mean: tensor<4xf32>, %rstd: tensor<4xf32>) -> (tensor<4x4x6xf32>, tensor<4xf32>, tensor<4xf32>) {
  %d = train.mul %dy, %m {train.backward = 3 : i64} : (tensor<4x4x6xf32>, tensor<4x6xf32>) -> tensor<4x4x6xf32>
  %dx, %dscale, %dbias = train.batch_norm_backward %d, %x, %scale, %mean, %rstd {train.backward = 1 : i64} : (tensor<4x4x6xf32>, tensor<4x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x4x6xf32>, tensor<4xf32>, tensor<4xf32>)
  return %dx, %dscale, %dbias : tensor<4x4x6xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @vector
// CHECK: train.rule = "mul+normalize_reduce
// CHECK: return
func.func @vector(%dy: tensor<4x4x6xf32>, %m: tensor<4x4x6xf32>, %x: tensor<4x4x6xf32>, %scale: tensor<4xf32>, %mean: tensor<4xf32>, %rstd: tensor<4xf32>) -> (tensor<4x4x6xf32>, tensor<4xf32>, tensor<4xf32>) {
  %d = train.mul %dy, %m {train.backward = 3 : i64} : (tensor<4x4x6xf32>, tensor<4x4x6xf32>) -> tensor<4x4x6xf32>
  %dx, %dscale, %dbias = train.batch_norm_backward %d, %x, %scale, %mean, %rstd {train.backward = 1 : i64} : (tensor<4x4x6xf32>, tensor<4x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x4x6xf32>, tensor<4xf32>, tensor<4xf32>)
  return %dx, %dscale, %dbias : tensor<4x4x6xf32>, tensor<4xf32>, tensor<4xf32>
}
