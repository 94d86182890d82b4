// RUN: sluice-opt %s --sluice-estimate-cost="device=%S/inputs/round.json threads=2 level=2" | FileCheck %s
// RUN: sluice-opt %s --sluice-estimate-cost="device=%S/inputs/round.json threads=2 level=2 alternatives=true" | FileCheck %s --check-prefix=ALL
// RUN: sluice-opt %s --sluice-estimate-cost="device=%S/inputs/round.json threads=2 level=2 workspace-limit=999999" | FileCheck %s --check-prefix=LIMIT
// RUN: sluice-opt %s --sluice-estimate-cost="device=%S/inputs/round.json target=cuda alternatives=true" | FileCheck %s --check-prefix=CUDA
// Which way of computing an op is written at it. The largest activation has 2097152 bytes and the weights 2359296: what packs all
// weights at once is too much for it unless all else is twice as slow. The one in use is the first of the alternatives.

// CHECK: train.conv {{.*}}train.algorithm = #train.algorithm<name = "jit:sse41">, train.cost = #train.cost<seconds = {{[^,]*}}, workspace = 2359296>
// ALL: train.conv {{.*}}train.algorithm = #train.algorithm<name = "jit:sse41">, train.cost = #train.cost<seconds = {{[^>]*}} alternatives[<seconds = {{[^,]*}}, workspace = 2359296, algorithm = <name = "jit:sse41">>
// Blocked kernels of part of the channels at once need less than the weights.
// ALL-SAME: <seconds = {{[^,]*}}, workspace = 688128, algorithm = <name = "blocked", parts = 4>>
// LIMIT: train.conv {{.*}}train.algorithm = #train.algorithm<name = "blocked", parts = 4>, train.cost = #train.cost<seconds = {{[^,]*}}, workspace = 688128>
// On cuda an algorithm is how much the engine is granted; the most that is offered would be more than the largest activation.
// CUDA: train.conv {{.*}}train.algorithm = #train.algorithm<name = "", granted = 4194304>{{.*}}alternatives[<seconds = {{[^>]*}}algorithm = <name = "", granted = 4194304>>, {{.*}}algorithm = <name = "">
func.func @step(%x: tensor<32x256x8x8xf32>, %k: tensor<256x256x3x3xf32>) -> tensor<32x256x8x8xf32> {
  %c = train.conv %x, %k {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64, train.forward = 0 : i64} : (tensor<32x256x8x8xf32>, tensor<256x256x3x3xf32>) -> tensor<32x256x8x8xf32> loc("/conv/Conv")
  return %c : tensor<32x256x8x8xf32>
}
