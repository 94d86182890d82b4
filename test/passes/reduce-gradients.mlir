// RUN: sluice-opt %s --sluice-build-backward --sluice-reduce-gradients --split-input-file | FileCheck %s
// RUN: sluice-opt %s --sluice-build-backward --sluice-reduce-gradients --sluice-fuse --sluice-assign-layouts --sluice-linearize --split-input-file | FileCheck %s --check-prefix=PLACE
// Where a module is for several ranks everything that reads a gradient reads the sum of all ranks; without the attribute nothing changes.

// CHECK-LABEL: module attributes {train.ranks = "ordered"}
module attributes {train.ranks = "ordered"} {
  train.variable @w role(parameter) init(zero) : tensor<4x8xf32>
  // CHECK: func.func @step
  func.func @step(%x: tensor<2x8xf32>, %target: tensor<2xi64>) -> tensor<f32> {
    %w = train.read @w : tensor<4x8xf32>
    %l = train.matmul %x, %w {transpose_b = true} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    %loss = train.softmax_cross_entropy %l, %target : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<f32>
    // CHECK: [[DW:%.*]] = train.matmul {{.*}}transpose_a = true
    // CHECK-NEXT: [[ALL:%.*]] = train.all_reduce [[DW]] {mean, ordered, train.backward = 0 : i64, weighted} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: train.update([[ALL]], {{.*}}rule(sgd)
    // In the bytes of the rank's own gradient, which nobody reads any more; what others send is received in a room, here of 32 elements and 1024.
    // PLACE: train.variable @"train/room" role(gradient) init(zero) : tensor<1056xf32>
    // PLACE: [[ROOM:%.*]] = train.read @"train/room"
    // PLACE: train.all_reduce {{.*}} in [[ROOM]] {{.*}}train.in_place = array<i64: 0, 1>
    return %loss : tensor<f32>
  }
}

// -----

// With several batches a step the mean's place is the first digit of the counter; norms come after the sum.
// CHECK-LABEL: module attributes {train.accumulate, train.clip_norm, train.ranks = "fast", train.sums = 2 : i64}
module attributes {train.accumulate, train.clip_norm, train.ranks = "fast", train.sums = 2 : i64} {
  train.variable @w role(parameter) init(zero) : tensor<4x8xf32>
  // CHECK-DAG: train.variable @"w/gradient_sum" role(gradient)
  // CHECK-DAG: train.variable @"w/gradient_sum_1" role(gradient)
  // CHECK: func.func @step
  func.func @step(%x: tensor<2x8xf32>, %target: tensor<2xi64>) -> tensor<f32> {
    %w = train.read @w : tensor<4x8xf32>
    %l = train.matmul %x, %w {transpose_b = true} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    %loss = train.softmax_cross_entropy %l, %target : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<f32>
    // CHECK: [[DW:%.*]] = train.matmul {{.*}}transpose_a = true
    // CHECK-NOT: train.accumulate
    // CHECK: [[A:%.*]] = train.read @"w/gradient_sum" {
    // CHECK-NEXT: [[B:%.*]] = train.read @"w/gradient_sum_1" {
    // CHECK-NEXT: [[SUM:%.*]]:2 = train.sum_batches [[DW]], [[A]], [[B]] {train.backward = 0 : i64, weighted}
    // CHECK-NEXT: [[ALL:%.*]] = train.all_reduce [[SUM]]#1 {mean, train.backward = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: [[NORM:%.*]] = train.gradient_norm [[ALL]]
    // CHECK: train.update([[ALL]], {{.*}}norm([[NORM]])
    // The sum of the rank's batches stays what it is.
    // PLACE: train.all_reduce %{{.*}}#1 {mean, train.backward = 0 : i64, train.stage = 0 : i64}
    return %loss : tensor<f32>
  }
}

// -----

