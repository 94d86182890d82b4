// RUN: not sluice-opt %s --sluice-estimate-cost=device=tpu 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: echo '{"version": 2}' > %t.json && not sluice-opt %s --sluice-estimate-cost=profile=%t.json 2>&1 | FileCheck %s --check-prefix=VERSION
// RUN: not sluice-opt %s --sluice-estimate-cost=workspace-limit=16 2>&1 | FileCheck %s --check-prefix=WORKSPACE
// RUN: sed -e 's/{alpha/{train.cost = {seconds = -1.0 : f64, workspace = 0 : i64}, alpha/' %s > %t.mlir && not sluice-opt %t.mlir 2>&1 | FileCheck %s --check-prefix=A3
// A device that nobody knows, a profile of another version, a kernel that needs more than it may, and what the pass leaves (A3 of the dialect).

// DEVICE: error: no profile 'tpu': neither a readable file {{.*}}nor one of a100,
// VERSION: error: {{.*}}.json: malformed profile: version is 2, 1 is supported
// WORKSPACE: error: {{.*}}node '/lrn/LRN' (lrn_backward) needs a workspace of {{[0-9]+}} bytes at least, the limit is 16; raise --workspace-limit
// A3: error: {{.*}}'train.lrn_backward' op needs 'train.cost' of seconds and workspace bytes >= 0, has {seconds = -1.000000e+00
func.func @step(%d: tensor<2x64x8x8xf32>, %x: tensor<2x64x8x8xf32>) -> tensor<2x64x8x8xf32> {
  %y = train.lrn_backward %d, %x {alpha = 1.0e-4 : f32, beta = 7.5e-1 : f32, bias = 1.0 : f32, size = 5 : i64} : (tensor<2x64x8x8xf32>, tensor<2x64x8x8xf32>) -> tensor<2x64x8x8xf32> loc("/lrn/LRN")
  return %y : tensor<2x64x8x8xf32>
}
