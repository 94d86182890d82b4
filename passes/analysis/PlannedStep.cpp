// SPDX-License-Identifier: Apache-2.0
// V8 of verify-schedule, a translation validation:
//  1. runs and copies of the program are listed by kind, in issue order; group-launches keeps the order within a kind;
//  2. the ops of the function are followed in program order, each beside the next step of its kind: the step's calls,
//  types, scratch and region are compared with what the op asks for, its ins with the contents that the op's operands
//  became, its outs with where results may lie. A content is a buffer and how often it was written;
//  3. what the function returns, and the next batch, are where they are read after the step, and no step is left over.
// It asks ops what they are by their interfaces, and shares no helper with schedule-streams.
#include "passes/analysis/PlannedStep.h"

#include "passes/analysis/Replay.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::CopyOp;
using sched::ProgramOp;
using sched::RunOp;

namespace {

/// What a buffer holds after so many writes of this step, or a piece of it.
struct Content {
  Value buffer;
  int64_t version = 0;
  std::optional<int64_t> first = {}; ///< where the piece begins
  bool operator!=(const Content &other) const {
    return buffer != other.buffer || version != other.version || first != other.first;
  }
};

BufferOp slot(Value buffer) { return buffer.getDefiningOp<BufferOp>(); }
/// Steps of one kind keep their order from the function to the program.
class Queue {
public:
  void add(Operation *step) { steps.push_back(step); }
  Operation *next() { return taken < steps.size() ? steps[taken++] : nullptr; }
  Operation *leftOver() const { return taken < steps.size() ? steps[taken] : nullptr; }

private:
  SmallVector<Operation *> steps;
  size_t taken = 0;
};

/// What tells kinds of runs apart: kernel, half of the step, whether at home, and the classes and methods of its calls.
ArrayAttr kindOf(Builder b, StringRef kernel, bool backward, bool atHome, ArrayRef<sched::CallAttr> calls) {
  SmallVector<Attribute> kind{b.getStringAttr(kernel), b.getBoolAttr(backward), b.getBoolAttr(atHome)};
  for (sched::CallAttr call : calls)
    llvm::append_values(kind, Attribute(call.getKernel()), Attribute(call.getMethod()));
  return b.getArrayAttr(kind);
}

/// A program beside its function. `contents` says of each value of the function where it is in the program, as far as
/// it was followed, `writes` how often each buffer was written by then; both come from the function, versions in the
/// program are only compared with them.
class Correspondence {
public:
  Correspondence(ProgramOp program, func::FuncOp step) : program(program), step(step), b(program.getContext()) {}

  LogicalResult run();

private:
  void listSteps();
  LogicalResult follow(Operation *op);
  LogicalResult followMove(Operation *op, Queue &queue, const char *direction);
  LogicalResult followRun(train::HasKernel op);
  LogicalResult checkFacts(train::HasKernel op, RunOp run);
  LogicalResult checkReads(train::HasKernel op, RunOp run);
  LogicalResult checkWrites(train::HasKernel op, RunOp run);
  LogicalResult checkScratch(train::HasKernel op, RunOp run);
  LogicalResult checkResult(OpResult result, Operation *by, Content written, int64_t before);
  LogicalResult checkReturned(OpOperand &returned);
  LogicalResult checkNextBatch();
  LogicalResult checkLeftOver();
  Content variable(StringRef symbol);
  Content ofOperand(Value value) { return contents.lookup(value); }

  InFlightDiagnostic error(Operation *by) { return by->emitOpError() << "V8: " << describe(by) << " "; }
  std::string text(Content content) {
    if (!content.buffer)
      return "nothing";
    return "version " + std::to_string(content.version) + " of '" + slot(content.buffer).getName().str() + "'" +
           (content.first ? " at " + std::to_string(*content.first) : "");
  }

