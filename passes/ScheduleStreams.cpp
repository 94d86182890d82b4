// SPDX-License-Identifier: Apache-2.0
// schedule-streams, for each train function:
//  1. the buffers, see ScheduledBuffers.h;
//  2. the ops in program order: kernels on compute, offloads and prefetches on the streams that their arena has for
//  them, each with the waits that it needs; packing and unpacking on codec, what all ranks compute together on comm,
//  and updates at home on home, likewise;
//  3. the copies of the next batch, after the other copies from host memory, where they delay nothing;
//  4. compute waits for every copy, so that a program ends with all streams joined;
//  5. the function stays under another name, for verify-schedule to compare with.
// A wait is left out when a chain of earlier waits implies it; a record that nobody waits for is erased.
// SSA says what depends on what; streams run beside one another unless an event orders them. Here are all the places
// that order them, so that everything after this pass goes by the text of the program.
#include "passes/Passes.h"
#include "passes/ScheduledBuffers.h"
#include "passes/analysis/StreamClocks.h"
#include "runtime/CodecTable.h"

#include "mlir/IR/IRMapping.h"

namespace sluice {
#define GEN_PASS_DEF_SCHEDULESTREAMS
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::CopyOp;
using sched::RecordOp;
using sched::RunOp;
using sched::Stream;
using sched::WaitOp;
using Recorded = StreamClocks::Recorded;

namespace {

/// One function, op by op. What runs beside compute is remembered by storage until compute has waited for it: who reads
/// a storage waits for what fills it, who writes it also for what still reads it.
class Scheduler {
public:
  Scheduler(func::FuncOp function, sched::ProgramOp program)
      : function(function), program(program), storages(function),
        b(OpBuilder::atBlockEnd(&program.getBody().emplaceBlock())), clocks(b), buffers(b, function, storages) {}

  LogicalResult run();

private:
  void copyNextBatch();
  LogicalResult schedule(Operation *op);
  void offload(train::OffloadOp op);
  void prefetch(train::PrefetchOp op);
  void encode(train::EncodeOp op);
  void decode(train::DecodeOp op);
  void together(Operation *op);
  void atHome(train::UpdateOp op);
  void waitForAll(Location loc, Stream stream, ArrayRef<int> touched,
                  ArrayRef<llvm::DenseMap<int, Recorded> *> pending);
  void kernel(Operation *op);
  LogicalResult checkContent(Operation *op);

  Recorded copy(Location loc, Stream stream, Value from, Value to, train::OffloadOp packing, int64_t fromVersion,
                int64_t toVersion);
  void run(Operation *op, Stream stream);
  void copyFacts(Operation *op, RunOp run);

