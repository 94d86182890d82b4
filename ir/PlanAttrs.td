// SPDX-License-Identifier: Apache-2.0
// The plan of a step: the attribute `train.plan` of @step, which plan-memory leaves for apply-plan, and of the program
// that @step becomes, for codegen and reports. Positions count the ops of @step that have a kernel, storages have the
// names of passes/analysis/Storages.h; bytes and seconds everywhere.
#ifndef SLUICE_IR_PLAN_ATTRS
#define SLUICE_IR_PLAN_ATTRS

include "ir/TrainDialect.td"

def Train_ActionKind : I32EnumAttr<"ActionKind", "what happens to an activation between its forward and its backward readers", [
    I32EnumAttrCase<"Keep", 0, "keep">, I32EnumAttrCase<"Offload", 1, "offload">, I32EnumAttrCase<"Compress", 2, "compress">,
    I32EnumAttrCase<"Encode", 3, "encode">, I32EnumAttrCase<"Invert", 4, "invert">, I32EnumAttrCase<"Recompute", 5, "recompute">]> {
  let cppNamespace = "::sluice::train";
  let genSpecializedAttr = 0;
}

def Train_Bytes : DefaultValuedParameter<"int64_t", "0">;
def Train_Position : DefaultValuedParameter<"int32_t", "-1">;
class Train_Float64 : DefaultValuedParameter<"::mlir::FloatAttr", "::mlir::Builder($_ctxt).getF64FloatAttr(0)">;
def Train_Number : Train_Float64;
def Train_Seconds : Train_Float64;
def Train_Arena : DefaultValuedParameter<"::mlir::StringAttr", "::mlir::StringAttr::get($_ctxt, \"host\")">;
def Train_Text : DefaultValuedParameter<"::mlir::StringAttr", "::mlir::StringAttr::get($_ctxt)">;

def Train_AbsenceAttr : AttrDef<TrainDialect, "Absence"> {
  let mnemonic = "absence";
  let summary = "a stretch of the step for which a storage's device bytes are gone";
  let description = [{
    Positions as planner::Absence has them: copied (packed) after `leave_after`, bytes free before `free_before`, copied back after
    `return_after`, needed by `needed_by`; -1 where the action has no such position. That of a state which is at home elsewhere goes
    around the end of the step, `return_after` < `needed_by` <= `leave_after` < `free_before`: it comes in one step and goes after its op in the same, `free_before` the number of ops
    stands for the end. With the same `leave_after` as the absence
    before it there is no copy of its own: the first one is still there.
  }];
  let parameters = (ins Train_Position:$leave_after, Train_Position:$free_before, Train_Position:$return_after,
    Train_Position:$needed_by);
  let extraClassDeclaration = [{
    AbsenceKind getKind() const { return absenceKind(getLeaveAfter(), getNeededBy()); }
  }];
  let assemblyFormat = "`<` struct(params) `>`";
}