// Running statistics take what all units add, once nothing reads a batch's own any more.
// CHECK-LABEL: module attributes {train.accumulate, train.ranks = "ordered"}
module attributes {train.accumulate, train.ranks = "ordered"} {
  train.variable @scale role(parameter) init(one) : tensor<3xf32>
  train.variable @bias role(parameter) init(zero) : tensor<3xf32>
  train.variable @m role(state) init(zero) : tensor<3xf32>
  train.variable @v role(state) init(one) : tensor<3xf32>
  // CHECK: train.variable @"m/batch_sum" role(gradient) init(zero) : tensor<2x3xf32>
  // CHECK: func.func @step
  func.func @step(%x: tensor<2x3x4x4xf32>, %t: tensor<2x3x4x4xf32>) -> tensor<f32> {
    %scale = train.read @scale : tensor<3xf32>
    %bias = train.read @bias : tensor<3xf32>
    // CHECK: %{{.*}}, [[MEAN:%.*]], [[RSTD:%.*]] = train.batch_norm %
    %y, %mean, %rstd = train.batch_norm %x, %scale, %bias {epsilon = 1.0e-5 : f32} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
    %m = train.read @m : tensor<3xf32>
    %v = train.read @v : tensor<3xf32>
    // CHECK-NOT: train.update_statistics
    %m2, %v2 = train.update_statistics %mean, %rstd, %m, %v {momentum = 1.0e-1 : f32, epsilon = 1.0e-5 : f32, count = 32 : i64} : tensor<3xf32>
    %loss = train.mse %y, %t : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<f32>
    // CHECK: train.batch_norm_backward
    // CHECK-NEXT: [[SHARES:%.*]] = train.batch_statistics [[MEAN]], [[RSTD]] {count = 32 : i64, epsilon = {{.*}}, momentum = {{.*}}, train.backward = {{.*}}} : tensor<3xf32> -> tensor<2x3xf32>
    // CHECK-NEXT: [[OWN:%.*]] = train.read @"m/batch_sum"
    // CHECK-NEXT: [[SUM:%.*]] = train.sum_batches [[SHARES]], [[OWN]] {train.backward
    // CHECK-NEXT: [[ALL:%.*]] = train.all_reduce [[SUM]] {ordered, train.backward
    // CHECK: train.update(
    // CHECK: train.update(
    // CHECK: train.apply_statistics [[ALL]], {{.*}}
    // CHECK-NEXT: return
    return %loss : tensor<f32>
  }
}

// -----

// CHECK-LABEL: module attributes {train.optimizer = "sgd"}
module attributes {train.optimizer = "sgd"} {
  train.variable @w role(parameter) init(zero) : tensor<4x8xf32>
  func.func @step(%x: tensor<2x8xf32>, %target: tensor<2xi64>) -> tensor<f32> {
    %w = train.read @w : tensor<4x8xf32>
    %l = train.matmul %x, %w {transpose_b = true} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    %loss = train.softmax_cross_entropy %l, %target : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<f32>
    // CHECK-NOT: train.all_reduce
    return %loss : tensor<f32>
  }
}

// -----

