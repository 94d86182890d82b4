// RUN: sluice-opt %s --split-input-file --sluice-apply-plan | FileCheck %s
// The plan of plan-memory.mlir's four products, written by hand: fc1_y leaves after op 1, its bytes
// are free before op 3, it comes back after op 6 and op 8 needs it; fc3_y is made again before op 6 reads it.

// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x8xf32> {train.name = "x"}
// CHECK-NEXT: %[[W:.*]] = train.read @w
// CHECK-NEXT: %[[A:.*]] = train.matmul %[[X]], %[[W]]
// CHECK-NEXT: %[[B:.*]] = train.matmul %[[A]], %[[W]]
// CHECK-NEXT: %[[H:.*]] = train.offload %[[A]]
// CHECK-NEXT: %[[C:.*]] = train.matmul %[[B]], %[[W]]
// CHECK-NEXT: train.await %[[H]]
// CHECK-NEXT: %[[D:.*]] = train.matmul %[[C]], %[[W]]
// CHECK-NEXT: train.mse %[[D]]
// CHECK-NEXT: %[[DD:.*]] = train.loss_backward mse %[[D]]
// What runs again reads what is newest: here the first fc2_y.
// CHECK-NEXT: %[[C2:.*]] = train.matmul %[[B]], %[[W]] {{.*}}train.recompute
// CHECK-NEXT: %[[DC:.*]] = train.matmul %[[DD]], %[[C2]]
// CHECK-NEXT: %[[A2:.*]] = train.prefetch %[[H]]
// CHECK-NEXT: %[[DB:.*]] = train.matmul %[[DC]], %[[B]]
// CHECK-NEXT: %[[DA:.*]] = train.matmul %[[DB]], %[[A2]]
// CHECK-NEXT: train.matmul %[[DA]], %[[X]]
train.variable @w role(parameter) init(zero) : tensor<8x8xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<8x8xf32>
func.func @step(%x: tensor<8x8xf32> {train.name = "x"}, %target: tensor<8x8xf32> {train.name = "target"}) -> tensor<f32> attributes {train.plan = #train.plan<strategy = "by hand" decisions [
    <storage = "fc1_y", action = offload absences [<leave_after = 1, free_before = 3, return_after = 6, needed_by = 8>]>,
    <storage = "fc3_y", action = recompute>]
  recomputes [<before 6 : 2>]>} {
  %w = train.read @w : tensor<8x8xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64, train.stage = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %b = train.matmul %a, %w {train.forward = 1 : i64, train.stage = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %c = train.matmul %b, %w {train.forward = 2 : i64, train.stage = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc3/Gemm")
  %d = train.matmul %c, %w {train.forward = 3 : i64, train.stage = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc4/Gemm")
  %loss = train.mse %d, %target {train.forward = 4 : i64, train.stage = 4 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  %dd = train.loss_backward mse %d, %target {train.backward = 4 : i64, train.stage = 4 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("loss")
  %dc = train.matmul %dd, %c {train.backward = 3 : i64, train.stage = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc4/Gemm")
  %db = train.matmul %dc, %b {train.backward = 2 : i64, train.stage = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc3/Gemm")
  %da = train.matmul %db, %a {train.backward = 1 : i64, train.stage = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %dw = train.matmul %da, %x {train.backward = 0 : i64, train.stage = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %old1 = train.read @w : tensor<8x8xf32>
  %old1_0 = train.read @"w/momentum" : tensor<8x8xf32>
  %new1:2 = train.update(%dw, %old1, %old1_0) rule(sgd) {train.backward = 0 : i64, train.stage = 0 : i64} : tensor<8x8xf32> loc("/fc1/Gemm")
  return %loss : tensor<f32>
}

// -----

// A value that comes back is read through a view: the view is made again, and the first one, which nobody reads any more, is gone.
// CHECK-LABEL: func.func @step
// CHECK: %[[A:.*]] = train.matmul
// CHECK-NEXT: %[[H:.*]] = train.offload %[[A]]
// CHECK-NEXT: train.await %[[H]]
// CHECK-NEXT: %[[D:.*]] = train.matmul
// CHECK-NEXT: train.reshape %[[D]]
// CHECK-NEXT: %[[BACK:.*]] = train.prefetch
// CHECK-NEXT: %[[VIEW:.*]] = train.reshape %[[BACK]]
// CHECK-NEXT: train.mul %{{.*}}, %[[VIEW]]
func.func @step(%x: tensor<8x8xf32>, %t: tensor<8x8xf32>) -> tensor<64xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [
    <storage = "matmul_y", action = offload absences [<leave_after = 0, free_before = 1, return_after = 1, needed_by = 2>]>]>} {
  %a = train.matmul %x, %x {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %v = train.reshape %a {train.forward = 1 : i64} : (tensor<8x8xf32>) -> tensor<64xf32>
  %d = train.matmul %t, %t {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = train.reshape %d {train.backward = 0 : i64} : (tensor<8x8xf32>) -> tensor<64xf32>
  %f = train.mul %e, %v {train.backward = 0 : i64} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %f : tensor<64xf32>
}

// -----

// What reads one view twice reads one that is made again: keys and values of attention cover their tensor together.
// CHECK-LABEL: func.func @step
// CHECK: train.prefetch
// CHECK-NEXT: %[[KV:.*]] = train.reshape
// CHECK-NEXT: train.attention %{{.*}}, %[[KV]], %[[KV]]
func.func @step(%x: tensor<8x8xf32>, %w: tensor<8x16xf32>, %q: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [
    <storage = "matmul_y", action = offload absences [<leave_after = 0, free_before = 1, return_after = 1, needed_by = 2>]>]>} {
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %kv = train.reshape %a {train.forward = 1 : i64} : (tensor<8x16xf32>) -> tensor<2x4x16xf32>
  %d = train.matmul %x, %x {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y, %l = train.attention %q, %kv, %kv {train.backward = 0 : i64, scale = 1.0 : f32, k_view = #train.view<[2, 4, 8] from 0 by [64, 16]>, v_view = #train.view<[2, 4, 8] from 8 by [64, 16]>} : (tensor<2x4x8xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  return %y : tensor<2x4x8xf32>
}

// -----

// Copies out run beside the op that reads; the bytes are awaited behind it. Of two that are issued after one op, the one whose bytes go first is
// the first.
// CHECK-LABEL: func.func @step
// CHECK: %[[A:.*]] = train.matmul
// CHECK-NEXT: %[[B:.*]] = train.matmul %[[A]]
// CHECK-NEXT: %[[HB:.*]] = train.offload %[[B]]
// CHECK-NEXT: %[[HA:.*]] = train.offload %[[A]]
// CHECK-NEXT: train.matmul %[[B]], %[[A]]
// CHECK-NEXT: train.await %[[HB]]
// CHECK-NEXT: train.matmul
// CHECK-NEXT: train.await %[[HA]]
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [
    <storage = "fc1_y", action = offload absences [<leave_after = 1, free_before = 4, return_after = 5, needed_by = 6>]>,
    <storage = "fc2_y", action = offload absences [<leave_after = 1, free_before = 3, return_after = 4, needed_by = 5>]>]>} {
  %a = train.matmul %x, %x {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %b = train.matmul %a, %x {train.forward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %c = train.matmul %b, %a {train.forward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc3/Gemm")
  %d = train.matmul %c, %c {train.forward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc4/Gemm")
  %e = train.matmul %d, %d {train.backward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc4/Gemm")
  %f = train.matmul %e, %b {train.backward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %g = train.matmul %f, %a {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  return %g : tensor<8x8xf32>
}

// -----

// Away twice: one copy out, and one wait for it, serve two returns. What ran first on the content of the first return runs again on that of the second.
// CHECK-LABEL: func.func @step
// CHECK: %[[A:.*]] = train.matmul
// CHECK-NEXT: %[[H:.*]] = train.offload %[[A]]
// CHECK-NEXT: %[[B:.*]] = train.matmul %[[A]]
// CHECK-NEXT: train.await %[[H]]
// CHECK-NEXT: %[[C:.*]] = train.matmul %[[B]], %[[B]]
// CHECK-NEXT: %[[A2:.*]] = train.prefetch %[[H]]
// CHECK-NEXT: %[[D:.*]] = train.matmul %[[C]], %[[A2]]
// CHECK-NEXT: %[[E:.*]] = train.matmul %[[D]], %[[D]]
// CHECK-NOT: train.await
// CHECK-NEXT: %[[F:.*]] = train.matmul %[[E]]
// CHECK-NEXT: %[[A3:.*]] = train.prefetch %[[H]]
// CHECK-NEXT: %[[D2:.*]] = train.matmul %[[C]], %[[A3]] {{.*}}train.recompute
// CHECK-NEXT: %[[G:.*]] = train.matmul %[[F]], %[[D2]]
// CHECK-NEXT: train.matmul %[[G]], %[[A3]]
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [
    <storage = "fc1_y", action = offload absences [<leave_after = 0, free_before = 2, return_after = 2, needed_by = 3>, <leave_after = 0, free_before = 4, return_after = 5, needed_by = 6>]>,
    <storage = "fc4_y", action = recompute>]
  recomputes [<before 6 : 3>]>} {
  %a = train.matmul %x, %x {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %b = train.matmul %a, %x {train.forward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %c = train.matmul %b, %b {train.forward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc3/Gemm")
  %d = train.matmul %c, %a {train.forward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc4/Gemm")
  %e = train.matmul %d, %d {train.forward = 4 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc5/Gemm")
  %f = train.matmul %e, %x {train.backward = 4 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc5/Gemm")
  %g = train.matmul %f, %d {train.backward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc4/Gemm")
  %h = train.matmul %g, %a {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  return %h : tensor<8x8xf32>
}
