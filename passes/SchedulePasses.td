// SPDX-License-Identifier: Apache-2.0
// The passes that plan, with those before them that number ops and say what things cost, and those after the plan, which make and prove
// sched.programs; in pipeline order, the last part of Passes.td.
#ifndef SLUICE_SCHEDULE_PASSES
#define SLUICE_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def Linearize : Pass<"sluice-linearize", "::mlir::ModuleOp"> {
  let summary = "number the stages between cut points, and mark what may work in place";
  let description = [{
    A cut point is a value that alone separates the forward graph: after its op, no other activation is read by a later forward op. Every
    op gets `train.stage`; a backward op has the stage of its forward op. Fused ops whose operand nobody reads later, backward ops
    included, and the gradient of the loss get `train.in_place`: per result the operand whose bytes it takes, or -1; so do backward products that are added to a sum of gradients which nobody reads later. A train.slice of what outlives
    the step becomes a `piece`, no copy; so does one whose operand lives as long anyway, and slices that are all that is read of their operand, or all but an eighth at
    its end, which is what pad-products adds.

    ```mlir
    %a = train.conv %x, %w ... {train.forward = 0} : ...
    %b = train.fused (%a : ...) channels [] sums 0 -> (...) {train.forward = 1, train.rule = "relu"} {...}
    %c = train.conv %b, %v ... {train.forward = 2} : ...
    ```
    becomes
    ```mlir
    %a = train.conv %x, %w ... {train.forward = 0, train.stage = 0} : ...
    %b = train.fused (%a : ...) channels [] sums 0 -> (...) {train.forward = 1, train.in_place = array<i64: 0>, train.rule = "relu", train.stage = 1} {...}
    %c = train.conv %b, %v ... {train.forward = 2, train.stage = 2} : ...
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let statistics = [Statistic<"stages", "stages", "stages found">, Statistic<"pieces", "pieces", "slabs that are no copies">, Statistic<"inPlace", "in-place", "results that take an operand's bytes">];
}

def EstimateCost : Pass<"sluice-estimate-cost", "::mlir::ModuleOp"> {
  let summary = "attach predicted seconds and workspace bytes to every op";
  let description = [{
    Roofline on a device profile: arithmetic at the peak that kernels of this kind reach, or the bytes moved, whichever takes longer. Products
    have the peak of their precision: factors of 16 bits, or tf32 where `train.precision` of the module says so.
    Measured times of `profile` replace estimates where node and op agree. Workspaces are asked from the target's own kernels, on the
    host for `threads` and the `level` of their processor. Where a kernel can compute in several ways, the fastest that fits `workspace-limit` becomes
    `train.algorithm`; without a limit none may exceed the largest activation, nor raise the largest sum of what an op touches, of gradients
    that live across it, and of its workspace, unless everything else is twice as slow. With `alternatives` the cost lists all
    that no other beats in time and workspace. For cuda the module keeps the engines that `profile` recorded (`train.engines`), for the program.

    ```mlir
    %y = train.matmul %x, %w {...} : ...
    ```
    becomes
    ```mlir
    %y = train.matmul %x, %w {..., train.cost = #train.cost<seconds = 1.2e-05 : f64, workspace = 4096>} : ...
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let options = [Option<"device", "device", "std::string", "\"host\"", "device profile: a shipped name or a .json file">,
                 Option<"profile", "profile", "std::string", "", "measured times that replace estimates, a .json file">,
                 Option<"workspaceLimit", "workspace-limit", "int64_t", "0", "largest workspace of one kernel in bytes; 0: follows from the step">,
                 Option<"alternatives", "alternatives", "bool", "false", "also the ways in which plans may compute an op instead">,
                 Option<"target", "target", "Target", "Target::Host", "host or cuda: whose kernels are asked for their workspaces", "TargetWords()">,
                 Option<"threads", "threads", "int", "0", "threads of host programs, on which workspaces depend; 0: this machine's">,
                 Option<"level", "level", "int", "0", "level of the processors that host programs are built for: 2 to 4 of x86-64, 5 to 7 of ARM; 0: this machine's">];
}

def HomeVariables : Pass<"sluice-home-variables", "::mlir::ModuleOp"> {
  let summary = "optimizer states and parameters live in another arena than the device's, or in shares of all ranks";
  let description = [{
    Optimizer states of 4 KiB and more, averages among them, have the home `states`; parameters that are no vectors, those that are held fixed among them, the home `parameters`.
    They come before each op that reads them, in steps and in evaluations, and are dropped after it; what an update changes goes back. What a function returns as it is stays.
    Plans have these copies (`planner::Buffer::visits`), and apply-plan moves them away from the op where there is room. An op that runs again fetches what it reads again.

    With `updates-at-home` an update of which parameter and states are all at home in host memory runs there, by threads of the host: its gradient goes home after the
    last op that touches it, and nothing else travels for it. Compute waits for earlier ones where gradients on their way were more than twice the largest. Updates by
    lamb, of shares, of rows, of what is accumulated and of what ranks have summed run on the device.

    With `train.parameter_shares` parameters that reduce-gradients does not gather, those that may have a home, become a rank's share; what reads one gets it by a train.gather_shares,
    its update the share as it is.

    - Both homes are one, or one of them is the device; where there are shares of parameters both are.
    - With a share of less than all, those that leave are spread over the variables in their order, so that their copies are spread over the step.

    ```mlir
    %m = train.read @"w/momentum" : tensor<64x64xf32>
    %w2, %m2 = train.update(%dw, %w, %m) rule(sgd) : tensor<64x64xf32>
    ```
    becomes, with `states=storage`,
    ```mlir
    %h = train.read @"w/momentum" : !train.host<tensor<64x64xf32>>
    %m = train.prefetch %h : (!train.host<tensor<64x64xf32>>) -> tensor<64x64xf32>
    %w2, %m2 = train.update(%dw, %w, %m) rule(sgd) : tensor<64x64xf32>
    %h2 = train.offload %m2 {home = "storage", variable = @"w/momentum"} : (tensor<64x64xf32>) -> !train.host<tensor<64x64xf32>>
    train.await %h2 : (!train.host<tensor<64x64xf32>>) -> ()
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let options = [Option<"states", "states", "Space", "Space::Device", "arena of optimizer states", "HomeWords()">,
                 Option<"parameters", "parameters", "Space", "Space::Device", "arena of parameters", "HomeWords()">,
                 Option<"stateShare", "state-share", "int", "32", "how much of their bytes, in shares of 32">,
                 Option<"parameterShare", "parameter-share", "int", "32", "how much of their bytes, in shares of 32">,
                 Option<"device", "device", "std::string", "\"host\"", "device profile: a shipped name or a .json file">,
                 Option<"profile", "profile", "std::string", "", "measured times and rates, a .json file">,
                 Option<"updatesAtHome", "updates-at-home", "bool", "true", "run updates in host memory where all that they change is there">];
  let statistics = [Statistic<"variables", "variables", "that are at home elsewhere">, Statistic<"atHome", "at-home", "updates that run there">,
                    Statistic<"shares", "shares", "parameters that are shares of all ranks">];
}

def PlanMemory : Pass<"sluice-plan-memory", "::mlir::ModuleOp"> {
  let summary = "choose an action for every activation of @step within the budget";
  let description = [{
    The only bridge between IR and planner: builds planner::Problem from the ops of @step and the buffers that they share, runs the strategy
    and leaves its checked plan as the attribute `train.plan` of @step, for apply-plan and for reports. The plan is packed as tightly as can be, and its
    `places` say where each buffer lies, so that what was planned is what is placed. `keep`'s arena and the base, which
    percentages refer to, are there as well. @evaluate, which lies in the same arena, has keep's plan, of which nothing but its places matters. A budget that no plan of the strategy meets is an error that names the smallest feasible one.

    ```mlir
    func.func @step(...) -> tensor<f32> {
    ```
    becomes, with `strategy=greedy,min-copy=1` and `budget=80%act`,
    ```mlir
    func.func @step(...) -> tensor<f32> attributes {train.plan = #train.plan<strategy = "greedy", budget = 164096, arena = 164096, keep_arena = 180480, base = 98560
        decisions [<storage = "fc1_y", action = offload, bytes = 16384, ...
                     absences [<leave_after = 1, free_before = 3, return_after = 6, needed_by = 8>]>,
                   <storage = "fc2_y", action = keep, bytes = 16384, ...>, ...]
        places [<storage = "fc1_y", step = 0, offset = 98560>, ...]>} {
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let options = [Option<"strategy", "strategy", "std::string", "\"auto\"", "NAME[,k=v...]">,
                 Option<"budget", "budget", "std::string", "", "bytes, 8GiB, 40% or 40%act; empty for no limit">,
                 Option<"device", "device", "std::string", "\"host\"", "device profile: a shipped name or a .json file">,
                 Option<"profile", "profile", "std::string", "", "measured link and codec rates, a .json file">,
                 Option<"allowLossy", "allow-lossy", "std::string", "", "actions that round, separated by commas">,
                 Option<"target", "target", "Target", "Target::Host", "host or cuda: whose programs carry the plan out", "TargetWords()">,
                 Option<"shrink", "shrink", "int64_t", "0", "bytes to plan below the budget, for what packing costs on top">,
                 Option<"hostBudget", "host-budget", "int64_t", "-1", "largest host arena in bytes; 0: the next batch alone; -1: no limit">,
                 Option<"oneMemory", "one-memory", "bool", "false", "the budget is of both arenas, so that nothing is offloaded to the host">,
                 Option<"errorBudget", "error-budget", "double", "0", "relative error of the gradients that the plan may cause; 0: any">,
                 Option<"home", "home", "Space", "Space::Host", "arena of what is offloaded", "HomeWords()">,
                 Option<"ranks", "ranks", "int", "2", "of a module for several: how many the plan is made for">,
                 Option<"interconnect", "interconnect", "std::string", "", "between them: a shipped name or a .json file; empty: the profile's own">,
                 Option<"sketch", "sketch", "bool", "false", "a plan to compare with others, of few trials; what is needed at least is not looked for">];
}

def ApplyPlan : Pass<"sluice-apply-plan", "::mlir::ModuleOp"> {
  let summary = "rewrite each function as its `train.plan` says";
  let description = [{
    Offload: train.offload after the last forward writer, so that the copy runs beside the ops that read the value, or later where other
    copies are issued first; train.await where the bytes may be reused, train.prefetch where the copy back is
    issued; later readers read the prefetched value. Compress: the same with train.encode, after the last forward access, and train.decode; after the last op that
    needs the values, gradients that only ask for signs read the train.packed_mask of a codec that has one. Encode: train.encode of a mask,
    which later readers, fused regions that only compare the value with 0, read instead of it. Recompute: forward ops cloned before their backward user, marked `train.recompute`.
    Invert: an op that saves what cannot be rebuilt after the last forward access, one that rebuilds the rest before the first backward one;
    an addend is the sum less the other one, whose last ops are cloned before it, marked `train.inverse`.
    Views of a value that came back are made again from it. Other actions are refused by name. Ops that make what the plan places get
    `train.offsets`, which schedule-streams gives the buffers.

    ```mlir
    %y = train.conv ...
    %dw = train.conv_backward_weight %dy, %y ...
    ```
    becomes
    ```mlir
    %y = train.conv ...
    %h = train.offload %y : ...
    train.await %h : ...
    %y2 = train.prefetch %h : ...
    %dw = train.conv_backward_weight %dy, %y2 ...
    ```
  }];
  let dependentDialects = ["::sluice::train::TrainDialect"];
  let statistics = [Statistic<"offloads", "offloads", "buffers that are offloaded">,
      Statistic<"packed", "packed", "buffers that are encoded or compressed on the device">, Statistic<"recomputed", "recomputed", "ops that run twice">,
      Statistic<"inverted", "inverted", "buffers that are rebuilt from a later one">];
}

def ScheduleStreams : Pass<"sluice-schedule-streams", "::mlir::ModuleOp"> {
  let summary = "turn train functions into device programs: kernels, copies and events in issue order";
  let description = [{
    Every train function becomes a sched.program of the same name, and stays beside it as `NAME.planned`, which verify-schedule compares
    with the program. Kernels run on the compute stream in the order of the function.
    - train.offload: the copy stream of its arena (d2h, or storage) waits until compute has reached this place, and copies.
    - train.await: compute waits for that copy; from here on other buffers may have the bytes.
    - train.prefetch: the arena's stream back (h2d, or storage) waits until compute has reached this place (the bytes that it writes are free from here on), and copies; the
      first reader waits for it.
    - train.encode and train.decode: as these, on the codec stream; a mask is made on compute.
    - `train.offsets`, from the plan, become the offsets of buffers.
    - The copies of the next batch, from the staging slot of every input to its other batch slot, come last on h2d.

    Compute waits for every copy at the end. Waits that follow from earlier ones are left out. Reading a value whose bytes were overwritten
    in the meantime (by an in-place op or an update) is an error.

    ```mlir
    %y = train.conv %x, %w ... : ...
    %h = train.offload %y : ...
    %p = train.matmul %y, %v : ...
    train.await %h : ...
    ```
    becomes
    ```mlir
    sched.run compute "conv" ins(%x : ..., %w : ...) outs(%conv1_y : ...) versions [0, 0] -> [1] calls [...]
    %conv1_y_ready = sched.record compute "conv1_y_ready"
    sched.wait d2h %conv1_y_ready
    sched.copy d2h %conv1_y -> %conv1_y_host versions 1 -> 1
    %conv1_y_host_copied = sched.record d2h "conv1_y_host_copied"
    sched.run compute "matmul" ins(%conv1_y : ..., %v : ...) outs(%fc_y : ...) versions [1, 0] -> [1] calls [...]
    sched.wait compute %conv1_y_host_copied
    ```
  }];
  let dependentDialects = ["::sluice::sched::SchedDialect"];
  let statistics = [Statistic<"waits", "waits", "event waits that order the streams">];
}

def GroupLaunches : Pass<"sluice-group-launches", "::mlir::ModuleOp"> {
  let summary = "bring kernels of one kind together, for programs that put them into one launch";
  let description = [{
    On a GPU a launch takes longer than most updates of a parameter. Runs of one kind that touch variables and little else are moved next to
    each other, and all but the first of a group get `sched.together`, which emitted programs take for one launch:

    - updates, sums of gradients and running statistics, which write variables alone, wait for the last one of their group;
    - casts that turn the gradients of convolutions' weights wait for the last one of theirs, in front of the updates;
    - casts of parameters, which read variables alone, are made with the first one.

    A group ends where an op in between needs what a member changes, or changes what it needs; where the buffers that live longer or begin earlier exceed
    `bytes`; after as many runs as one launch takes (runtime/Gather.h); and where the most bytes that are live at once would grow: groups live in
    what the plan leaves unused. Changes no bit of what is computed. Transients of a program that changed lose the offsets that the plan gave them.

    ```mlir
    sched.run compute "update" ins(%a_grad : ..., %a : ...) outs(%a : ...) ...
    sched.run compute "conv_backward_weight" ins(%x : ..., %y : ...) outs(%b_grad : ...) ...
    sched.run compute "update" ins(%b_grad : ..., %b : ...) outs(%b : ...) ...
    ```
    becomes
    ```mlir
    sched.run compute "conv_backward_weight" ins(%x : ..., %y : ...) outs(%b_grad : ...) ...
    sched.run compute "update" ins(%a_grad : ..., %a : ...) outs(%a : ...) ...
    sched.run compute "update" ins(%b_grad : ..., %b : ...) outs(%b : ...) ... attributes {sched.together}
    ```
  }];
  let options = [Option<"bytes", "bytes", "int64_t", "56 << 20", "most bytes of a group that wait or come early: about what an H200's cache holds">];
  let statistics = [Statistic<"saved", "saved", "launches saved">];
}

def AssignSlots : Pass<"sluice-assign-slots", "::mlir::ModuleOp"> {
  let summary = "give every buffer of the scheduled programs an offset, and the arenas their sizes";
  let description = [{
    1. Lifetimes in steps (kernels and copies, numbered from 1 in issue order). A buffer lives from the step that first writes it to its
       last access; a copy that reads or writes it counts until compute has waited for it.
    2. What outlives a step comes first, at the same offsets in every program: variables, batch slots, results.
    3. Transients of each program come above it, those on the host in the host arena, those of the spill arena in that one; programs share
       all arenas. Buffers that have an offset, from the plan, keep it, which is an error where two of them share bytes while both live; the
       others are packed around them. Where that takes more, or where the plan packs or inverts tensors, which live a little shorter than it
       says, all are packed as well, and the lower arena is taken.
    4. The pool of `zvc:pool=BYTES` comes last in the host arena: these bytes, or what all tensors of a step need that are packed into it, and an index of them.

    Fails with both numbers when an arena is larger than its budget. The statistics compare the arena with the most bytes live at once.

    ```mlir
    %a = sched.buffer "a" device bytes(1000)
    ```
    becomes
    ```mlir
    %a = sched.buffer "a" device bytes(1000) at(4096) live(1, 3)
    ```
  }];
  let options = [
    Option<"budget", "budget", "int64_t", "0", "largest device arena in bytes; 0: no limit">,
    Option<"hostBudget", "host-budget", "int64_t", "-1", "largest host arena in bytes; 0: the next batch alone; -1: no limit">,
    Option<"sketch", "sketch", "bool", "false", "quickly, of a plan to compare with others">];
  let statistics = [Statistic<"deviceBytes", "device-bytes", "size of the device arena">, Statistic<"hostBytes", "host-bytes", "size of the host arena">,
      Statistic<"liveBytes", "live-bytes", "most bytes on the device live at once">];
}

def VerifySchedule : Pass<"sluice-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "prove placed programs free of races, and that they compute what was planned";
  let description = [{
    Follows issue order with a vector clock per stream; events carry clocks. Shares nothing with planner, packer or scheduler.
    - V1: every buffer has an offset that is a multiple of 256, inside its arena; what outlives a step lies below the base and at the same
      offset in every program; transients of the device lie at or above the base; arenas are within the budgets; no buffer lies in the pool
      at the end of the host arena, and there is one where a copy has a codec with a pool, no larger than that says.
    - V2: every access lies inside the buffer's lifetime, where a copy's access begins when compute released it; when the lifetime ends compute is ordered after
      every access.
    - V3: two accesses of which one writes, to the same bytes, are ordered by streams and events.
    - V4: every byte that is read was written before, as one of the same buffer, none of another has been written there in between, and it is
      the version that the step names; no step sees one byte as two tensors while it writes it; results and the batch of the next step are written.
    - V5: programs begin and end with all streams joined.
    - V6: a buffer has exactly the bytes of every shape that it is used with, worked out in 128 bits, and of its variable; a piece of it lies within;
      what is copied as it is has one size on both sides, what is packed on
      the way the bytes of its form on the host, and it comes back by the codec and as the tensor by which it went.
    - V7: runs that are launched together are next to each other on compute, and none sees bytes that another one writes.
    - V8: a program that names the planned function that it computes has exactly one run or copy for each op of it, with the calls, types,
      scratch and region that the op asks for; ins are the contents that the op's operands became, pieces where views begin, outs are where its results are read.
      Runs of one kernel, half of the step and calls stand in the function's order.
    - V9: in a module for several ranks, updates of parameters and running statistics, norms and checks read what all ranks have summed, once, of the shape
      that it had; statistics that are synchronized are met once, where all ranks do, and nothing reads a rank's own afterwards; where ranks update shares of parameters, each is gathered once behind its update, and nothing reads it in between; one that is a share in each rank is read by train.gather_shares before its update, and by that; nothing else uses the room of sums. These runs are
      those of one stream, so that all ranks meet in one order. Other modules have none.

    Changes nothing.

    ```mlir
    sched.run compute "conv" ... outs(%conv1_y : ...)
    sched.copy d2h %conv1_y -> %conv1_y_host versions 1 -> 1        // error: V3, d2h did not wait for compute
    ```
  }];
  let options = [
    Option<"budget", "budget", "int64_t", "0", "largest device arena in bytes; 0: no limit">,
    Option<"hostBudget", "host-budget", "int64_t", "-1", "largest host arena in bytes; 0: the next batch alone; -1: no limit">,
    Option<"oneMemory", "one-memory", "bool", "false", "the budget is of both arenas together">];
  let statistics = [Statistic<"accesses", "accesses", "reads and writes that were ordered">];
}

#endif