// Gradients that follow one another go in one message of a megabyte; what reads them comes behind the next message.
// CHECK-LABEL: module attributes {train.ranks = "ordered", train.shares = 4 : i64}
module attributes {train.ranks = "ordered", train.shares = 4 : i64} {
  train.variable @a role(parameter) init(zero) : tensor<512x8xf32>
  train.variable @b role(parameter) init(zero) : tensor<512x512xf32>
  train.variable @c role(parameter) init(zero) : tensor<64x512xf32>
  train.variable @d role(parameter) init(zero) : tensor<4x64xf32>
  // Each rank has its share of the momentum, the longest of four.
  // CHECK-DAG: train.variable @"a/momentum" role(optimizer) init(zero) : tensor<1024xf32> {train.share_of = @a}
  // CHECK-DAG: train.variable @"d/momentum" role(optimizer) init(zero) : tensor<64xf32> {train.share_of = @d}
  // CHECK: func.func @step
  func.func @step(%x: tensor<2x8xf32>, %target: tensor<2xi64>) -> tensor<f32> {
    %a = train.read @a : tensor<512x8xf32>
    %b = train.read @b : tensor<512x512xf32>
    %c = train.read @c : tensor<64x512xf32>
    %d = train.read @d : tensor<4x64xf32>
    %h = train.matmul %x, %a {transpose_b = true} : (tensor<2x8xf32>, tensor<512x8xf32>) -> tensor<2x512xf32>
    %i = train.matmul %h, %b {transpose_b = true} : (tensor<2x512xf32>, tensor<512x512xf32>) -> tensor<2x512xf32>
    %j = train.matmul %i, %c {transpose_b = true} : (tensor<2x512xf32>, tensor<64x512xf32>) -> tensor<2x64xf32>
    %l = train.matmul %j, %d {transpose_b = true} : (tensor<2x64xf32>, tensor<4x64xf32>) -> tensor<2x4xf32>
    %loss = train.softmax_cross_entropy %l, %target : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<f32>
    // CHECK: [[CD:%.*]]:2 = train.all_reduce {{.*}} : (tensor<4x64xf32>, tensor<64x512xf32>)
    // CHECK-NOT: train.update
    // CHECK: [[B:%.*]] = train.all_reduce {{.*}} : (tensor<512x512xf32>)
    // CHECK: [[D2:%.*]]:2 = train.update([[CD]]#0, {{.*}} {sharded, {{.*}} : tensor<4x64xf32> keeping tensor<64xf32>
    // CHECK: [[C2:%.*]]:2 = train.update([[CD]]#1,
    // CHECK: [[A:%.*]] = train.all_reduce {{.*}} : (tensor<512x8xf32>)
    // CHECK: [[B2:%.*]]:2 = train.update([[B]],
    // CHECK: [[A2:%.*]]:2 = train.update([[A]],
    // In the end all that was updated is gathered, in messages likewise.
    // CHECK-NEXT: train.all_gather [[D2]]#0, [[C2]]#0
    // CHECK-NEXT: train.all_gather [[B2]]#0
    // CHECK-NEXT: train.all_gather [[A2]]#0
    // CHECK-NEXT: return
    return %loss : tensor<f32>
  }
}

// -----

