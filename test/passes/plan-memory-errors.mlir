// RUN: not sluice-opt %s --sluice-plan-memory=strategy=best 2>&1 | FileCheck %s --check-prefix=STRATEGY
// RUN: not sluice-opt %s --sluice-plan-memory=strategy=greedy,min-copy 2>&1 | FileCheck %s --check-prefix=KNOB
// RUN: not sluice-opt %s --sluice-plan-memory=strategy=greedy, 2>&1 | FileCheck %s --check-prefix=COMMA
// RUN: not sluice-opt %s --sluice-plan-memory=strategy=greedy,speed=2 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not sluice-opt %s --sluice-plan-memory=budget=-5 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: not sluice-opt %s --sluice-plan-memory=budget=60%%mem 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: not sluice-opt %s --sluice-plan-memory=host-budget=-2 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: not sluice-opt %s --sluice-plan-memory=device=tpu 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: sed s/@step/@other/ %s > %t.mlir && not sluice-opt %t.mlir --sluice-plan-memory 2>&1 | FileCheck %s --check-prefix=STEP
// What a command line can get wrong; infeasible budgets are in plan-memory.mlir.

// STRATEGY: error: no strategy 'best', there are keep, greedy,
// KNOB: error: 'min-copy' in --strategy is no k=v
// COMMA: error: '' in --strategy is no k=v
// UNKNOWN: error: strategy 'greedy' has no knob 'speed', it has min-copy
// BUDGET: error: '{{-5|60%mem}}' is no budget; write bytes, 600MiB, 8GiB, 40% or 40%act
// HOST: error: host-budget=-2 is below -1
// DEVICE: error: no profile 'tpu'
// STEP: error: needs a function @step
func.func @step(%x: tensor<8x8xf32>, %target: tensor<8x8xf32>) -> tensor<f32> {
  %loss = train.mse %x, %target {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
