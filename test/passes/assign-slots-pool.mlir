// RUN: sed 's/train.offload %%a :/train.offload %%a {codec = "zvc:pool=100"} :/' %S/schedule-streams.mlir > %t.mlir
// RUN: sluice-opt --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule %t.mlir | FileCheck %s -DPOOL=100 -DHOST=612
// RUN: sed 's/pool=100/pool=1000000/' %t.mlir | sluice-opt --sluice-schedule-streams --sluice-assign-slots --sluice-verify-schedule | FileCheck %s -DPOOL=576 -DHOST=1088
// RUN: not sluice-opt --sluice-schedule-streams --sluice-assign-slots=host-budget=611 %t.mlir 2>&1 | FileCheck %s --check-prefix=BUDGET
// A copy that packs into a pool: its slot of 256 + 64 bytes lies in the spill arena. Behind the staging slots, 2 x 256 bytes, the host arena
// has the pool, which is never larger than the slots of all that is packed, here 512, and an index of them, here 64.

// CHECK: sched.program @step device({{[0-9]+}}) host([[HOST]]) spill(512) base({{[0-9]+}}) pool([[POOL]])
// CHECK-DAG: sched.buffer "fc1_y_host" spill bytes(320) at(0) live(2, 7)
// CHECK-DAG: sched.buffer "x_staging" host bytes(256) input("x") at({{0|256}})
// CHECK: sched.copy d2h %fc1_y -> %fc1_y_host codec("zvc:pool={{[0-9]+}}" : tensor<
// CHECK: sched.copy h2d %fc1_y_host -> %fc1_y_back codec("zvc:pool={{[0-9]+}}" : tensor<
// BUDGET: placed host arena needs 612 bytes, the budget is 611; 100 of them are the pool of zvc
