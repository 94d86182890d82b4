// RUN: sluice-opt %s --split-input-file --verify-diagnostics
// What updates at home and their runs must be.
train.variable @w role(parameter) init(zero) : tensor<64x64xf32> {home = "host"}
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32>
func.func @update_c5(%g: !train.host<tensor<64x64xf32>>) {
  %w = train.read @w : !train.host<tensor<64x64xf32>>
  %m = train.read @"w/momentum" : tensor<64x64xf32>
  // expected-error @+1 {{has a parameter of '!train.host<tensor<64x64xf32>>' and takes 'tensor<64x64xf32>'; at home, all are handles}}
  %w2, %m2 = "train.update"(%g, %w, %m) <{rule = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 1, 1>}> : (!train.host<tensor<64x64xf32>>, !train.host<tensor<64x64xf32>>, tensor<64x64xf32>) -> (!train.host<tensor<64x64xf32>>, tensor<64x64xf32>)
  return
}

// -----

train.variable @w role(parameter) init(zero) : tensor<64x64xf32> {home = "host"}
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<64x64xf32> {home = "host"}
func.func @rows(%g: !train.host<tensor<64x64xf32>>) {
  %w = train.read @w : !train.host<tensor<64x64xf32>>
  %m = train.read @"w/momentum" : !train.host<tensor<64x64xf32>>
  // expected-error @+1 {{has no rows at home}}
  %w2, %m2 = train.update(%g, %w, %m) rule(sgd) {first = 0 : i64} : !train.host<tensor<64x64xf32>>
  return
}

// -----

sched.program @device {
  %w = sched.buffer "w" device bytes(256)
  // expected-error @+1 {{'update' works on 'w', which is in device memory}}
  sched.run home "update" ins(%w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [0] -> [1] calls [#sched.call<"", [], "f", <out 0>>] role(update)
}

// -----

sched.program @host {
  %w = sched.buffer "w" host bytes(256)
  // expected-error @+1 {{'relu' works on 'w', which is in host memory}}
  sched.run compute "relu" ins(%w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [0] -> [1] calls [#sched.call<"", [], "f", <out 0>>]
}

// -----

sched.program @role {
  %w = sched.buffer "w" host bytes(256)
  // expected-error @+1 {{'relu' does not run on home}}
  sched.run home "relu" ins(%w : tensor<64xf32>) outs(%w : tensor<64xf32>) versions [0] -> [1] calls [#sched.call<"", [], "f", <out 0>>]
}

// -----

func.func @await(%x: tensor<64xf32>) {
  %y = train.relu %x : (tensor<64xf32>) -> tensor<64xf32>
  // expected-error @+1 {{waits for a value that neither train.offload nor train.encode nor an update at home gives}}
  train.await %y : (tensor<64xf32>) -> ()
  return
}