def Train_DecisionAttr : AttrDef<TrainDialect, "Decision"> {
  let mnemonic = "decision";
  let summary = "what a plan does with one storage";
  let description = [{
    `codec` may have a parameter (`zfp:12`). `absences`, in the order of the program, are for offloaded, packed and inverted
    storages. The rest is for reports: first and last op that touches the storage, the ONNX node that made it, why the strategy decided so,
    what the action costs, for how long compute waits for it, and whether the plan's peak would be no higher without it.
  }];
  let parameters = (ins "::mlir::StringAttr":$storage, EnumParameter<Train_ActionKind>:$action, Train_Text:$codec,
    Train_Bytes:$bytes, Train_Position:$first, Train_Position:$last, Train_Text:$node, Train_Text:$reason,
    Train_Seconds:$seconds, Train_Seconds:$stall, DefaultValuedParameter<"bool", "false">:$frees_nothing,
    OptionalArrayRefParameter<"AbsenceAttr">:$absences);
  let assemblyFormat = [{
    `<` struct($storage, $action, $codec, $bytes, $first, $last, $node, $reason, $seconds, $stall, $frees_nothing)
    (`absences` `[` $absences^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
}

def Train_RecomputeAttr : AttrDef<TrainDialect, "Recompute"> {
  let mnemonic = "recompute";
  let summary = "forward ops that run again just before op `before`, in this order";
  let parameters = (ins "int32_t":$before, ArrayRefParameter<"int32_t">:$ops);
  let assemblyFormat = "`<` `before` $before `:` $ops `>`";
  let genVerifyDecl = 1;
}

def Train_PlaceForm : I32EnumAttr<"PlaceForm", "whose bytes lie at a place of a plan", [
    I32EnumAttrCase<"Raw", 0, "raw">, I32EnumAttrCase<"Packed", 1, "packed">, I32EnumAttrCase<"Workspace", 2, "workspace">]> {
  let cppNamespace = "::sluice::train";
  let genSpecializedAttr = 0;
}

def Train_PlaceAttr : AttrDef<TrainDialect, "Place"> {
  let mnemonic = "place";
  let summary = "where in the device arena a storage lies from step `step` on";
  let description = [{
    `offset` counts from the start of the arena, as `at` of sched.buffer does (the planner's own from the end of the base). Steps count the ops with a kernel
    from 0, those that run again included, in the order in which the plan runs them. A raw storage has one place per life: `step` is the one that
    first writes it or, for a life that begins with a return, the step after the return. A packed form, or what an inversion saves, is made
    after its step. A workspace has no storage: it is that of the step.
  }];
  let parameters = (ins Train_Text:$storage, DefaultValuedParameter<"PlaceForm", "PlaceForm::Raw">:$form, "int32_t":$step, "int64_t":$offset);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Train_PlanAttr : AttrDef<TrainDialect, "Plan"> {
  let mnemonic = "plan";
  let summary = "what plan-memory decided for a step";
  let description = [{
    `budget` was asked for; `arena`: bytes of the device that the plan needs; `keep_arena`: bytes that strategy keep needs; `base`: the part of both that
    outlives the step; no plan of whole tensors goes below `floor`. `seconds` of a step are predicted, as are `keep_seconds`; no plan is faster than `lower_bound`;
    `longest` is that of any single kernel or copy. `home` is the arena that offloaded storages go to. `rounds` plans were made, more than one
    where placing the program took more than the plan said. `places` is how the plan was packed; what has none is packed by assign-slots.
    `alternatives` has an index into the `alternatives` of each op's cost.

    ```mlir
    #train.plan<strategy = "greedy", budget = 164096, arena = 164096, keep_arena = 180480, base = 98560
      decisions [<storage = "fc1_y", action = offload
                  absences [<leave_after = 1, free_before = 3, return_after = 6, needed_by = 8>]>,
                 <storage = "fc3_y", action = recompute>]
      recomputes [<before 6 : 2>]
      places [<storage = "fc1_y", step = 0, offset = 98560>, <form = workspace, step = 3, offset = 147712>]>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$strategy, Train_Bytes:$budget, Train_Bytes:$arena, Train_Bytes:$keep_arena,
    Train_Bytes:$base, Train_Bytes:$floor, Train_Seconds:$seconds, Train_Seconds:$keep_seconds, Train_Seconds:$lower_bound,
    Train_Seconds:$longest, Train_Arena:$home, DefaultValuedParameter<"int32_t", "1">:$rounds,
    OptionalArrayRefParameter<"DecisionAttr">:$decisions, OptionalArrayRefParameter<"RecomputeAttr">:$recomputes,
    OptionalArrayRefParameter<"PlaceAttr">:$places, OptionalArrayRefParameter<"int32_t">:$alternatives);
  let assemblyFormat = [{
    `<` struct($strategy, $budget, $arena, $keep_arena, $base, $floor, $seconds, $keep_seconds, $lower_bound, $longest, $home, $rounds)
    (`decisions` `[` $decisions^ `]`)? (`recomputes` `[` $recomputes^ `]`)? (`places` `[` $places^ `]`)? (`alternatives` `[` $alternatives^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
}

def Train_Compared : I32EnumAttr<"Compared", "what gradients compare a tensor with, see Comparison of runtime/PackedForms.h", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"AboveZero", 1, "above_zero">, I32EnumAttrCase<"Otherwise", 2, "otherwise">]> {
  let cppNamespace = "::sluice::train";
  let genSpecializedAttr = 0;
}

def Train_LossyTensorAttr : AttrDef<TrainDialect, "LossyTensor"> {
  let mnemonic = "lossy_tensor";
  let summary = "an activation that has packed forms, with the relative error of the gradients that its action is expected to cause";
  let parameters = (ins "::mlir::StringAttr":$storage, EnumParameter<Train_Compared>:$compared, Train_Number:$error);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Train_LossyAttr : AttrDef<TrainDialect, "Lossy"> {
  let mnemonic = "lossy";
  let summary = "what a plan's lossy actions do to the gradients, the attribute `train.lossy` of the module";
  let description = [{
    `error` of `allowed` by the whole plan; without an error budget both are 0. `usual`: some errors are what codecs usually do, not measured.

    ```mlir
    #train.lossy<allowed = 0.01 : f64, error = 0.004 : f64 tensors [<storage = "relu_y", compared = above_zero, error = 0.004 : f64>]>
    ```
  }];
  // `allowed` has no default: a struct of which nothing is printed cannot be parsed in front of another word.
  let parameters = (ins "::mlir::FloatAttr":$allowed, Train_Number:$error, DefaultValuedParameter<"bool", "false">:$usual,
    OptionalArrayRefParameter<"LossyTensorAttr">:$tensors);
  let assemblyFormat = "`<` struct($allowed, $error, $usual) (`tensors` `[` $tensors^ `]`)? `>`";
}

#endif
