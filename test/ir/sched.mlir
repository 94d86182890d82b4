// RUN: sluice-opt %s | sluice-opt | FileCheck %s
// Every op of the dialect with all that it can carry survives printing and parsing.

// CHECK-LABEL: sched.program @step device(4096) host(512) base(768) {
// CHECK-NEXT: %w = sched.buffer "w" device bytes(256) variable(@w) at(0)
// CHECK-NEXT: %x = sched.buffer "x" device bytes(256) input("x") batch(0) at(256) : tensor<8x8xf32>
// CHECK-NEXT: %loss = sched.buffer "loss" device bytes(4) result(0) at(512)
// CHECK-NEXT: %y = sched.buffer "y" device bytes(256) at(1024) live(1, 3)
// CHECK-NEXT: %y_host = sched.buffer "y_host" host bytes(256) at(0) live(2, 3)
// CHECK-NEXT: %ids = sched.buffer "ids" device bytes(16) input("ids") batch(0) at(576) : tensor<2xi64>
// CHECK-NEXT: %rows = sched.buffer "rows" device bytes(64) at(1792) live(2, 2)
// CHECK-NEXT: %z = sched.buffer "z" device bytes(512) at(2048) live(3, 3)
// CHECK-NEXT: %work = sched.buffer "work" device bytes(512) at(1280) live(1, 1)
// CHECK-NEXT: sched.run compute "matmul" ins(%x : tensor<8x8xf32>, %w : tensor<8x8xf32>) outs(%y : tensor<8x8xf32>) scratch(%work) versions [0, 0] -> [1] calls [#sched.call<"Matmul", [array<i64: 8, 8>, array<i64: 8, 8>, array<i64: 8, 8>, {transposeB = true}], "run", <in 0>, <in 1>, <none>, <out 0>, <scratch>>] attributes {backward, suffix = "_dx"}
// CHECK-NEXT: sched.run compute "embedding" ins(%y : tensor<8x8xf32>, %ids : tensor<2xi64>) outs(%rows : tensor<2x8xf32>) versions [1, 0] -> [1] calls [#sched.call<"Embedding", [array<i64: 8, 8>, array<i64: 2>], "forward", <in 0>, <in 1>, <out 0>>] role(rerun) ids <in 1 below 8 or -100> attributes {gathers}
// CHECK-NEXT: sched.run compute "softmax" ins(%w at 0 : tensor<4x8xf32>) outs(%z at 256 : tensor<4x8xf32>) versions [0] -> [1]
// CHECK-NEXT: %ready = sched.record compute "ready"
// CHECK-NEXT: sched.wait d2h %ready
// CHECK-NEXT: sched.copy d2h %y -> %y_host versions 1 -> 1
// CHECK-NEXT: sched.run compute "fused" ins(%y : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [] channels [] sums 1 {
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32):
// CHECK-NEXT: train.yield %[[S]] : f32
sched.program @step device(4096) host(512) base(768) {
  %w = sched.buffer "w" device bytes(256) variable(@w) at(0)
  %x = sched.buffer "x" device bytes(256) input("x") batch(0) at(256) : tensor<8x8xf32>
  %loss = sched.buffer "loss" device bytes(4) result(0) at(512)
  %y = sched.buffer "y" device bytes(256) at(1024) live(1, 3)
  %y_host = sched.buffer "y_host" host bytes(256) at(0) live(2, 3)
  %ids = sched.buffer "ids" device bytes(16) input("ids") batch(0) at(576) : tensor<2xi64>
  %rows = sched.buffer "rows" device bytes(64) at(1792) live(2, 2)
  %z = sched.buffer "z" device bytes(512) at(2048) live(3, 3)
  %work = sched.buffer "work" device bytes(512) at(1280) live(1, 1)
  sched.run compute "matmul" ins(%x : tensor<8x8xf32>, %w : tensor<8x8xf32>) outs(%y : tensor<8x8xf32>) scratch(%work) versions [0, 0] -> [1] calls [#sched.call<"Matmul", [array<i64: 8, 8>, array<i64: 8, 8>, array<i64: 8, 8>, {transposeB = true}], "run", <in 0>, <in 1>, <none>, <out 0>, <scratch>>] attributes {backward, suffix = "_dx"}
  sched.run compute "embedding" ins(%y : tensor<8x8xf32>, %ids : tensor<2xi64>) outs(%rows : tensor<2x8xf32>) versions [1, 0] -> [1] calls [#sched.call<"Embedding", [array<i64: 8, 8>, array<i64: 2>], "forward", <in 0>, <in 1>, <out 0>>] role(rerun) ids <in 1 below 8 or -100> attributes {gathers}
  sched.run compute "softmax" ins(%w at 0 : tensor<4x8xf32>) outs(%z at 256 : tensor<4x8xf32>) versions [0] -> [1] calls [#sched.call<"Softmax", [array<i64: 4, 8>, 1 : i64, false], "forward", <in 0>, <out 0>>]
  %ready = sched.record compute "ready"
  sched.wait d2h %ready
  sched.copy d2h %y -> %y_host versions 1 -> 1
  sched.run compute "fused" ins(%y : tensor<64xf32>) outs(%loss : tensor<f32>) versions [1] -> [1] calls [] channels [] sums 1 {
  ^bb0(%s: f32):
    train.yield %s : f32
  }
}