  func::FuncOp function;
  sched::ProgramOp program;
  Storages storages;
  OpBuilder b;
  StreamClocks clocks;
  Recorded begin;                  ///< before the first kernel
  std::optional<Recorded> checked; ///< after the check of a scaled loss's gradients
  const ScheduledBuffers buffers;
  llvm::DenseMap<int, Recorded> copiedIn, copyingOut;           ///< by storage, by ranks together as well
  llvm::DenseMap<int, Recorded> packed;                         ///< host or packed storage -> what fills it
  llvm::DenseMap<int, Recorded> fetched;                        ///< storage of a variable -> what read it there last
  llvm::DenseMap<int, std::pair<int64_t, Operation *>> content; ///< storage -> how often it was written, by whom last
  llvm::DenseMap<Value, int64_t> contentOf;                     ///< value -> writes of its storage when it was made
  SmallVector<int64_t> readVersions;                            ///< of what the op at hand reads, see sched.run
};

/// `packing`: what sends the tensor away, with its codec; null for an input.
Recorded Scheduler::copy(Location loc, Stream stream, Value from, Value to, train::OffloadOp packing,
                         int64_t fromVersion, int64_t toVersion) {
  const StringAttr codec = packing ? packing.getCodecAttr() : StringAttr();
  CopyOp::create(b, loc, stream, from, to, codec, codec ? TypeAttr::get(packing.getX().getType()) : TypeAttr(),
                 fromVersion, toVersion);
  clocks.issued(stream);
  return clocks.record(loc, stream, to.getDefiningOp<BufferOp>().getName() + "_copied");
}

void Scheduler::copyNextBatch() {
  const Stream stream = sched::streamFrom(sched::Space::Host);
  for (auto [staging, slot] : buffers.nextBatch()) {
    clocks.wait(slot.getLoc(), stream, begin); // the step before this one has read the slot
    copy(slot.getLoc(), stream, staging, slot, {}, 0, 1);
  }
}

/// The copy may begin when compute has written the tensor, and, where it came back before, when that copy has arrived.
void Scheduler::offload(train::OffloadOp op) {
  int source = storages.of(op.getX()), target = storages.of(op.getHandle());
  Location loc = originOf(storages[source], op.getLoc());
  const Stream stream = sched::streamTo(spaceOf(op));
  clocks.waitForCompute(loc, stream, storages[source].name + "_ready");
  if (copiedIn.contains(source))
    clocks.wait(loc, stream, copiedIn[source]);
  copyingOut[source] = packed[target] =
      copy(loc, stream, buffers.of(source), buffers.of(target), op, readVersions[0], content.lookup(target).first);
}

/// The bytes that it writes are free once compute has reached this place, where an await may stand for who had them.
/// The content is there once its own copy out has ended, on another stream.
void Scheduler::prefetch(train::PrefetchOp op) {
  int source = storages.of(op.getHandle()), target = storages.of(op.getX());
  Location loc = originOf(storages[source], op.getLoc());
  auto packing = op.getHandle().getDefiningOp<train::OffloadOp>(); // of a variable none has to be
  const Stream stream = sched::streamFrom(packing ? spaceOf(packing) : sched::spaceOf(storages[source].arena));
  clocks.waitForCompute(loc, stream, storages[target].name + "_free");
  if (packed.contains(source)) // by a new value of the variable, too
    clocks.wait(loc, stream, packed[source]);
  copiedIn[target] = fetched[source] =
      copy(loc, stream, buffers.of(source), buffers.of(target), packing, readVersions[0], content.lookup(target).first);
}

/// As offload and prefetch, with device memory and the codec stream.
void Scheduler::encode(train::EncodeOp op) {
  int source = storages.of(op.getX()), target = storages.of(op.getPacked());
  Location loc = originOf(storages[source], op.getLoc());
  clocks.waitForCompute(loc, Stream::Codec, storages[source].name + "_ready");
  if (copiedIn.contains(source))
    clocks.wait(loc, Stream::Codec, copiedIn[source]);
  run(op, Stream::Codec);
  copyingOut[source] = packed[target] = clocks.record(loc, Stream::Codec, storages[target].name + "_ready");
}

/// The codec stream waits for the bytes that it writes and for the form that it reads; compute then waits for it at the
/// tensor's next reader.
void Scheduler::decode(train::DecodeOp op) {
  int source = storages.of(op.getPacked()), target = storages.of(op.getX());
  Location loc = originOf(storages[source], op.getLoc());
  clocks.waitForCompute(loc, Stream::Codec, storages[target].name + "_free");
  clocks.wait(loc, Stream::Codec, packed[source]);
  run(op, Stream::Codec);
  copiedIn[target] = clocks.record(loc, Stream::Codec, storages[target].name + "_ready");
}

/// For what each of `pending` knows of these storages.
void Scheduler::waitForAll(Location loc, Stream stream, ArrayRef<int> touched,
                           ArrayRef<llvm::DenseMap<int, Recorded> *> pending) {
  for (int storage : touched)
    for (const auto *list : pending)
      if (auto found = list->find(storage); found != list->end())
        clocks.wait(loc, stream, found->second);
}

/// After all that compute and copies have done to what it touches; compute then waits for it where it touches that
/// next.
void Scheduler::together(Operation *op) {
  const SmallVector<int> reads = storages.reads(op), writes = storages.writes(op);
  const Location loc = op->getLoc();
  clocks.waitForCompute(loc, Stream::Communication, storages[writes.front()].name + "_ready");
  for (const SmallVector<int> &touched : {reads, writes})
    waitForAll(loc, Stream::Communication, touched, {&copiedIn, &copyingOut});
  run(op, Stream::Communication);
  const Recorded done = clocks.record(loc, Stream::Communication, storages[writes.front()].name + "_done");
  for (int storage : reads)
    copyingOut[storage] = done;
  for (int storage : writes)
    copiedIn[storage] = done;
}

/// After the gradient's copy, those who fetch the parameter before it changes, and the check of a scaled loss, which
/// says whether it does. What fetches it later waits for the update.
void Scheduler::atHome(train::UpdateOp op) {
  const SmallVector<int> writes = storages.writes(op);
  const Location loc = op.getLoc();
  if (checked)
    clocks.wait(loc, Stream::Home, *checked);
  waitForAll(loc, Stream::Home, storages.reads(op), {&packed, &fetched});
  run(op, Stream::Home);
  const Recorded done = clocks.record(loc, Stream::Home, storages[writes.front()].name + "_updated");
  for (int storage : writes)
    packed[storage] = done;
}

/// Copies that it needs are waited for once: from then on compute is ordered after them.
void Scheduler::kernel(Operation *op) {
  auto waitFor = [&](llvm::DenseMap<int, Recorded> &pending, int storage) {
    auto found = pending.find(storage);
    if (found == pending.end())
      return;
    clocks.wait(op->getLoc(), Stream::Compute, found->second);
    pending.erase(found);
  };
  SmallVector<int> reads = storages.reads(op), writes = storages.writes(op);
  for (int storage : reads)
    waitFor(copiedIn, storage);
  for (int storage : writes) {
    waitFor(copiedIn, storage);
    waitFor(copyingOut, storage);
  }
  run(op, Stream::Compute);
  if (isa<train::CheckGradientsOp>(op))
    checked = clocks.record(op->getLoc(), Stream::Compute, "checked");
}

/// Appends the sched.run. Versions are those of checkContent, which has counted this op's writes already.
void Scheduler::run(Operation *op, Stream stream) {
  auto kernel = cast<train::HasKernel>(op);
  const ScheduledBuffers::Operands ins = buffers.insOf(op), outs = buffers.outsOf(op);
  auto calls = kernel.kernelCalls();
  auto run = RunOp::create(b, op->getLoc(), stream, op->getName().stripDialect(), ins.buffers, outs.buffers,
                           buffers.scratchOf(op), b.getArrayAttr(ins.types), b.getArrayAttr(outs.types),
                           sched::firstsOf(b.getContext(), ins.firsts), sched::firstsOf(b.getContext(), outs.firsts),
                           readVersions,
                           llvm::map_to_vector(storages.writes(op), [&](int s) { return content.lookup(s).first; }),
                           b.getArrayAttr(SmallVector<Attribute>(calls.begin(), calls.end())), {}, {}, {}, {},
                           kernel.objectSuffix(), {}, {}, {}, {});
  copyFacts(op, run);
  clocks.issued(stream);
}

/// What the program says of an op besides its kernel's calls.
void Scheduler::copyFacts(Operation *op, RunOp run) {
  run.setBackward(train::attr::has<train::attr::Backward>(op));
  auto kernel = cast<train::HasKernel>(op);
  run.setRole(train::roleOf(kernel));
  run.setIdsAttr(kernel.ids());
  run.setGathers(kernel.gathers());
  if (auto update = dyn_cast<train::UpdateOp>(op))
    run.setParameterAttr(train::variableOf(update.getParameter()));
  if (auto fused = dyn_cast<train::FusedOp>(op)) {
    run.setChannelsAttr(fused.getChannelsAttr());
    run.setSumsAttr(fused.getSumsAttr());
    run.setRuleAttr(train::attr::get<train::attr::Rule>(fused));
    IRMapping mapping;
    fused.getBody().cloneInto(&run.getBody(), mapping);
  }
}

/// In-place ops and updates overwrite bytes; whoever reads an older value of those bytes was ordered wrongly by an
/// earlier pass.
LogicalResult Scheduler::checkContent(Operation *op) {
  for (Value operand : op->getOperands()) {
    int storage = storages.of(operand);
    auto [version, writer] = content.lookup(storage);
    if (contentOf.lookup(operand) == version)
      continue;
    auto diagnostic = op->emitError() << "'" << train::nodeName(op->getLoc()) << "' reads '" << storages[storage].name
                                      << "' after its bytes were overwritten";
    diagnostic.attachNote(writer->getLoc()) << "overwritten by '" << train::nodeName(writer->getLoc()) << "'";
    return diagnostic;
  }
  readVersions = llvm::map_to_vector(storages.reads(op), [&](int s) { return content.lookup(s).first; });
  if (!isFree(op))
    for (int storage : storages.writes(op)) {
      auto &entry = content[storage];
      entry = {entry.first + 1, op};
    }
  for (Value result : op->getResults())
    contentOf[result] = content.lookup(storages.of(result)).first;
  return success();
}

/// A mask is read directly and made on compute, like any kernel; other packed forms have a stream of their own.
LogicalResult Scheduler::schedule(Operation *op) {
  if (failed(checkContent(op)))
    return failure();
  if (isFree(op))
    return success();
  if (auto out = dyn_cast<train::OffloadOp>(op)) {
    offload(out);
  } else if (auto await = dyn_cast<train::AwaitOp>(op)) {
    clocks.wait(op->getLoc(), Stream::Compute, packed[storages.of(await.getHandle())]);
  } else if (auto in = dyn_cast<train::PrefetchOp>(op)) {
    prefetch(in);
  } else if (auto pack = dyn_cast<train::EncodeOp>(op); pack && !findCodec(pack.getCodec())->readDirectly) {
    encode(pack);
  } else if (auto unpack = dyn_cast<train::DecodeOp>(op)) {
    decode(unpack);
  } else if (auto update = dyn_cast<train::UpdateOp>(op); update && update.isAtHome()) {
    atHome(update);
  } else if (auto run = dyn_cast<train::HasKernel>(op); run && sched::factsOf(run.role()).together) {
    together(op);
  } else if (isa<train::HasKernel>(op)) {
    kernel(op);
  } else {
    return op->emitOpError() << "has no kernel; run sluice-fuse first";
  }
  return success();
}

// The batch comes after all other copies of its stream, so that none of them waits for it.
LogicalResult Scheduler::run() {
  begin = clocks.record(function.getLoc(), Stream::Compute, "begin");
  for (Operation &op : function.getOps())
    if (failed(schedule(&op)))
      return failure();
  copyNextBatch();
  std::array<RecordOp, streamCount> last;
  program.walk([&](RecordOp op) { last[static_cast<int>(op.getStream())] = op; });
  for (RecordOp op : ArrayRef(last).drop_front()) // compute's
    if (op)
      clocks.wait(function.getLoc(), Stream::Compute, clocks.now(op));
  for (auto record : llvm::make_early_inc_range(program.getBody().getOps<RecordOp>()))
    if (record.getEvent().use_empty())
      record.erase();
  return success();
}

/// Gives the function's name to its program; step 5.
void keepAsPlanned(func::FuncOp function, sched::ProgramOp program, const SymbolTable &symbols) {
  std::string name = function.getSymName().str() + ".planned";
  while (symbols.lookup(name)) // a model may call a tensor anything
    name += "_";
  for (NamedAttribute attribute : llvm::to_vector(function->getDiscardableAttrs())) {
    program->setDiscardableAttr(attribute.getName(), attribute.getValue());
    function->removeDiscardableAttr(attribute.getName());
  }
  function.setSymName(name);
  function.setPrivate();
  function->moveAfter(program);
  program.setPlanned(name);
}

struct ScheduleStreams : sluice::impl::ScheduleStreamsBase<ScheduleStreams> {
  void runOnOperation() override {
    OpBuilder b = OpBuilder::atBlockEnd(getOperation().getBody());
    const SymbolTable symbols(getOperation());
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (failed(checkTensors(function)))
        return signalPassFailure();
      b.setInsertionPoint(function);
      auto program = sched::ProgramOp::create(b, function.getLoc(), function.getSymName(), DenseI64ArrayAttr(),
                                              IntegerAttr(), IntegerAttr(), FlatSymbolRefAttr());
      if (failed(Scheduler(function, program).run()))
        return signalPassFailure();
      program.walk([&](WaitOp) { ++waits; });
      keepAsPlanned(function, program, symbols);
    }
  }
};

} // namespace
