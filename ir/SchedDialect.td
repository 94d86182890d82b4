// SPDX-License-Identifier: Apache-2.0
// The sched dialect: one step as an ordered program of a device with a compute stream and two copy streams. Types and enums; the ops lie
// in SchedOps.td.
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
    - *Memory.* A buffer is a range of bytes of one arena: the device's, the host's, or `spill`. Buffers of the latter, written by copies with
      the codec `zvc:pool=BYTES`, need a place only when the pool at the end of the host arena is full: a file, or the run stops. Freeing is not an op: a lifetime ends, and reuse of the bytes needs an
      ordering edge from the last access, copies included.
    - *Closed.* A program begins and ends with all streams joined: the first op of a copy stream waits for an event of the compute
      stream, and at the end the compute stream has waited for every copy. So steps may follow each other without a word.
    - *Next batch.* Copies from staging slots are part of the program, but issued by the runtime's data reader behind everything else.

    After schedule-streams buffers have sizes; after assign-slots also offsets and lifetimes, and the program its arena sizes.
  }];
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
    I32EnumAttrCase<"Spill", 2, "spill">]> {
  let cppNamespace = "::sluice::sched";
}
def Sched_Stream : I32EnumAttr<"Stream", "queue of work that runs in order", [
    I32EnumAttrCase<"Compute", 0, "compute">,
    I32EnumAttrCase<"ToHost", 1, "d2h">,
    I32EnumAttrCase<"ToDevice", 2, "h2d">,
    I32EnumAttrCase<"Codec", 3, "codec">]> {
  let cppNamespace = "::sluice::sched";
}

#endif
