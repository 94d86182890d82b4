// RUN: sluice-opt --sluice-estimate-cost=device=%S/inputs/round.json --split-input-file --verify-diagnostics %s
// RUN: not sluice-opt --sluice-plan-memory=strategy=keep --split-input-file %s 2>&1 | FileCheck %s
// RUN: not sluice-opt --sluice-schedule-streams --split-input-file %s 2>&1 | FileCheck %s
// An op that only exists before fuse has no cost, no place in a plan and none in a program.

// CHECK: error: 'train.relu' op has no kernel; run sluice-fuse first
func.func @step(%x: tensor<2x3xf32>, %target: tensor<2x3xf32>) -> tensor<f32> {
  // expected-error @below {{has no kernel; run sluice-fuse first}}
  %y = train.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = train.mse %y, %target : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
