// RUN: not sluice-opt %s --sluice-estimate-cost=device=tpu 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: echo '{"version": 2}' > %t.json && not sluice-opt %s --sluice-estimate-cost=profile=%t.json 2>&1 | FileCheck %s --check-prefix=VERSION
// RUN: not sluice-opt %s --sluice-estimate-cost="workspace-limit=16 threads=2 level=2" 2>&1 | FileCheck %s --check-prefix=WORKSPACE
// RUN: not sluice-opt %s --sluice-estimate-cost=target=tpu 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not sluice-opt %s --sluice-estimate-cost=threads=100000 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not sluice-opt %s --sluice-estimate-cost=level=-3 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not sluice-opt %s --sluice-estimate-cost=workspace-limit=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// A device or a target that nobody knows, a profile of another version and a kernel that needs more than it may.

// DEVICE: error: no profile 'tpu': neither a readable file {{.*}}nor one of a100,
// VERSION: error: {{.*}}.json: malformed profile: version is 2, 1 is supported
// MACHINE: error: threads={{[0-9]+}} level={{-?[0-9]+}} are for no machine: threads go to 1024, levels of processors from 2 to 7
// NEGATIVE: error: workspace-limit=-1 is below 0
// TARGET: for the --target option: Cannot find option named 'tpu'
// WORKSPACE: error: {{.*}}node '/lrn/LRN' (lrn_backward) needs a workspace of 131072 bytes at least, the limit is 16; raise --workspace-limit
func.func @step(%d: tensor<2x64x8x8xf32>, %x: tensor<2x64x8x8xf32>) -> tensor<2x64x8x8xf32> {
  %y = train.lrn_backward %d, %x {alpha = 1.0e-4 : f32, beta = 7.5e-1 : f32, bias = 1.0 : f32, size = 5 : i64} : (tensor<2x64x8x8xf32>, tensor<2x64x8x8xf32>) -> tensor<2x64x8x8xf32> loc("/lrn/LRN")
  return %y : tensor<2x64x8x8xf32>
}
