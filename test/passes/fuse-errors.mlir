// RUN: sluice-opt --split-input-file --verify-diagnostics %s
// The pass refuses nothing; what it leaves is verified (C1 and C2 of train.fused).

func.func @fused_c1_arguments(%x: tensor<2x3xf32>, %v: tensor<3xf32>) {
  // expected-error @below {{has 2 operands for 1 region arguments}}
  %y = train.fused (%x, %v : tensor<2x3xf32>, tensor<3xf32>) channels [1] sums 0 -> (tensor<2x3xf32>) {
  ^bb0(%s: f32):
    train.yield %s : f32
  }
  return
}

// -----

func.func @fused_c1_yield(%x: tensor<2x3xf32>, %v: tensor<3xf32>) {
  // expected-error @below {{has 2 operands for 2 region arguments and 1 results, 0 of them sums, for 2 yielded values}}
  %y = train.fused (%x, %v : tensor<2x3xf32>, tensor<3xf32>) channels [1] sums 0 -> (tensor<2x3xf32>) {
  ^bb0(%s: f32, %t: f32):
    train.yield %s, %t : f32, f32
  }
  return
}

// -----

func.func @fused_c1_sums(%x: tensor<2x3xf32>, %v: tensor<3xf32>) {
  // expected-error @below {{1 results, 2 of them sums, for 1 yielded values}}
  %y = train.fused (%x, %v : tensor<2x3xf32>, tensor<3xf32>) channels [1] sums 2 -> (tensor<3xf32>) {
  ^bb0(%s: f32, %t: f32):
    train.yield %s : f32
  }
  return
}

// -----

func.func @fused_c2_channel(%x: tensor<2x3xf32>, %v: tensor<2xf32>) {
  // expected-error @below {{operand 1 of type 'tensor<2xf32>' does not fit 'tensor<2x3xf32>'}}
  %y = train.fused (%x, %v : tensor<2x3xf32>, tensor<2xf32>) channels [1] sums 0 -> (tensor<2x3xf32>) {
  ^bb0(%s: f32, %t: f32):
    train.yield %s : f32
  }
  return
}

// -----

func.func @fused_c2_broadcast(%x: tensor<2x3xf32>, %v: tensor<2xf32>) {
  // expected-error @below {{operand 1 of type 'tensor<2xf32>' does not fit 'tensor<2x3xf32>'}}
  %y = train.fused (%x, %v : tensor<2x3xf32>, tensor<2xf32>) channels [] sums 0 -> (tensor<2x3xf32>) {
  ^bb0(%s: f32, %t: f32):
    train.yield %s : f32
  }
  return
}

// -----

func.func @fused_c2_sum(%x: tensor<2x3xf32>, %v: tensor<3xf32>) {
  // expected-error @below {{result 0 of type 'tensor<2xf32>' does not fit 'tensor<2x3xf32>'}}
  %y = train.fused (%x, %v : tensor<2x3xf32>, tensor<3xf32>) channels [1] sums 1 -> (tensor<2xf32>) {
  ^bb0(%s: f32, %t: f32):
    train.yield %s : f32
  }
  return
}
