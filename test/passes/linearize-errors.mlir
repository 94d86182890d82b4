// RUN: sluice-opt --sluice-linearize --split-input-file --verify-diagnostics %s
// The pass refuses what cannot be added up; what it leaves is verified (A1 and A2 of the train dialect).

// expected-error @below {{the tensors of @bytes take more than 2^58 bytes together}}
func.func @bytes(%x: tensor<2x18014398509481984xf32>) -> tensor<2x18014398509481984xf32> {
  %a = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x18014398509481984xf32>) -> tensor<18014398509481984x2xf32>
  %b = train.transpose %a {permutation = array<i64: 1, 0>} : (tensor<18014398509481984x2xf32>) -> tensor<2x18014398509481984xf32>
  return %b : tensor<2x18014398509481984xf32>
}

// -----

func.func @a1_negative(%x: tensor<2x3xf32>) {
  // expected-error @below {{needs 'train.stage' >= 0, has -1 : i64}}
  %y = train.relu %x {train.stage = -1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @a1_both(%x: tensor<2x3xf32>) {
  // expected-error @below {{is both the forward op 1 : i64 and a backward op of 0 : i64}}
  %y = train.relu %x {train.forward = 1 : i64, train.backward = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @a2_count(%x: tensor<2x3xf32>) {
  // expected-error @below {{needs 'train.in_place' with an operand for each of its 1 results, has array<i64: 0, 0>}}
  %y = train.relu %x {train.in_place = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @a2_type(%x: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @below {{cannot give result 0 of type 'tensor<2x3xf32>' the bytes of operand 1}}
  %y = train.add %x, %b {train.in_place = array<i64: 1>} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @a2_twice(%x: tensor<2x3xf32>) {
  // expected-error @below {{cannot give result 1 of type 'tensor<2x3xf32>' the bytes of operand 0}}
  %y:2 = train.fused (%x : tensor<2x3xf32>) channels [] sums 0 -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {train.in_place = array<i64: 0, 0>} {
  ^bb0(%s: f32):
    train.yield %s, %s : f32, f32
  }
  return
}

// -----

// Nothing of the dialect looks at what nobody reads.
// expected-error @below {{argument 0 is no tensor that fits a memory: 'tensor<9223372036854775807x4xf32>'}}
func.func @unread(%x: tensor<9223372036854775807x4xf32>) {
  return
}

// -----

func.func @made() {
  // expected-error @below {{makes no tensor that fits a memory: 'tensor<9223372036854775807x4xf32>'}}
  %x = arith.constant dense<0.0> : tensor<9223372036854775807x4xf32>
  return
}
