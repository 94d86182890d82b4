// SPDX-License-Identifier: Apache-2.0
// The sched dialect: one step as an ordered program of a device with streams of kernels and copies. Types and enums; the ops lie in SchedOps.td.
#ifndef SLUICE_IR_SCHED_DIALECT
#define SLUICE_IR_SCHED_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def SchedDialect : Dialect {
  let name = "sched";
  let cppNamespace = "::sluice::sched";
  let summary = "a training step as kernels, copies and events on buffers of fixed arenas";
  let description = [{
    ```
      train function  --schedule-streams-->  sched.program on buffers without places
                      --assign-slots-->      every buffer at an offset, arenas with sizes
                      --verify-schedule-->   the same, proved free of races   --codegen-->  C++
    ```
    - *Issue order.* The ops of a program are issued one after the other; each is put on its stream and the next is issued at once.
      Ops of one stream run in that order. Between streams only events order anything.
    - *Steps.* Kernels and copies are numbered from 1 in issue order; lifetimes are given in these numbers.
    - *Memory.* A buffer is a range of bytes of one arena: the device's, or one that copies reach. Buffers of `spill`, written by copies with the
      codec `zvc:pool=BYTES`, need a place only when the pool at the end of the host arena is full: a file, or the run stops. Freeing is not an op: a lifetime ends, and reuse of the bytes needs an
      ordering edge from the last access, copies included.
    - *Closed.* A program begins and ends with all streams joined: the first op of a copy stream waits for an event of the compute
      stream, and at the end the compute stream has waited for every copy. So steps may follow each other without further synchronization.
    - *Next batch.* Copies from staging slots are part of the program, but issued by the runtime's data reader after everything else.

    After schedule-streams buffers have sizes, and those that the plan placed their offsets; after assign-slots all have offsets and lifetimes, and
    the program its arena sizes.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

def Sched_Buffer : TypeDef<SchedDialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "a range of bytes in an arena, made by sched.buffer";
}
def Sched_Event : TypeDef<SchedDialect, "Event"> {
  let mnemonic = "event";
  let summary = "a point in the work of one stream, made by sched.record";
}

def Sched_Space : I32EnumAttr<"Space", "arena", [
    I32EnumAttrCase<"Device", 0, "device">,
    I32EnumAttrCase<"Host", 1, "host">,
    I32EnumAttrCase<"Spill", 2, "spill">,
    I32EnumAttrCase<"Storage", 3, "storage">]> {
  let cppNamespace = "::sluice::sched";
}
def Sched_Stream : I32EnumAttr<"Stream", "queue of work that runs in order", [
    I32EnumAttrCase<"Compute", 0, "compute">,
    I32EnumAttrCase<"ToHost", 1, "d2h">,
    I32EnumAttrCase<"ToDevice", 2, "h2d">,
    I32EnumAttrCase<"Codec", 3, "codec">,
    I32EnumAttrCase<"Storage", 4, "storage">,
    I32EnumAttrCase<"Communication", 5, "comm">,
    I32EnumAttrCase<"Home", 6, "home">]> {
  let cppNamespace = "::sluice::sched";
}

def Sched_Role : I32EnumAttr<"Role", "what an op of a step is there for, see runtime/OpRoleTable.h", [
    I32EnumAttrCase<"Compute", 0, "compute">,
    I32EnumAttrCase<"Loss", 1, "loss">,
    I32EnumAttrCase<"Update", 2, "update">,
    I32EnumAttrCase<"Rerun", 3, "rerun">,
    I32EnumAttrCase<"Rebuild", 4, "rebuild">,
    I32EnumAttrCase<"Encode", 5, "encode">,
    I32EnumAttrCase<"Decode", 6, "decode">,
    I32EnumAttrCase<"Check", 7, "check">,
    I32EnumAttrCase<"Reduce", 8, "reduce">,
    I32EnumAttrCase<"Gather", 9, "gather">]> {
  let cppNamespace = "::sluice::sched";
}

def Sched_OperandKind : I32EnumAttr<"OperandKind", "what an operand of a call is", [
    I32EnumAttrCase<"In", 0, "in">,
    I32EnumAttrCase<"Out", 1, "out">,
    I32EnumAttrCase<"Scratch", 2, "scratch">,
    I32EnumAttrCase<"None", 3, "none">,
    I32EnumAttrCase<"Parameter", 4, "parameter">]> {
  let cppNamespace = "::sluice::sched";
  let genSpecializedAttr = 0;
}
class Sched_Attr<string name, string attrMnemonic> : AttrDef<SchedDialect, name> { let mnemonic = attrMnemonic; }

def Sched_OperandAttr : Sched_Attr<"Operand", "operand"> {
  let summary = "an operand of a call: one of the run's ins or outs by number, its scratch, none where the op leaves an operand out, or the number of the run's parameter";
  let parameters = (ins EnumParameter<Sched_OperandKind>:$kind, OptionalParameter<"::std::optional<int64_t>">:$index);
  let assemblyFormat = "`<` $kind ($index^)? `>`";
  let genVerifyDecl = 1;
}
def Sched_IdsAttr : Sched_Attr<"Ids", "ids"> {
  let summary = "the in of a run whose integers name rows, elements or classes: they lie in [0, limit), or are `ignored`";
  let parameters = (ins "int64_t":$in, "int64_t":$limit, OptionalParameter<"::std::optional<int64_t>">:$ignored);
  let assemblyFormat = "`<` `in` $in `below` $limit (`or` $ignored^)? `>`";
  let genVerifyDecl = 1;
}
def Sched_WindowAttr : Sched_Attr<"Window", "window"> {
  let summary = "a window of convolution or pooling over two or three dimensions: kernel, strides, pads (top, left, bottom, right), dilations";
  let parameters = (ins "::mlir::DenseI64ArrayAttr":$kernel, "::mlir::DenseI64ArrayAttr":$strides, "::mlir::DenseI64ArrayAttr":$pads,
      "::mlir::DenseI64ArrayAttr":$dilations);
  let assemblyFormat = "`<` $kernel `,` $strides `,` $pads `,` $dilations `>`";
  let genVerifyDecl = 1;
}
def Sched_EnumeratorAttr : Sched_Attr<"Enumerator", "enumerator"> {
  let summary = "an enumerator of the runtime, by the name of its type and its own";
  let parameters = (ins "::mlir::StringAttr":$type, "::mlir::StringAttr":$name);
  let assemblyFormat = "`<` $type `,` $name `>`";
}
def Sched_CodecAttr : Sched_Attr<"Codec", "codec"> {
  let summary = "a codec of floats as in plans, `zfp:12` or `mask+zfp:12`";
  let parameters = (ins "::mlir::StringAttr":$name);
  let assemblyFormat = "`<` $name `>`";
  let genVerifyDecl = 1;
}
def Sched_CallAttr : Sched_Attr<"Call", "call"> {
  let summary = "a call of a kernel object of the runtime, or of one of its functions";
  let description = [{
    `kernel` is the class of the object, `arguments` what its constructor takes after the node's name, `method` the method and `operands` what it
    takes after the stream. Without a class `method` is a function, which takes stream, operands, arguments and the node. Arguments are numbers and
    truth values, `array<i64>` for shapes and permutations, #sched.operand for a tensor with its layout and type, a list of those, #sched.window, #sched.enumerator,
    #sched.codec and #train.algorithm; options that are not the constructor's defaults come last, by name.

    ```mlir
    #sched.call<"MaxPool", [array<i64: 8, 4, 4, 4>, array<i64: 8, 4, 2, 2>, #sched.window<[2, 2], [2, 2], [0, 0, 0, 0], [1, 1]>], "forward",
        <in 0>, <out 0>, <out 1>, <scratch>>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$kernel, "::mlir::ArrayAttr":$arguments, "::mlir::StringAttr":$method,
      OptionalArrayRefParameter<"::sluice::sched::OperandAttr">:$operands);
  let assemblyFormat = "`<` $kernel `,` $arguments `,` $method (`,` $operands^)? `>`";
  let extraClassDeclaration = "bool usesScratch();";
  let genVerifyDecl = 1;
}

#endif