  ProgramOp program;
  func::FuncOp step;
  Builder b;
  llvm::MapVector<ArrayAttr, Queue> runs;
  Queue copiesOut, copiesIn;
  SmallVector<CopyOp> nextBatch;
  llvm::StringMap<Value> variables, inputs; ///< buffers by symbol, those of this step's batch by name
  llvm::DenseMap<Value, Content> contents;  ///< of the function's values
  llvm::DenseMap<Value, int64_t> writes;    ///< of buffers, by the steps that were followed
};

void Correspondence::listSteps() {
  for (Operation &op : program.ops()) {
    if (auto buffer = dyn_cast<BufferOp>(op)) {
      if (buffer.getVariable())
        variables[*buffer.getVariable()] = buffer.getBuffer();
      else if (buffer.getInput() && buffer.getBatch() && *buffer.getBatch() == 0)
        inputs[*buffer.getInput()] = buffer.getBuffer();
    } else if (auto run = dyn_cast<RunOp>(op)) {
      auto calls = llvm::to_vector(run.getCalls().getAsRange<sched::CallAttr>());
      runs[kindOf(b, run.getKernel(), run.getBackward(), run.getStream() == sched::Stream::Home, calls)].add(run);
    } else if (auto copy = dyn_cast<CopyOp>(op)) {
      if (slot(copy.getFrom()).getInput())
        nextBatch.push_back(copy);
      else
        (slot(copy.getFrom()).onDevice() ? copiesOut : copiesIn).add(copy);
    }
  }
}

Content Correspondence::variable(StringRef symbol) {
  Value buffer = variables.lookup(symbol);
  return {buffer, buffer ? writes.lookup(buffer) : 0};
}

/// A result lies where nothing was, or, where the op says so, on the bytes of an operand; `before` is the version
/// there.
LogicalResult Correspondence::checkResult(OpResult result, Operation *by, Content written, int64_t before) {
  if (written.version != before + 1)
    return error(by) << "leaves " << text(written) << ", but the planned step makes version " << before + 1;
  if (before != writes.lookup(written.buffer))
    return error(by) << "takes the bytes of '" << slot(written.buffer).getName() << "', which hold another value of "
                     << "the planned step";
  ++writes[written.buffer];
  contents[result] = written;
  return success();
}

/// Copies between the arenas.
LogicalResult Correspondence::followMove(Operation *op, Queue &queue, const char *direction) {
  auto copy = cast_or_null<CopyOp>(queue.next());
  if (!copy)
    return program.emitOpError() << "V8: has no copy " << direction << " for "
                                 << slot(ofOperand(op->getOperand(0)).buffer).getName();
  auto leaving = dyn_cast<train::OffloadOp>(op), out = leaving;
  if (!out) // from where an offload went, or from the variable's home
    out = cast<train::PrefetchOp>(op).getHandle().getDefiningOp<train::OffloadOp>();
  const Content read{copy.getFrom(), static_cast<int64_t>(copy.getFromVersion())}, meant = ofOperand(op->getOperand(0));
  if (read != meant)
    return error(copy) << "reads " << text(read) << ", but the planned step copies " << text(meant);
  BufferOp away = slot(leaving ? copy.getTo() : copy.getFrom());
  const StringRef arena = stringifySpace(away.getSpace()); // that of a pool is known by the codec, see C3 of sched.copy
  if (out && arena != out.getHome() && sched::poolBytes(out.getCodec()) == 0)
    return error(copy) << "goes to '" << away.getName() << "' of the " << arena << " arena, in the planned step to the "
                       << out.getHome() << " arena";
  const StringAttr codec = out ? out.getCodecAttr() : StringAttr();
  if (copy.getCodecAttr() != codec)
    return error(copy) << "has " << (copy.getCodec() ? "the codec " + copy.getCodec()->str() : "no codec")
                       << ", the planned step " << (codec ? codec.getValue() : "none");
  const Value to = copy.getTo();
  const bool stored = leaving && leaving.getVariable();
  if (stored && to != variables.lookup(*leaving.getVariable()))
    return error(copy) << "goes to '" << away.getName() << "', in the planned step to the variable '"
                       << *leaving.getVariable() << "'";
  return checkResult(op->getResult(0), copy, {to, static_cast<int64_t>(copy.getToVersion())},
                     stored ? writes.lookup(to) : 0);
}

/// The parts of a run that do not depend on buffers.
LogicalResult Correspondence::checkFacts(train::HasKernel op, RunOp run) {
  auto update = dyn_cast<train::UpdateOp>(*op);
  auto fused = dyn_cast<train::FusedOp>(*op);
  SmallVector<Attribute> calls;
  for (sched::CallAttr call : op.kernelCalls())
    calls.push_back(call);
  if (run.getCallsAttr() != b.getArrayAttr(calls))
    return error(run) << "makes the calls " << run.getCalls() << ", but the planned step " << b.getArrayAttr(calls);
  if (run.getRole() != train::roleOf(op))
    return error(run) << "has the role " << stringifyRole(run.getRole()) << ", but the planned step "
                      << stringifyRole(train::roleOf(op));
  if (run.getParameterAttr() != (update ? train::variableOf(update.getParameter()) : FlatSymbolRefAttr()) ||
      run.getIdsAttr() != op.ids())
    return error(run) << "says otherwise than the planned step which parameter it updates, or which of its ins are ids";
  if (run.isFused() != static_cast<bool>(fused))
    return error(run) << (fused ? "has no region" : "has a region, which the planned step has not");
  if (fused && (run.getChannelsAttr() != fused.getChannelsAttr() || run.getSumsAttr() != fused.getSumsAttr() ||
                !OperationEquivalence::isRegionEquivalentTo(&run.getBody(), &fused.getBody(),
                                                            OperationEquivalence::IgnoreLocations)))
    return error(run) << "has another region, or other channels and sums, than the planned step";
  return success();
}

/// Of a variable of which the op changes a piece it reads that piece.
LogicalResult Correspondence::checkReads(train::HasKernel op, RunOp run) {
  SmallVector<std::pair<Content, Type>> meant;
  for (Value operand : op->getOperands())
    meant.push_back({ofOperand(operand), train::heldTensor(operand.getType())});
  auto changes = dyn_cast<train::ChangesVariables>(*op);
  for (unsigned i = 0; changes && i < op->getNumResults(); ++i)
    if (const auto piece = changes.changedPiece(i)) {
      auto &[content, type] = meant[changes.changedOperand(i)];
      content.first = piece->first, type = piece->type;
    }
  if (op.accumulates() && !run.getOuts().empty()) // into what its result holds by now
    meant.push_back({{run.getOuts()[0], writes.lookup(run.getOuts()[0])}, op->getResult(0).getType()});
  if (run.getIns().size() != meant.size())
    return error(run) << "reads " << run.getIns().size() << " buffers, in the planned step " << meant.size();
  for (auto [i, wanted] : llvm::enumerate(meant)) {
    const Content read{run.getIns()[i], run.getInVersions()[i], run.inFirst(i)};
    if (read != wanted.first)
      return error(run) << "reads " << text(read) << " as operand " << i << ", but the planned step "
                        << text(wanted.first);
    if (run.inType(i) != wanted.second)
      return error(run) << "reads '" << slot(read.buffer).getName() << "' as " << run.inType(i)
                        << ", but the planned step as " << wanted.second;
  }
  return success();
}

LogicalResult Correspondence::checkWrites(train::HasKernel op, RunOp run) {
  auto changes = dyn_cast<train::ChangesVariables>(*op);
  if (run.getOuts().size() != op->getNumResults())
    return error(run) << "writes " << run.getOuts().size() << " buffers, in the planned step " << op->getNumResults();
  auto inPlace = train::attr::get<train::attr::InPlace>(op);
  for (auto [i, buffer, version] : llvm::enumerate(run.getOuts(), run.getOutVersions())) {
    const auto piece = changes ? changes.changedPiece(i) : std::optional<train::VariablePiece>();
    const Type type = piece ? Type(piece->type) : train::heldTensor(op->getResult(i).getType());
    if (run.outType(i) != type)
      return error(run) << "writes '" << slot(buffer).getName() << "' as " << run.outType(i)
                        << ", but the planned step as " << type;
    Content replaced;
    if (changes)
      replaced = ofOperand(op->getOperand(changes.changedOperand(i)));
    else if (inPlace && inPlace[i] >= 0)
      replaced = ofOperand(op->getOperand(inPlace[i]));
    else if (op.accumulates())
      replaced = {buffer, writes.lookup(buffer)};
    if (replaced.buffer && replaced.buffer != buffer)
      return error(run) << "writes '" << slot(buffer).getName() << "' instead of "
                        << "'" << slot(replaced.buffer).getName() << "', which the planned step changes";
    const std::optional<int64_t> written = run.outFirst(i), meant = piece ? piece->first : replaced.first;
    if (written != meant)
      return error(run) << "writes " << text({buffer, version, written}) << ", but the planned step writes "
                        << (meant ? "the piece at " + std::to_string(*meant) : "all of it");
    const Content left{buffer, version, replaced.first};
    if (failed(checkResult(op->getResult(i), run, left, replaced.buffer ? replaced.version : 0)))
      return failure();
  }
  return success();
}

LogicalResult Correspondence::checkScratch(train::HasKernel op, RunOp run) {
  auto cost = train::attr::get<train::attr::Cost>(op);
  const int64_t needed = cost ? cost.getWorkspace() : 0,
                given = run.getScratch() ? static_cast<int64_t>(slot(run.getScratch()).getBytes()) : 0;
  return needed == given
             ? success()
             : LogicalResult(error(run) << "has a scratch of " << given << " bytes, but its kernels need " << needed);
}

LogicalResult Correspondence::followRun(train::HasKernel op) {
  const bool atHome = llvm::any_of(op->getOperandTypes(), llvm::IsaPred<train::HostHandleType>);
  const bool backward = train::attr::has<train::attr::Backward>(op);
  Queue &queue = runs[kindOf(b, op->getName().stripDialect(), backward, atHome, op.kernelCalls())];
  auto run = cast_or_null<RunOp>(queue.next());
  if (!run)
    return op->emitOpError() << "V8: '" << train::nodeName(op->getLoc()) << "' of the planned step has no run in @"
                             << program.getSymName() << " with its kernel and calls";
  return success(succeeded(checkFacts(op, run)) && succeeded(checkReads(op, run)) && succeeded(checkWrites(op, run)) &&
                 succeeded(checkScratch(op, run)));
}

LogicalResult Correspondence::follow(Operation *op) {
  if (auto read = dyn_cast<train::ReadOp>(op)) {
    contents[read.getResult()] = variable(read.getVariable());
    return success();
  }
  if (auto view = dyn_cast<train::View>(op); view && view.sharesBytes()) {
    Content &content = contents[op->getResult(0)] = ofOperand(op->getOperand(0));
    if (const auto first = view.firstByte())
      content.first = content.first.value_or(0) + *first;
    return success();
  }
  if (isa<train::OffloadOp>(op))
    return followMove(op, copiesOut, "away");
  if (isa<train::PrefetchOp>(op))
    return followMove(op, copiesIn, "back");
  auto kernel = dyn_cast<train::HasKernel>(op);
  return kernel ? followRun(kernel) : success(); // train.await orders streams; V3 sees to that
}

/// What is read after the step is the newest content of the place that it is read at.
LogicalResult Correspondence::checkReturned(OpOperand &returned) {
  const Content content = ofOperand(returned.get());
  BufferOp buffer = content.buffer ? slot(content.buffer) : BufferOp();
  if (!buffer)
    return step.emitOpError() << "V8: returns a value that @" << program.getSymName() << " does not have";
  const bool isRead = (buffer.outlivesStep() || buffer.getKept()) && !content.first;
  if (!isRead || content.version != writes.lookup(content.buffer))
    return buffer.emitOpError() << "V8: holds " << text(content) << ", which the planned step returns, but "
                                << (isRead ? "it is overwritten" : "nothing reads that after the step");
  auto type = cast<RankedTensorType>(returned.get().getType());
  const auto number = static_cast<int64_t>(train::returnedValue(returned).number);
  if (buffer.getKept() ? *buffer.getType() != type || static_cast<int64_t>(*buffer.getKept()) != number
                       : buffer.getResult() && static_cast<int64_t>(*buffer.getResult()) != number)
    return buffer.emitOpError() << "V8: '" << buffer.getName() << "' is read after the step as something else than "
                                << "result " << returned.getOperandNumber() << " of the planned step";
  return success();
}

LogicalResult Correspondence::checkNextBatch() {
  llvm::StringSet<> arrived;
  for (CopyOp copy : nextBatch) {
    BufferOp from = slot(copy.getFrom()), to = slot(copy.getTo());
    if (from.getInput() != to.getInput() || !to.getBatch() || *to.getBatch() != 1 ||
        !arrived.insert(*from.getInput()).second)
      return error(copy) << "brings '" << *from.getInput() << "' of the next batch to '" << to.getName()
                         << "', or brings it twice";
  }
  for (auto &input : inputs)
    if (!arrived.contains(input.getKey()))
      return program.emitOpError() << "V8: brings no next batch of '" << input.getKey() << "'";
  return success();
}

LogicalResult Correspondence::checkLeftOver() {
  Operation *by = copiesOut.leftOver() ? copiesOut.leftOver() : copiesIn.leftOver();
  for (auto &[kind, queue] : runs)
    by = by ? by : queue.leftOver();
  return by ? LogicalResult(error(by) << "belongs to no op of the planned step") : success();
}

LogicalResult Correspondence::run() {
  listSteps();
  for (BlockArgument argument : step.getArguments()) {
    auto named = step.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "train.name");
    const std::string name = named ? named.str() : "input" + std::to_string(argument.getArgNumber());
    Value buffer = inputs.lookup(name);
    if (!buffer || slot(buffer).getType() != argument.getType())
      return program.emitOpError() << "V8: has no batch of '" << name << "' as " << argument.getType();
    contents[argument] = {buffer, 0};
  }
  for (Operation &op : step.getBody().front())
    if (failed(follow(&op)))
      return failure();
  for (OpOperand &returned : step.getBody().front().getTerminator()->getOpOperands())
    if (failed(checkReturned(returned)))
      return failure();
  return success(succeeded(checkNextBatch()) && succeeded(checkLeftOver()));
}

} // namespace

LogicalResult sluice::checkAgainstStep(const SymbolTable &symbols, ProgramOp program) {
  if (!program.getPlanned())
    return success();
  auto step = symbols.lookup<func::FuncOp>(*program.getPlanned()); // V8
  if (!step || step.isExternal())
    return program.emitOpError() << "V8: names @" << *program.getPlanned() << " as what was planned, which is no "
                                 << "function of the module";
  return Correspondence(program, step).run();
}
