// RUN: sluice-opt %s --sluice-home-variables | FileCheck %s
// RUN: sluice-opt %s --sluice-home-variables --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule | FileCheck %s --check-prefix=SCHED
// RUN: not sluice-opt %s --sluice-home-variables=states=storage 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: error: has shares of parameters on the devices of all ranks and variables at home in 'storage'; leave one of both out
// Of a parameter that nothing gathers at the end of the step each rank has a share: whatever reads it gets it from all ranks, by a gathering of its own, in evaluations, too; its update changes the
// share. A vector is whole, and is gathered in place.

// CHECK: train.variable @w role(parameter) init(kaiming) : tensor<1366xf32> {fan_in = 64 : i64, fan_out = 64 : i64, train.whole = tensor<64x64xf32>}
// CHECK: train.variable @"w/momentum" role(optimizer) init(zero) : tensor<1366xf32> {train.share_of = @w}
// CHECK: train.variable @b role(parameter) init(zero) : tensor<64xf32>{{$}}
module attributes {train.gradient_shares, train.parameter_shares, train.ranks = "ordered", train.shares = 3 : i64} {
  train.variable @w role(parameter) init(kaiming) : tensor<64x64xf32> {fan_in = 64, fan_out = 64}
  train.variable @"w/momentum" role(optimizer) init(zero) : tensor<1366xf32> {train.share_of = @w}
  train.variable @b role(parameter) init(zero) : tensor<64xf32>
  train.variable @"b/momentum" role(optimizer) init(zero) : tensor<22xf32> {train.share_of = @b}
  train.variable @room role(gradient) init(zero) : tensor<10368xf32>

  // CHECK-LABEL: func.func @step
  // CHECK: [[S1:%.*]] = train.read @w : tensor<1366xf32>
  // CHECK-NEXT: [[W1:%.*]] = train.gather_shares [[S1]] : (tensor<1366xf32>) -> tensor<64x64xf32>
  // CHECK-NEXT: train.matmul %{{.*}}, [[W1]]
  // CHECK: [[S2:%.*]] = train.read @w : tensor<1366xf32>
  // CHECK-NEXT: [[W2:%.*]] = train.gather_shares [[S2]]
  // CHECK-NEXT: [[V2:%.*]] = train.reshape [[W2]]
  // CHECK-NEXT: train.matmul %{{.*}}, [[V2]]
  // CHECK: [[G:%.*]]:3 = train.reduce_scatter
  // CHECK: [[S3:%.*]] = train.read @w : tensor<1366xf32>
  // CHECK-NEXT: train.update([[G]]#0, [[S3]], %{{.*}}) rule(sgd) {sharded} : tensor<1366xf32> keeping tensor<1366xf32>
  // CHECK: [[B:%.*]] = train.read @b : tensor<64xf32>
  // CHECK: [[B2:%.*]]:2 = train.update([[G]]#1, [[B]], {{.*}} {sharded} : tensor<22xf32> of tensor<64xf32> keeping tensor<22xf32>
  // CHECK: train.all_gather [[B2]]#0
  // SCHED-LABEL: sched.program @step
  // SCHED-DAG: %w = sched.buffer "w" device bytes(5464) variable(@w)
  // SCHED-DAG: %w_whole = sched.buffer "w_whole" device bytes(16384) at({{[0-9]+}}) live(1, 2)
  // SCHED-DAG: %w_whole_2 = sched.buffer "w_whole_2" device bytes(16384)
  // SCHED: sched.run comm "gather_shares" ins(%w : tensor<1366xf32>) outs(%w_whole : tensor<64x64xf32>) versions [0] -> [1] calls {{.*}}"gatherShares"{{.*}} role(gather)
  // SCHED-NEXT: [[DONE:%.*]] = sched.record comm
  // SCHED: sched.wait compute [[DONE]]
  // SCHED-NEXT: sched.run compute "matmul" ins(%x : tensor<64x64xf32>, %w_whole :
  // SCHED: sched.run comm "gather_shares" ins(%w : tensor<1366xf32>) outs(%w_whole_2 :
  // SCHED: sched.run comm "reduce_scatter"
  // SCHED: sched.run compute "update" ins({{.*}}, %w : tensor<1366xf32>, %w_momentum : tensor<1366xf32>) outs(%w : tensor<1366xf32>, %w_momentum : tensor<1366xf32>)
  func.func @step(%x: tensor<64x64xf32> {train.name = "x"}, %t: tensor<64x64xf32> {train.name = "target"}) -> tensor<f32> {
    %w = train.read @w : tensor<64x64xf32>
    %y = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %loss = train.mse %y, %t {train.forward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32>
    %dy = train.loss_backward mse %y, %t {train.backward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %v = train.reshape %w : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %dx = train.matmul %dy, %v {train.backward = 0 : i64, transpose_b = true} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %dw = train.matmul %x, %dx {train.backward = 0 : i64, transpose_a = true} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %db = train.sum_to %dy {axes = array<i64: 0>, train.backward = 0 : i64} : (tensor<64x64xf32>) -> tensor<64xf32>
    %room = train.read @room : tensor<10368xf32>
    %g:3 = train.reduce_scatter %dw, %db in %room {train.backward = 0 : i64, train.in_place = array<i64: -1, -1, 2>, weighted} : (tensor<64x64xf32>, tensor<64xf32>, tensor<10368xf32>) -> (tensor<1366xf32>, tensor<22xf32>, tensor<10368xf32>)
    %wm = train.read @"w/momentum" : tensor<1366xf32>
    %w2:2 = train.update(%g#0, %w, %wm) rule(sgd) {sharded} : tensor<1366xf32> of tensor<64x64xf32> keeping tensor<1366xf32>
    %b = train.read @b : tensor<64xf32>
    %bm = train.read @"b/momentum" : tensor<22xf32>
    %b2:2 = train.update(%g#1, %b, %bm) rule(sgd) {sharded} : tensor<22xf32> of tensor<64xf32> keeping tensor<22xf32>
    %b3 = train.all_gather %b2#0 : (tensor<64xf32>) -> tensor<64xf32>
    return %loss : tensor<f32>
  }

  // CHECK-LABEL: func.func @evaluate
  // CHECK: [[E:%.*]] = train.read @w : tensor<1366xf32>
  // CHECK-NEXT: [[EW:%.*]] = train.gather_shares [[E]]
  // CHECK-NEXT: train.matmul %{{.*}}, [[EW]]
  // SCHED-LABEL: sched.program @evaluate
  // SCHED: sched.run comm "gather_shares"
  func.func @evaluate(%x: tensor<64x64xf32> {train.name = "x"}, %t: tensor<64x64xf32> {train.name = "target"}) -> tensor<f32> {
    %w = train.read @w : tensor<64x64xf32>
    %y = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %loss = train.mse %y, %t {train.forward = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
