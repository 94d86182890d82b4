// RUN: sluice-opt --sluice-apply-plan --split-input-file --verify-diagnostics %s
// Plans that no planner makes: attributes that contradict themselves, positions out of order, and an op that is marked to run again but cannot, codecs that do
// not fit.

// Free before the copy has begun.
// expected-error @below {{the plan's positions for "fc_y", to offload, are out of order: copied after 1, free before 1, copied back after 1, needed by 2}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'decisions'}}
func.func @step(%x: tensor<8x8xf32>, %t: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = offload absences [<leave_after = 1, free_before = 1, return_after = 1, needed_by = 2>]>]>} {
  %a = train.matmul %x, %x {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc/Gemm")
  %d = train.matmul %t, %t {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = train.matmul %d, %a {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %e : tensor<8x8xf32>
}

// -----

// No arena that plans may use.
// expected-error @below {{the plan offloads to "attic", which is no arena for that}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand", home = "attic">} {
  return %x : tensor<8x8xf32>
}

// -----

// Needed by an op that does not exist.
// expected-error @below {{the plan wants to offload 'fc_y' as far as op 3 of 3}}
func.func @step(%x: tensor<8x8xf32>, %t: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = offload absences [<leave_after = 0, free_before = 1, return_after = 1, needed_by = 3>]>]>} {
  %a = train.matmul %x, %x {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc/Gemm")
  %d = train.matmul %t, %t {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = train.matmul %d, %a {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %e : tensor<8x8xf32>
}

// -----

// Figures below 0.
// expected-error @below {{the plan has a figure of -5 bytes}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand", budget = -5>} {
  return %x : tensor<8x8xf32>
}

// -----

// expected-error @below {{the plan's figures for "fc_y" are below 0: -1 bytes}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'decisions'}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = recompute, bytes = -1>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// Copied before it is there.
// expected-error @below {{the plan wants to offload 'fc_y' after op 0, which op 1 is the last to write}}
func.func @step(%x: tensor<8x8xf32>, %t: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = offload absences [<leave_after = 0, free_before = 2, return_after = 2, needed_by = 3>]>]>} {
  %z = train.matmul %x, %x {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = train.matmul %z, %x {train.forward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc/Gemm")
  %d = train.matmul %t, %t {train.backward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = train.matmul %d, %a {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %e : tensor<8x8xf32>
}

// -----

// Runs again before it has run first.
// expected-error @below {{the plan recomputes op 1 before op 1}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'recomputes'}}
func.func @step(%x: tensor<8x8xf32>, %t: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" recomputes [<before 1 : 1>]>} {
  %a = train.matmul %x, %x {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc/Gemm")
  %d = train.matmul %t, %t {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = train.matmul %d, %a {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %e : tensor<8x8xf32>
}

// -----

// Of an op that cannot: position 3 does not exist.
// expected-error @below {{the plan recomputes op 0 before op 3 of 0}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" recomputes [<before 3 : 0>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// Names no storage of the step.
// expected-error @below {{the plan decides for 'fc_y', which is no storage of the step}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = recompute>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// A word that is no action.
// expected-error @below {{expected ::sluice::train::ActionKind to be one of: keep, offload, compress, encode, invert, recompute}}
// expected-error @below {{failed to parse Train_DecisionAttr parameter 'action'}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'decisions'}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = forget>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// A codec that there is not.
// expected-error @below {{the plan packs "fc_y" with "zfp:99", which is no codec}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'decisions'}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = offload, codec = "zfp:99" absences [<leave_after = 0, free_before = 1, return_after = 1, needed_by = 2>]>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// Keeps what it copies.
// expected-error @below {{the plan takes "fc_y" away 1 times, to keep}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'decisions'}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = keep absences [<leave_after = 0>]>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// Two decisions for one storage.
// expected-error @below {{the plan decides twice for "fc_y"}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = keep>, <storage = "fc_y", action = recompute>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// Away again before it is read.
// expected-error @below {{absences of "fc_y" overlap: needed by 4, then copied after 0 and free before 4}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'decisions'}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = offload absences [<leave_after = 0, free_before = 1, return_after = 2, needed_by = 4>, <leave_after = 0, free_before = 4, return_after = 5, needed_by = 6>]>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// Copied again while it is away.
// expected-error @below {{absences of "fc_y" overlap: needed by 4, then copied after 3 and free before 5}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'decisions'}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = offload absences [<leave_after = 0, free_before = 1, return_after = 2, needed_by = 4>, <leave_after = 3, free_before = 5, return_after = 5, needed_by = 6>]>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// Packed on the device twice.
// expected-error @below {{the plan takes "fc_y" away 2 times, to compress}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'decisions'}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = compress, codec = "fp16" absences [<leave_after = 0, free_before = 1, return_after = 2, needed_by = 4>, <leave_after = 0, free_before = 5, return_after = 5, needed_by = 6>]>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// Packs what stays.
// expected-error @below {{the plan packs "fc_y" with "fp16", to keep}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'decisions'}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc_y", action = keep, codec = "fp16">]>} {
  return %x : tensor<8x8xf32>
}

// -----

// Re-runs out of order.
// expected-error @below {{the plan recomputes before op 2 after it did before op 3}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" recomputes [<before 3 : 0>, <before 2 : 0>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// An alternative below the first.
// expected-error @below {{the plan chooses alternative -1 of op 1}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" alternatives [0, -1]>} {
  return %x : tensor<8x8xf32>
}

// -----

// Positions are 32 bits.
// expected-error @below {{integer value too large}}
// expected-error @below {{failed to parse Train_RecomputeAttr parameter 'before'}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'recomputes'}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" recomputes [<before 4294967296 : 0>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// No plan.
// expected-error @below {{needs @step with a plan; run plan-memory first}}
module {
  func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    return %x : tensor<8x8xf32>
  }
}

// -----

// A4 of the dialect: a gradient op cannot run again.
func.func @a4(%d: tensor<2x3xf32>) {
  // expected-error @below {{cannot run again, but is marked 'train.recompute'}}
  %x = train.relu_backward %d, %d {train.recompute} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

train.variable @w role(parameter) init(kaiming) : tensor<8x8xf32>

// A mask of what a product reads.
// expected-error @below {{the plan wants to encode 'fc1_y' with mask, which generated programs cannot do}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<f32> attributes {
    train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc1_y", action = encode, codec = "mask" absences [<leave_after = 0, free_before = 2>]>]>} {
  %w = train.read @w : tensor<8x8xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %loss = train.mse %a, %x {train.forward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  %da = train.loss_backward mse %a, %x {train.backward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("loss")
  return %loss : tensor<f32>
}

// -----

train.variable @w role(parameter) init(kaiming) : tensor<8x8xf32>

// A codec that copies do not have.
// expected-error @below {{the plan wants to offload 'fc1_y' with mask, which generated programs cannot do}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<f32> attributes {
    train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc1_y", action = offload, codec = "mask" absences [<leave_after = 0, free_before = 1, return_after = 1, needed_by = 2>]>]>} {
  %w = train.read @w : tensor<8x8xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %loss = train.mse %a, %x {train.forward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  %da = train.loss_backward mse %a, %x {train.backward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("loss")
  return %loss : tensor<f32>
}

// -----

train.variable @w role(parameter) init(kaiming) : tensor<8x8xf32>

// Nothing gives back what a loss reads.
// expected-error @below {{the plan wants to invert 'fc1_y', which generated programs cannot do}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<f32> attributes {
    train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc1_y", action = invert absences [<leave_after = 0, free_before = 1, return_after = 1, needed_by = 2>]>]>} {
  %w = train.read @w : tensor<8x8xf32>
  %a = train.matmul %x, %w {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %loss = train.mse %a, %x {train.forward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  %da = train.loss_backward mse %a, %x {train.backward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("loss")
  return %loss : tensor<f32>
}

// -----

train.variable @w role(parameter) init(kaiming) : tensor<8x8xf32>
train.variable @"w/momentum" role(optimizer) init(zero) : tensor<8x8xf32>

// The other addend needs w as the forward half read it, which is over before the addend is wanted.
// expected-error @below {{the plan wants to invert 'fc1_y', which generated programs cannot do}}
func.func @step(%x: tensor<8x8xf32>, %v: tensor<8x8xf32>) -> tensor<f32> attributes {
    train.plan = #train.plan<strategy = "hand" decisions [<storage = "fc1_y", action = invert absences [<leave_after = 2, free_before = 3, return_after = 6, needed_by = 7>]>]>} {
  %a = train.matmul %x, %v {train.forward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  %w = train.read @w : tensor<8x8xf32>
  %f = train.matmul %v, %w {train.forward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %y = train.fused (%a, %f : tensor<8x8xf32>, tensor<8x8xf32>) channels [] sums 0 -> (tensor<8x8xf32>) attributes {train.forward = 2 : i64, train.in_place = array<i64: 1>} {
  ^bb0(%s: f32, %t: f32):
    %q = arith.addf %s, %t : f32
    train.yield %q : f32
  } loc("/add/Add")
  %loss = train.mse %y, %x {train.forward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<f32> loc("loss")
  %dy = train.loss_backward mse %y, %x {train.backward = 3 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("loss")
  %dw = train.matmul %v, %dy {transpose_a = true, train.backward = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc2/Gemm")
  %old1 = train.read @w : tensor<8x8xf32>
  %old1_0 = train.read @"w/momentum" : tensor<8x8xf32>
  %new1:2 = train.update(%dw, %old1, %old1_0) rule(sgd) {train.backward = 1 : i64} : tensor<8x8xf32> loc("/fc2/Gemm")
  %g = train.matmul %a, %dy {train.backward = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("/fc1/Gemm")
  return %loss : tensor<f32>
}

// -----

// Places of what is not there, and what contradicts itself.
// expected-error @below {{the plan places 'fc_y', which is no storage of the step}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" places [<storage = "fc_y", step = 0, offset = 0>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// expected-error @below {{the plan places "fc_y" twice from step 3 on}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" places [<storage = "fc_y", step = 3, offset = 0>, <storage = "fc_y", step = 3, offset = 256>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// expected-error @below {{the plan places "fc_y" at byte -256 from step 0 on}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'places'}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" places [<storage = "fc_y", step = 0, offset = -256>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// expected-error @below {{the plan places the workspace bytes of storage "fc_y": workspaces have none, others have one}}
// expected-error @below {{failed to parse Train_PlanAttr parameter 'places'}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand" places [<storage = "fc_y", form = workspace, step = 0, offset = 0>]>} {
  return %x : tensor<8x8xf32>
}

// -----

// expected-error @below {{the plan was made 0 times}}
func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {train.plan = #train.plan<strategy = "hand", rounds = 0>} {
  return %x : tensor<8x8xf32>
}