// With shares of gradients each rank gets the longest of three shares of each sum; norms are taken of shares by all ranks together, and only then does anything read them. Rooms: of the
// sum, twice 40 elements and 1024 more, as what is sent is weighted there; of a norm a part of 64.
// CHECK-LABEL: module attributes {train.clip_norm, train.gradient_shares, train.ranks = "fast", train.shares = 3 : i64}
// PLACE-LABEL: module attributes {train.clip_norm, train.gradient_shares, train.ranks = "fast", train.shares = 3 : i64}
module attributes {train.clip_norm, train.gradient_shares, train.ranks = "fast", train.shares = 3 : i64} {
  train.variable @w role(parameter) init(zero) : tensor<4x8xf32>
  train.variable @b role(parameter) init(zero) : tensor<1x8xf32>
  // CHECK: func.func @step
  // PLACE: train.variable @"train/room" role(gradient) init(zero) : tensor<2128xf32>
  func.func @step(%x: tensor<2x8xf32>, %target: tensor<2xi64>) -> tensor<f32> {
    %b = train.read @b : tensor<1x8xf32>
    %w = train.read @w : tensor<4x8xf32>
    %h = train.add %x, %b : (tensor<2x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
    %l = train.matmul %h, %w {transpose_b = true} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    %loss = train.softmax_cross_entropy %l, %target : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<f32>
    // CHECK: [[SHARES:%.*]]:2 = train.reduce_scatter %{{.*}}, %{{.*}} {train.backward = {{.*}}, weighted} : (tensor<4x8xf32>, tensor<1x8xf32>) -> (tensor<11xf32>, tensor<3xf32>)
    // CHECK: [[NORM:%.*]] = train.shares_norm [[SHARES]]#0 {elements = 32 : i64, train.backward = {{.*}}} : (tensor<11xf32>) -> tensor<f32>
    // CHECK: [[ALL:%.*]] = train.shares_norm [[SHARES]]#1 behind [[NORM]] {elements = 8 : i64, train.backward = {{.*}}} : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    // CHECK-DAG: train.update([[SHARES]]#0, {{.*}}norm([[ALL]]) rule(sgd) {sharded, {{.*}} : tensor<11xf32> of tensor<4x8xf32> keeping tensor<11xf32>
    // CHECK-DAG: train.update([[SHARES]]#1, {{.*}}norm([[ALL]]) rule(sgd) {sharded, {{.*}} : tensor<3xf32> of tensor<1x8xf32> keeping tensor<3xf32>
    // CHECK: train.all_gather
    // CHECK: return {{.*}}, [[ALL]]
    // PLACE: [[ROOM:%.*]] = train.read @"train/room"
    // PLACE: [[SUMS:%.*]]:3 = train.reduce_scatter {{.*}} in [[ROOM]] {{.*}}train.in_place = array<i64: -1, -1, 2>
    // PLACE: [[NORMS:%.*]]:2 = train.shares_norm [[SUMS]]#0 in [[SUMS]]#2 {{.*}}train.in_place = array<i64: -1, 1>
    // PLACE: train.shares_norm [[SUMS]]#1 behind [[NORMS]]#0 in [[NORMS]]#1 {{.*}}train.in_place = array<i64: -1, 2>
    return %loss : tensor<f32>
  }
}

// -----

// Synchronized: a batch's loss is weighed, its gradients are not; running statistics are those of four ranks, of one in four units. Fuse then puts the meetings between what each rank
// has of its own and what reads what all four have.
// CHECK-LABEL: module attributes {train.norm_ranks = 4 : i64, train.ranks = "ordered"}
// PLACE-LABEL: module attributes {train.norm_ranks = 4 : i64, train.ranks = "ordered"}
module attributes {train.norm_ranks = 4 : i64, train.ranks = "ordered"} {
  train.variable @w role(parameter) init(one) : tensor<3x4x1x1xf32>
  train.variable @scale role(parameter) init(one) : tensor<3xf32>
  train.variable @bias role(parameter) init(zero) : tensor<3xf32>
  train.variable @m role(state) init(zero) : tensor<3xf32>
  train.variable @v role(state) init(one) : tensor<3xf32>
  // CHECK: func.func @step
  // PLACE: func.func @step
  func.func @step(%image: tensor<2x4x4x4xf32>, %t: tensor<2x3x4x4xf32>) -> tensor<f32> {
    %w = train.read @w : tensor<3x4x1x1xf32>
    %x = train.conv %image, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64} : (tensor<2x4x4x4xf32>, tensor<3x4x1x1xf32>) -> tensor<2x3x4x4xf32>
    %scale = train.read @scale : tensor<3xf32>
    %bias = train.read @bias : tensor<3xf32>
    // PLACE: [[OWN:%.*]], [[OWNR:%.*]] = train.batch_norm_statistics
    // PLACE: [[MEAN:%.*]], [[RSTD:%.*]] = train.synchronize_statistics [[OWN]], [[OWNR]] {epsilon = {{.*}}, ranks = 4 : i64, train.forward = {{.*}}} : tensor<3xf32>
    // PLACE: train.fused{{.*}}[[MEAN]], [[RSTD]]
    %y, %mean, %rstd = train.batch_norm %x, %scale, %bias {epsilon = 1.0e-5 : f32, ranks = 4 : i64} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
    %m = train.read @m : tensor<3xf32>
    %v = train.read @v : tensor<3xf32>
    %m2, %v2 = train.update_statistics %mean, %rstd, %m, %v {momentum = 1.0e-1 : f32, epsilon = 1.0e-5 : f32, count = 32 : i64} : tensor<3xf32>
    // CHECK: [[WEIGHT:%.*]] = train.unit_weight
    // CHECK: train.mul {{.*}}, [[WEIGHT]]
    // CHECK: train.batch_norm_backward {{.*}}ranks = 4
    // PLACE: [[SUMS:%.*]]:2 = train.fused
    // PLACE: [[JOINT:%.*]], [[JOINTB:%.*]] = train.synchronize_sums [[SUMS]]#0, [[SUMS]]#1 {ranks = 4 : i64, train.backward
    // CHECK-NEXT: train.batch_statistics {{.*}} {count = 128 : i64, {{.*}}, ranks = 4 : i64
    // PLACE: train.batch_statistics [[MEAN]], [[RSTD]]
    // CHECK: train.all_reduce
    // CHECK-NOT: weighted
    // CHECK: train.apply_statistics {{.*}}ranks = 4
    %loss = train.mse %y, %t : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
