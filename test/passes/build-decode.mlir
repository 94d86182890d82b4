// RUN: sluice-opt %s --sluice-build-decode | FileCheck %s
// One token of each of three texts: parts of one projection stay views, positions and masks are read at the places of tokens, keys and values are stored by the evaluation, too.

// CHECK: module attributes {train.decode = [@decode, 0]
module attributes {train.outputs = [#train.output<name = "scores", loss = "token-cross-entropy", target = "target", kept = 0>]} {
  // CHECK-DAG: train.variable @"train/places" role(gradient) init(zero) : tensor<3xi64> {train.cache}
  // CHECK-DAG: train.variable @"cache/0/keys" role(gradient) init(zero) : tensor<3x2x8x4xf32> {train.cache}
  // CHECK-DAG: train.variable @"cache/0/values" role(gradient) init(zero) : tensor<3x2x8x4xf32> {train.cache}
  train.variable @words role(parameter) init(zero) : tensor<29x8xf32>
  train.variable @positions role(parameter) init(zero) : tensor<8x8xf32>
  train.variable @qkv role(parameter) init(zero) : tensor<8x24xf32>
  train.variable @head role(parameter) init(zero) : tensor<29x8xf32>
  train.variable @lower role(constant) init(file) : tensor<1x1x8x8xf32>
  train.variable @hidden role(constant) init(file) : tensor<f32>

  // CHECK-LABEL: func.func @evaluate
  // CHECK: %[[P:.*]] = train.matmul
  // CHECK: %[[K:.*]] = train.read @"cache/0/keys"
  // CHECK: train.cache_rows %[[P]], %[[K]] {view = #train.view<[3, 2, 8, 4] from 8 by [192, 4, 24]>} : (tensor<24x24xf32>, tensor<3x2x8x4xf32>) -> tensor<3x2x8x4xf32>
  // CHECK: %[[V:.*]] = train.read @"cache/0/values"
  // CHECK: train.cache_rows %[[P]], %[[V]] {view = #train.view<[3, 2, 8, 4] from 16 by [192, 4, 24]>}
  // CHECK: train.attention
  func.func @evaluate(%ids: tensor<3x8xi64> {train.name = "ids"}, %target: tensor<3x8xi64> {train.name = "target"}) -> (tensor<f32>, tensor<3x8x29xf32>) {
    %words = train.read @words : tensor<29x8xf32>
    %e = train.embedding %words, %ids : (tensor<29x8xf32>, tensor<3x8xi64>) -> tensor<3x8x8xf32>
    %positions = train.read @positions : tensor<8x8xf32>
    %x = train.add %e, %positions : (tensor<3x8x8xf32>, tensor<8x8xf32>) -> tensor<3x8x8xf32>
    %lower = train.read @lower : tensor<1x1x8x8xf32>
    %hidden = train.read @hidden : tensor<f32>
    %mask = train.mul %lower, %hidden : (tensor<1x1x8x8xf32>, tensor<f32>) -> tensor<1x1x8x8xf32>
    %rows = train.reshape %x : (tensor<3x8x8xf32>) -> tensor<24x8xf32>
    %qkv = train.read @qkv : tensor<8x24xf32>
    %p = train.matmul %rows, %qkv : (tensor<24x8xf32>, tensor<8x24xf32>) -> tensor<24x24xf32>
    %y, %sums = train.attention %p, %p, %p, %mask {scale = 5.0e-1 : f32, q_view = #train.view<[3, 2, 8, 4] from 0 by [192, 4, 24]>, k_view = #train.view<[3, 2, 8, 4] from 8 by [192, 4, 24]>,
        v_view = #train.view<[3, 2, 8, 4] from 16 by [192, 4, 24]>, y_order = array<i64: 0, 2, 1, 3>} : (tensor<24x24xf32>, tensor<24x24xf32>, tensor<24x24xf32>, tensor<1x1x8x8xf32>) -> (tensor<3x8x2x4xf32>, tensor<2x3x2x8xf32>)
    %joined = train.reshape %y : (tensor<3x8x2x4xf32>) -> tensor<3x8x8xf32>
    %z = train.add %joined, %x : (tensor<3x8x8xf32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
    %head = train.read @head : tensor<29x8xf32>
    %scores = train.matmul %z, %head {transpose_b = true} : (tensor<3x8x8xf32>, tensor<29x8xf32>) -> tensor<3x8x29xf32>
    %flat = train.reshape %scores : (tensor<3x8x29xf32>) -> tensor<24x29xf32>
    %targets = train.reshape %target : (tensor<3x8xi64>) -> tensor<24xi64>
    %loss = train.softmax_cross_entropy %flat, %targets : (tensor<24x29xf32>, tensor<24xi64>) -> tensor<f32>
    return %loss, %scores : tensor<f32>, tensor<3x8x29xf32>
  }
  // What only the loss reads is no part of it.
  // CHECK-LABEL: func.func @decode
  // CHECK-SAME: (%[[ID:.*]]: tensor<3x1xi64> {train.name = "ids"}) -> tensor<3x1x29xf32>
  // CHECK: %[[AT:.*]] = train.read @"train/places" : tensor<3xi64>
  // CHECK: train.embedding %{{.*}}, %[[ID]] : (tensor<29x8xf32>, tensor<3x1xi64>) -> tensor<3x1x8xf32>
  // CHECK: %[[TABLE:.*]] = train.read @positions
  // CHECK: %[[ROWS:.*]] = train.embedding %[[TABLE]], %[[AT]] : (tensor<8x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
  // CHECK: train.reshape %[[ROWS]] : (tensor<3x8xf32>) -> tensor<3x1x8xf32>
  // CHECK: %[[LOWER:.*]] = train.reshape %{{.*}} : (tensor<1x1x8x8xf32>) -> tensor<8x8xf32>
  // CHECK: train.embedding %[[LOWER]], %[[AT]] : (tensor<8x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
  // CHECK: %[[MASK:.*]] = train.mul %{{.*}} : (tensor<3x1x1x8xf32>, tensor<f32>) -> tensor<3x1x1x8xf32>
  // CHECK: %[[ONE:.*]] = train.matmul %{{.*}} : (tensor<3x8xf32>, tensor<8x24xf32>) -> tensor<3x24xf32>
  // CHECK: %[[KEYS:.*]] = train.cache_rows %[[ONE]], %[[AT]], %{{.*}} {view = #train.view<[3, 2, 1, 4] from 8 by [24, 4, 24]>} : (tensor<3x24xf32>, tensor<3xi64>, tensor<3x2x8x4xf32>)
  // CHECK: %[[VALUES:.*]] = train.cache_rows %[[ONE]], %[[AT]], %{{.*}} {view = #train.view<[3, 2, 1, 4] from 16 by [24, 4, 24]>}
  // CHECK: train.cached_attention %[[ONE]], %[[KEYS]], %[[VALUES]], %[[AT]], %[[MASK]] {q_view = #train.view<[3, 2, 1, 4] from 0 by [24, 4, 24]>, scale = 5.000000e-01 : f32}
  // CHECK-NOT: train.softmax_cross_entropy
}
