// RUN: sluice-opt --sluice-apply-plan --split-input-file %s | FileCheck %s
// RUN: sluice-opt --sluice-apply-plan --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule --split-input-file %s | FileCheck %s --check-prefix=SCHED
// Actions that pack. First a mask: the gradient of a ReLU is the only later reader of %r and takes the bits. The smallest graph in which the
// loss does not read the ReLU itself.

train.variable @w role(parameter) init(kaiming) : tensor<8x8xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<8x8xf32>

// CHECK-LABEL: func.func @step
// CHECK: %[[A:.*]] = train.matmul
// CHECK-NEXT: %[[R:.*]] = train.fused(%[[A]]
// CHECK: train.fused(%[[R]]
// CHECK: %[[BITS:.*]] = train.encode %[[R]] {codec = "mask"} : (tensor<8x8xf32>) -> tensor<8x8xi1>
// CHECK: train.fused(%{{.*}}, %[[BITS]] : tensor<8x8xf32>, tensor<8x8xi1>)
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %[[BIT:.*]]: f32):
// CHECK: arith.cmpf ole, %[[BIT]]

// The mask is made on compute: no wait, and the raw bytes end with it.
// SCHED-LABEL: sched.program @step
// SCHED-DAG: sched.buffer "relu_y" device bytes(256) at({{[0-9]+}}) live(2, 4)
// SCHED-DAG: sched.buffer "relu_y_mask" device bytes(8) at({{[0-9]+}}) live(4, 8)
// SCHED: sched.run compute "encode" ins(%relu_y : tensor<8x8xf32>) outs(%relu_y_mask : tensor<8x8xi1>)
// SCHED-NEXT: sched.run compute "mse"
func.func @step(%x: tensor<8x8xf32> {train.name = "x"}, %target: tensor<8x8xf32> {train.name = "target"}) -> tensor<f32> attributes {
    train.plan = #train.plan<strategy = "hand" decisions [<storage = "relu_y", action = encode, codec = "mask" absences [<leave_after = 2, free_before = 3>]>]>} {
  %zero = train.read @w : tensor<8x8xf32>
  %a = train.matmul %x, %zero {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc/Gemm")
  %r = train.fused (%a : tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.forward = 1 : i64} {
  ^bb0(%s: f32):
    %c = arith.constant 0.0 : f32
    %p = arith.cmpf ole, %s, %c : f32
    %v = arith.select %p, %c, %s : f32
    train.yield %v : f32
  } loc("/relu/Relu")
  %y = train.fused (%r : tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.forward = 2 : i64} {
  ^bb0(%s: f32):
    %v = arith.addf %s, %s : f32
    train.yield %v : f32
  } loc("/double/Add")
  %loss = train.mse %y, %target {train.forward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  %dy = train.loss_backward mse %y, %target {train.backward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("loss")
  %dr = train.fused (%dy : tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.backward = 2 : i64} {
  ^bb0(%s: f32):
    %v = arith.addf %s, %s : f32
    train.yield %v : f32
  } loc("/double/Add")
  %da = train.fused (%dr, %r : tensor<8x8xf32>, tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.backward = 1 : i64} {
  ^bb0(%s: f32, %t: f32):
    %c = arith.constant 0.0 : f32
    %p = arith.cmpf ole, %t, %c : f32
    %v = arith.select %p, %c, %s : f32
    train.yield %v : f32
  } loc("/relu/Relu")
  %dw = train.matmul %x, %da {transpose_a = true, train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc/Gemm")
  %old1 = train.read @w : tensor<8x8xf32>
  %old1_0 = train.read @"w/momentum" : tensor<8x8xf32>
  %new1:2 = train.update(%dw, %old1, %old1_0) rule(sgd) {train.backward = 0 : i64} : tensor<8x8xf32> loc("/fc/Gemm")
  return %loss : tensor<f32>
}

// -----

// Then %a packed on the device by zfp (8 bits a value: 64 bytes), and %b packed on its way to the host, by zfp at six bits, with a mask.

train.variable @w role(parameter) init(kaiming) : tensor<8x8xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<8x8xf32>

// CHECK-LABEL: func.func @step
// CHECK: %[[A:.*]] = train.matmul
// CHECK-NEXT: %[[B:.*]] = train.matmul %[[A]]
// CHECK-NEXT: %[[PACKED:.*]] = train.encode %[[A]] {codec = "zfp"} : (tensor<8x8xf32>) -> tensor<64xi8>
// CHECK-NEXT: train.await %[[PACKED]] : (tensor<64xi8>) -> ()
// CHECK-NEXT: train.matmul %[[B]]
// CHECK-NEXT: %[[H:.*]] = train.offload %[[B]] {codec = "mask+zfp:6"}
// CHECK-NEXT: train.await %[[H]]
// CHECK: train.loss_backward
// CHECK-DAG: %[[A2:.*]] = train.decode %[[PACKED]] {codec = "zfp"} : (tensor<64xi8>) -> tensor<8x8xf32>
// CHECK-DAG: %[[B2:.*]] = train.prefetch %[[H]]
// CHECK: train.matmul %[[B2]]
// CHECK: train.matmul %[[A2]]

// SCHED-LABEL: sched.program @step
// SCHED-DAG: sched.buffer "fc1_y_packed" device bytes(64)
// SCHED-DAG: sched.buffer "fc2_y_host" host bytes(112)
// SCHED: %[[READY:.*]] = sched.record compute "fc1_y_ready"
// SCHED-NEXT: sched.wait codec %[[READY]]
// SCHED-NEXT: sched.run codec "encode" ins(%fc1_y : tensor<8x8xf32>) outs(%fc1_y_packed : tensor<64xi8>)
// SCHED-NEXT: %[[PACKED:.*]] = sched.record codec "fc1_y_packed_ready"
// SCHED-NEXT: sched.wait compute %[[PACKED]]
// SCHED: sched.copy d2h %fc2_y -> %fc2_y_host codec("mask+zfp:6" : tensor<8x8xf32>)
// What is needed first is issued first.
// SCHED: sched.copy h2d %fc2_y_host -> %fc2_y_back codec("mask+zfp:6" : tensor<8x8xf32>)
// SCHED: sched.run codec "decode" ins(%fc1_y_packed : tensor<64xi8>) outs(%fc1_y_back : tensor<8x8xf32>)
// SCHED-NEXT: %[[BACK:.*]] = sched.record codec "fc1_y_back_ready"
// SCHED: sched.wait compute %[[BACK]]
// SCHED-NEXT: sched.run compute "matmul" ins(%fc1_y_back
func.func @step(%x: tensor<8x8xf32> {train.name = "x"}, %target: tensor<8x8xf32> {train.name = "target"}) -> tensor<f32> attributes {
    train.plan = #train.plan<strategy = "hand" decisions [
      <storage = "fc1_y", action = compress, codec = "zfp" absences [<leave_after = 1, free_before = 2, return_after = 4, needed_by = 7>]>,
      <storage = "fc2_y", action = offload, codec = "mask+zfp:6" absences [<leave_after = 2, free_before = 3, return_after = 4, needed_by = 5>]>]>} {
  %w = train.read @w : tensor<8x8xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %b = train.matmul %a, %w {train.forward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %c = train.matmul %b, %w {train.forward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc3/Gemm")
  %loss = train.mse %c, %target {train.forward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  %dc = train.loss_backward mse %c, %target {train.backward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("loss")
  %dw3 = train.matmul %b, %dc {transpose_a = true, train.backward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc3/Gemm")
  %db = train.matmul %dc, %w {transpose_b = true, train.backward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc3/Gemm")
  %dw2 = train.matmul %a, %db {transpose_a = true, train.backward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %sum = train.fused (%dw3, %dw2 : tensor<8x8xf32>, tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.backward = 1 : i64} {
  ^bb0(%s: f32, %t: f32):
    %v = arith.addf %s, %t : f32
    train.yield %v : f32
  } loc("/fc2/Gemm")
  %old2 = train.read @w : tensor<8x8xf32>
  %old2_0 = train.read @"w/momentum" : tensor<8x8xf32>
  %new2:2 = train.update(%sum, %old2, %old2_0) rule(sgd) {train.backward = 0 : i64} : tensor<8x8xf32> loc("/fc1/Gemm")
  return %loss : tensor<f32>
}

// -----

// A ReLU between two products: %r comes back from zfp for the second product's weights and for nobody else, because the ReLU's gradient reads the
// mask in front of the packed form, whose bytes stay for it.

train.variable @w role(parameter) init(kaiming) : tensor<8x8xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<8x8xf32>

// CHECK-LABEL: func.func @step
// CHECK: %[[R:.*]] = train.fused
// CHECK: %[[PACKED:.*]] = train.encode %[[R]] {codec = "mask+zfp:4"} : (tensor<8x8xf32>) -> tensor<96xi8>
// CHECK: train.await %[[PACKED]]
// CHECK: train.loss_backward
// CHECK-NEXT: %[[BACK:.*]] = train.decode %[[PACKED]] {codec = "mask+zfp:4"}
// CHECK-NEXT: train.matmul %[[BACK]]
// CHECK-NEXT: %[[MASK:.*]] = train.packed_mask %[[PACKED]] : (tensor<96xi8>) -> tensor<8x8xi1>
// CHECK-NEXT: train.matmul
// CHECK-NEXT: train.fused(%{{.*}}, %[[MASK]] : tensor<8x8xf32>, tensor<8x8xi1>)

// The bytes that came back end with the product that reads them, the packed form with the gradient of the ReLU.
// SCHED-LABEL: sched.program @step
// SCHED-DAG: sched.buffer "relu_y_packed" device bytes(96) at({{[0-9]+}}) live(4, 10)
// SCHED-DAG: sched.buffer "relu_y_back" device bytes(256) at({{[0-9]+}}) live(7, 8)
// SCHED: sched.run compute "fused" ins(%fc2_grad_2 : tensor<8x8xf32>, %relu_y_packed at 0 : tensor<8x8xi1>)
func.func @step(%x: tensor<8x8xf32> {train.name = "x"}, %target: tensor<8x8xf32> {train.name = "target"}) -> tensor<f32> attributes {
    train.plan = #train.plan<strategy = "hand" decisions [
      <storage = "relu_y", action = compress, codec = "mask+zfp:4" absences [<leave_after = 2, free_before = 3, return_after = 4, needed_by = 5>]>]>} {
  %w = train.read @w : tensor<8x8xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %r = train.fused (%a : tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.forward = 1 : i64} {
  ^bb0(%s: f32):
    %c = arith.constant 0.0 : f32
    %p = arith.cmpf ole, %s, %c : f32
    %v = arith.select %p, %c, %s : f32
    train.yield %v : f32
  } loc("/relu/Relu")
  %b = train.matmul %r, %w {train.forward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %loss = train.mse %b, %target {train.forward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  %db = train.loss_backward mse %b, %target {train.backward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("loss")
  %dw2 = train.matmul %r, %db {transpose_a = true, train.backward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %dr = train.matmul %db, %w {transpose_b = true, train.backward = 2 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %da = train.fused (%dr, %r : tensor<8x8xf32>, tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.backward = 1 : i64} {
  ^bb0(%s: f32, %t: f32):
    %c = arith.constant 0.0 : f32
    %p = arith.cmpf ole, %t, %c : f32
    %v = arith.select %p, %c, %s : f32
    train.yield %v : f32
  } loc("/relu/Relu")
  %dw1 = train.matmul %x, %da {transpose_a = true, train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %sum = train.fused (%dw1, %dw2 : tensor<8x8xf32>, tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.backward = 0 : i64} {
  ^bb0(%s: f32, %t: f32):
    %v = arith.addf %s, %t : f32
    train.yield %v : f32
  } loc("/fc1/Gemm")
  %old3 = train.read @w : tensor<8x8xf32>
  %old3_0 = train.read @"w/momentum" : tensor<8x8xf32>
  %new3:2 = train.update(%sum, %old3, %old3_0) rule(sgd) {train.backward = 0 : i64} : tensor<8x8xf32> loc("/fc1/Gemm")
  return %loss : tensor<f32>
}
