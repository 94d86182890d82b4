// SPDX-License-Identifier: Apache-2.0
// Variables: what outlives a step, and how a function reads it. Those that change them are in UpdateOps.td.
#ifndef SLUICE_IR_VARIABLE_OPS
#define SLUICE_IR_VARIABLE_OPS

include "ir/TrainDialect.td"
include "ir/TrainInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Train_Op<string mnemonic, list<Trait> traits = []> : Op<TrainDialect, mnemonic, traits> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_HostHandle : TypeDef<TrainDialect, "HostHandle"> {
  let mnemonic = "host";
  let summary = "a tensor in the arena that it was offloaded to";
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
}

/// What train.read reads and updates change: all variables together.
def Train_Variables : Resource<"::sluice::train::Variables">;

def Train_VariableOp : Train_Op<"variable", [Symbol]> {
  let summary = "a tensor that outlives the step: parameter, running statistic, constant, optimizer state or accumulated gradient";
  let description = [{
    Lives in a slot of its own through the whole program. `value` holds constants that are small or equal everywhere; without it the
    first value follows `init`: `file` takes the initializer of the same name from the model, `copy` what the variable has that the attribute
    `train.copy_of` names, `norm` the lengths of the weights of each output of the base whose #train.adapter has it as magnitude.

    `home` names the arena that the slot lies in, one of those that plans may use (runtime/StreamTable.h); without it that is the device's. What is
    at home elsewhere comes to the device for each use and goes back, see train.read.

    `train.quantized`: a weight that is held fixed, and the form of fewer bits in which it is or will be held (quantize-frozen).

    `train.whole`: the tensor that this variable is a rank's share of, elements one behind the other. home-variables gives it to parameters with
    --shard=parameters, which train.gather_shares makes whole for what reads them.

    - C1: its elements are f32 or i64, or what `train.quantized` makes of them.
    - C2: `value`, when present, has that type.
    - C3: plans may use the home.
    - C4: a share is a vector on the device, shorter than what it is a share of.

    ```mlir
    train.variable @conv1.weight role(parameter) init(kaiming) : tensor<64x3x3x3xf32> {fan_in = 27, fan_out = 576}
    train.variable @"conv1.weight/momentum" role(optimizer) init(zero) : tensor<64x3x3x3xf32> {home = "storage"}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Train_Role:$role, Train_Init:$init, TypeAttrOf<Train_Tensor>:$type,
      OptionalAttr<ElementsAttr>:$value, DefaultValuedAttr<I64Attr, "0">:$fan_in, DefaultValuedAttr<I64Attr, "0">:$fan_out,
      OptionalAttr<StrAttr>:$reason, OptionalAttr<StrAttr>:$home);
  let assemblyFormat = "$sym_name `role` `(` $role `)` `init` `(` $init `)` `:` $type attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// That the slot lies in.
    ::sluice::Space arena();
    /// Whether it is a rank's share of a parameter.
    bool isShare();
    /// What it is a share of, or its own type.
    ::mlir::RankedTensorType wholeType();
  }];
}

def Train_DequantizeOp : Train_Op<"dequantize", [Train_OwnKernel, Pure, DeclareOpInterfaceMethods<Train_PrecisionAware, ["precisionPreference"]>,
    DeclareOpInterfaceMethods<Train_Costed, ["bytesMoved"]>, Train_Recomputable]> {
  let extraClassDeclaration = Train_KernelFacts<"Other", object = "_dequantize", results = ["_floats"]>.decl # "::sluice::sched::IdsAttr ids();";
  let summary = "the floats that a form of fewer bits stands for, or those of the rows that ids name";
  let description = [{
    Made by quantize-frozen in front of each use of a weight that is held fixed (--frozen) for which there is no train.quantized_matmul: a forward product and its gradient
    have one each, so that the floats live for that one op and nothing is kept between. With ids it takes the place of train.embedding. No gradient passes.

    - C1: the operand has the bytes of the form, of 8 or 4 bits; the result has its shape, or that of the ids, which are i64, followed by a row's.

    ```mlir
    %w = train.dequantize %form {form = #train.quantized<[768, 3072] bits 4 group 64 along 0>} : (tensor<1327104xi8>) -> tensor<768x3072xf32>
    ```
  }];
  let arguments = (ins Train_ByteVector:$x, Optional<Train_Ids>:$ids, Train_QuantizedAttr:$form);
  let results = (outs Train_Real:$y);
  let hasVerifier = 1;
}

def Train_ReadOp : Train_Op<"read", [MemoryEffects<[MemRead<Train_Variables>]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the current value of a variable, in place";
  let description = [{
    Costs nothing: kernels read the variable's own slot. Of a variable whose home is not the device it is the handle that train.prefetch copies from;
    train.offload with the variable's name copies a new value back.

    - C1: the symbol names a train.variable of the result's shape and element type.
    - C2: the result is a handle exactly if the variable's home is not the device.

    ```mlir
    %w = train.read @conv1.weight : tensor<64x3x3x3xf32>
    %h = train.read @"conv1.weight/momentum" : !train.host<tensor<64x3x3x3xf32>>
    %m = train.prefetch %h : (!train.host<tensor<64x3x3x3xf32>>) -> tensor<64x3x3x3xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs AnyTypeOf<[Train_Tensor, Train_HostHandle]>:$result);
  let assemblyFormat = "$variable attr-dict `:` type($result)";
}

#endif
