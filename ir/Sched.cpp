// SPDX-License-Identifier: Apache-2.0
// Registration, printing and verification of the sched dialect. The constraints are numbered in SchedOps.td.
#include "ir/KernelCall.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sluice::sched;

#include "ir/SchedDialect.cpp.inc"
#include "ir/SchedEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/SchedAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/SchedTypes.cpp.inc"

void SchedDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/SchedAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/SchedTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/SchedOps.cpp.inc"
      >();
}

/// (%x : tensor<4xf32>, %y : tensor<4xf32>)
static ParseResult parseTypedBuffers(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &buffers,
                                     ArrayAttr &types) {
  SmallVector<Attribute> parsed;
  auto one = [&]() -> ParseResult {
    Type type;
    if (parser.parseOperand(buffers.emplace_back()) || parser.parseColonType(type))
      return failure();
    parsed.push_back(TypeAttr::get(type));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one))
    return failure();
  types = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

static void printTypedBuffers(OpAsmPrinter &printer, Operation *, OperandRange buffers, ArrayAttr types) {
  printer << "(";
  llvm::interleaveComma(llvm::zip(buffers, types), printer, [&](auto pair) {
    printer << std::get<0>(pair) << " : " << cast<TypeAttr>(std::get<1>(pair)).getValue();
  });
  printer << ")";
}

/// device(4096) host(256): by the names of the arenas, in their order. Where only one of these two is given, the other
/// is -1.
static ParseResult parseArenaSizes(OpAsmParser &parser, DenseI64ArrayAttr &sizes) {
  SmallVector<int64_t> all(sluice::arenaCount, 0);
  bool given[sluice::arenaCount] = {};
  for (const sluice::ArenaFacts &facts : sluice::arenaTable)
    if (const int i = indexOf(facts.space); succeeded(parser.parseOptionalKeyword(facts.name))) {
      if (parser.parseLParen() || parser.parseInteger(all[i]) || parser.parseRParen())
        return failure();
      given[i] = true;
    }
  if (llvm::is_contained(given, true)) {
    for (const sluice::Space space : {sluice::Space::Device, sluice::Space::Host})
      all[indexOf(space)] = given[indexOf(space)] ? all[indexOf(space)] : -1;
    sizes = parser.getBuilder().getDenseI64ArrayAttr(all);
  }
  return success();
}

static void printArenaSizes(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr sizes) {
  for (auto [facts, size] : llvm::zip(sluice::arenaTable, sizes ? sizes.asArrayRef() : ArrayRef<int64_t>()))
    if (size > 0 || facts.space <= sluice::Space::Host)
      printer << " " << facts.name << "(" << size << ")";
}

#define GET_OP_CLASSES
#include "ir/SchedOps.cpp.inc"

LogicalResult ProgramOp::verify() {
  if (!getArenas() && !getBase() && !getPool())
    return success();
  if (!getArenas() || getArenas()->size() != arenaCount || !getBase() || llvm::is_contained(*getArenas(), -1)) // C1
    return emitOpError("gives device, host and base together or none of them");
  const int64_t device = bytesOf(Space::Device), host = bytesOf(Space::Host), spill = bytesOf(Space::Spill),
                base = *getBase(), pool = getPool().value_or(0);
  if (getPool() ? pool <= 0 || spill <= 0 || pool > host : spill > 0) // C2
    return emitOpError("needs a pool within the host arena and a spill arena, or neither");
  if (base < 0 || base > device || llvm::any_of(*getArenas(), [](int64_t size) { return size < 0; }))
    return emitOpError() << "has a base of " << base << " bytes in a device arena of " << device << ", host arena "
                         << host;
  return success();
}

static int64_t bytesOf(RankedTensorType tensor) { return sluice::tensorOf(tensor).bytes(); }

static BufferOp definition(Value buffer) { return buffer.getDefiningOp<BufferOp>(); }

void BufferOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getBuffer(), getName()); }
void RecordOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getEvent(), getName()); }

Persistent BufferOp::persistent() {
  if (getVariable())
    return {Persistent::Kind::Variable, *getVariable(), 0};
  if (getResult())
    return {Persistent::Kind::Result, "", static_cast<int64_t>(*getResult())};
  if (!getInput())
    return {};
  return onDevice() ? Persistent{Persistent::Kind::Batch, *getInput(), static_cast<int64_t>(*getBatch())}
                    : Persistent{Persistent::Kind::Staging, *getInput(), 0};
}

LogicalResult BufferOp::verify() {
  if (static_cast<int64_t>(getBytes()) <= 0) // C1
    return emitOpError() << "'" << getName() << "' has " << getBytes() << " bytes";
  const bool mayOutlive = getSpace() <= Space::Host;
  if (getVariable().has_value() + getInput().has_value() + getResult().has_value() > mayOutlive) // C2
    return emitOpError() << "'" << getName() << "' "
                         << (mayOutlive ? std::string("is of several kinds")
                                        : "outlives the step in the " + stringifySpace(getSpace()).str() + " arena");
  bool batch = getBatch().has_value(), wanted = getInput() && onDevice();
  if (batch != wanted || (batch && *getBatch() > 1))
    return emitOpError() << "'" << getName() << "' "
                         << (wanted ? "is an input on the device and needs batch 0 or 1"
                                    : "has a batch but is no input on the device");
  if (getFirst().has_value() && (outlivesStep() || *getFirst() < 1 || *getFirst() > *getLast())) // C3
    return emitOpError() << "'" << getName() << "' cannot live in steps " << *getFirst() << " to " << *getLast();
  if (getOffset() && static_cast<int64_t>(*getOffset()) < 0) // C4
    return emitOpError() << "'" << getName() << "' has the negative offset " << static_cast<int64_t>(*getOffset());
  if ((getVariable() || getResult() || getKept()) && !onDevice()) // C5
    return emitOpError() << "'" << getName() << "' belongs on the device";
  if (getType()) { // C6
    auto tensor = dyn_cast<RankedTensorType>(*getType());
    if (!tensor || !sluice::train::isAddressable(tensor) || (!getInput() && !getKept()))
      return emitOpError() << "'" << getName() << "' has the type " << *getType()
                           << ", but only inputs and what is kept have one, a static tensor";
    int64_t needed = bytesOf(tensor);
    if (needed != static_cast<int64_t>(getBytes()))
      return emitOpError() << "'" << getName() << "' is a " << tensor << " of " << needed << " bytes, but it has "
                           << getBytes();
  }
  if (getKept() && (outlivesStep() || !getType())) // C7
    return emitOpError() << "'" << getName() << "' is kept, but "
                         << (outlivesStep() ? "outlives the step anyway" : "has no type");
  return success();
}

static LogicalResult checkOperands(RunOp op, StringRef list, OperandRange buffers, ArrayAttr types) {
  if (buffers.size() != types.size()) // C1
    return op.emitOpError() << "'" << op.getKernel() << "' has " << buffers.size() << " " << list << " and "
                            << types.size() << " types";
  for (auto [buffer, type] : llvm::zip(buffers, types)) {
    BufferOp slot = definition(buffer);
    auto tensor = dyn_cast<RankedTensorType>(cast<TypeAttr>(type).getValue());
    if (!slot || !tensor || !sluice::train::isAddressable(tensor))
      return op.emitOpError() << "'" << op.getKernel() << "' takes buffers as static tensors, not " << type;
    int64_t needed = bytesOf(tensor);
    const bool begins = list == "ins" && tensor.getElementType().isInteger(1);
    if (needed != static_cast<int64_t>(slot.getBytes()) &&
        !(begins && needed < static_cast<int64_t>(slot.getBytes()))) // C2
      return op.emitOpError() << "'" << op.getKernel() << "' uses '" << slot.getName() << "' as " << tensor << " of "
                              << needed << " bytes, but it has " << slot.getBytes();
    if (!slot.onDevice()) // C3
      return op.emitOpError() << "'" << op.getKernel() << "' works on '" << slot.getName()
                              << "', which is in host memory";
  }
  return success();
}

/// The operand names one of the run's tensors, or none.
static bool isThere(RunOp op, OperandAttr operand) {
  const bool in = operand.getKind() == OperandKind::In, isNumbered = in || operand.getKind() == OperandKind::Out;
  const size_t there = in ? op.getIns().size() : op.getOuts().size();
  return !isNumbered || static_cast<size_t>(*operand.getIndex()) < there;
}

/// C8: a constructor's arguments name tensors as well.
static LogicalResult checkCalls(RunOp op) {
  bool scratchIsTaken = !op.getScratch() || op.isFused();
  for (auto call : op.getCalls().getAsRange<CallAttr>()) {
    scratchIsTaken |= call.usesScratch();
    SmallVector<Attribute> named(call.getOperands().begin(), call.getOperands().end());
    for (Attribute argument : call.getArguments())
      if (auto list = dyn_cast<ArrayAttr>(argument))
        llvm::append_range(named, list);
      else
        named.push_back(argument);
    for (Attribute attribute : named)
      if (auto operand = dyn_cast<OperandAttr>(attribute); operand && !isThere(op, operand))
        return op.emitOpError() << "'" << op.getKernel() << "' calls " << call.getMethod() << " with " << operand
                                << " of " << op.getIns().size() << " ins and " << op.getOuts().size() << " outs";
  }
  if (!scratchIsTaken)
    return op.emitOpError() << "'" << op.getKernel() << "' has a scratch that none of its calls takes";
  return success();
}

/// C7
static LogicalResult checkRegion(RunOp op) {
  if (op.isFused() != op.getChannels().has_value() || op.isFused() != op.getSums().has_value() ||
      op.isFused() != op.getCalls().empty())
    return op.emitOpError() << "'" << op.getKernel() << "' needs calls, or a region with channels and sums";
  if (!op.isFused())
    return success();
  for (int64_t channel : op.getChannelsAttr().asArrayRef())
    if (channel < 0 || channel >= static_cast<int64_t>(op.getIns().size()))
      return op.emitOpError() << "'" << op.getKernel() << "' has " << op.getIns().size() << " ins, and channel "
                              << channel;
  if (*op.getSums() > op.getOuts().size())
    return op.emitOpError() << "'" << op.getKernel() << "' has " << op.getOuts().size() << " outs, and "
                            << *op.getSums() << " sums";
  return success();
}

bool CallAttr::usesScratch() {
  return llvm::any_of(getOperands(), [](OperandAttr slot) { return slot.getKind() == OperandKind::Scratch; });
}

LogicalResult CallAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr kernel, ArrayAttr arguments,
                               StringAttr method, ArrayRef<OperandAttr>) {
  if (!kernel.empty())
    return verifyArguments(emitError, kernel, arguments.getValue());
  for (Attribute argument : arguments)
    if (auto list = dyn_cast<ArrayAttr>(argument);
        list ? !llvm::all_of(list, llvm::IsaPred<OperandAttr>)
             : !isa<BoolAttr, IntegerAttr, FloatAttr, DenseI64ArrayAttr, OperandAttr, WindowAttr, EnumeratorAttr,
                    CodecAttr, sluice::train::AlgorithmAttr>(argument))
      return emitError() << "the function " << method << " cannot take " << argument;
  return success();
}

LogicalResult OperandAttr::verify(function_ref<InFlightDiagnostic()> emitError, OperandKind kind,
                                  std::optional<int64_t> index) {
  const bool numbered = kind == OperandKind::In || kind == OperandKind::Out;
  if (numbered ? index.value_or(-1) < 0 : index.has_value())
    return emitError() << stringifyOperandKind(kind) << (numbered ? " needs a number >= 0" : " has no number");
  return success();
}

LogicalResult WindowAttr::verify(function_ref<InFlightDiagnostic()> emitError, DenseI64ArrayAttr kernel,
                                 DenseI64ArrayAttr strides, DenseI64ArrayAttr pads, DenseI64ArrayAttr dilations) {
  const int64_t spatial = kernel.size();
  if ((spatial != 2 && spatial != 3) || strides.size() != spatial || pads.size() != 2 * spatial ||
      dilations.size() != spatial)
    return emitError() << "a window has 2 or 3 extents, strides and dilations and twice as many pads, not "
                       << kernel.size() << ", " << strides.size() << ", " << dilations.size() << " and " << pads.size();
  return success();
}

LogicalResult CodecAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr name) {
  if (!parseCodec(name.getValue()))
    return emitError() << "knows no codec of floats '" << name.getValue() << "'";
  return success();
}

LogicalResult IdsAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t in, int64_t limit,
                              std::optional<int64_t>) {
  if (in < 0 || limit < 1)
    return emitError() << "ids are an in >= 0 below a limit >= 1, not in " << in << " below " << limit;
  return success();
}

/// C9
static LogicalResult checkIds(RunOp op) {
  const auto ids = op.getIdsAttr();
  if (!ids)
    return success();
  if (ids.getIn() >= static_cast<int64_t>(op.getIns().size()) ||
      !op.inType(static_cast<unsigned>(ids.getIn())).getElementType().isInteger(64))
    return op.emitOpError() << "'" << op.getKernel() << "' has ids in " << ids.getIn() << ", which are no i64";
  return success();
}

LogicalResult RunOp::verify() {
  if (getInVersions().size() != getIns().size() || getOutVersions().size() != getOuts().size()) // C5
    return emitOpError() << "'" << getKernel() << "' has " << getIns().size() << " ins and " << getOuts().size()
                         << " outs, but versions of " << getInVersions().size() << " and " << getOutVersions().size();
  if (failed(checkOperands(*this, "ins", getIns(), getInTypes())) ||
      failed(checkOperands(*this, "outs", getOuts(), getOutTypes())))
    return failure();
  const bool packs = getRole() == Role::Encode || getRole() == Role::Decode;
  const StreamWork work = factsOf(getStream()).work;
  if (work != StreamWork::Kernels && !(work == StreamWork::Codecs && packs)) // C6
    return emitOpError() << "'" << getKernel() << "' does not run on " << stringifyStream(getStream());
  if (failed(checkRegion(*this)) || failed(checkCalls(*this)) || failed(checkIds(*this)))
    return failure();
  if (!getScratch())
    return success();
  BufferOp scratch = definition(getScratch());
  bool shared = llvm::is_contained(getIns(), getScratch()) || llvm::is_contained(getOuts(), getScratch());
  if (!scratch || shared || scratch.outlivesStep() || !scratch.onDevice()) // C4
    return emitOpError() << "'" << getKernel() << "' needs a scratch buffer of its own on the device";
  return success();
}

LogicalResult CopyOp::verify() {
  BufferOp from = definition(getFrom()), to = definition(getTo());
  const bool leaves = from && from.onDevice();
  BufferOp device = leaves ? from : to, host = leaves ? to : from;
  if (!from || !to || from.onDevice() == to.onDevice() ||
      getStream() != (leaves ? streamTo : streamFrom)(host.getSpace())) // C1
    return emitOpError() << "on " << stringifyStream(getStream()) << " does not copy in that stream's direction";
  int64_t wanted = device.getBytes();
  bool pooled = poolBytes(getCodec()) > 0;
  if (getCodec()) {
    const std::optional<Codec> codec = sluice::codecOfCopies(*getCodec());
    if (!codec)
      return emitOpError() << "knows no codec '" << *getCodec() << "'; there are " << sluice::codecsOfCopies();
    auto type = getType() ? dyn_cast<RankedTensorType>(*getType()) : RankedTensorType();
    RankedTensorType packed = type && sluice::train::isAddressable(type) ? sluice::packedType(type, *codec) : type;
    if (!type || !packed || packed == type || bytesOf(type) != wanted || !factsOf(host.getSpace()).packs) // C4
      return emitOpError() << "of '" << device.getName() << "' of " << wanted << " bytes cannot pack "
                           << getType().value_or(Type()) << " with codec '" << *getCodec() << "' for the "
                           << stringifySpace(host.getSpace()) << " arena";
    wanted = bytesOf(packed);
  }
  if (pooled != (host.getSpace() == Space::Spill)) // C3
    return emitOpError() << "of '" << device.getName() << "' " << (pooled ? "has a codec with a pool" : "has no pool")
                         << ", but '" << host.getName() << "' lies in the " << stringifySpace(host.getSpace())
                         << " arena";
  if (wanted != static_cast<int64_t>(host.getBytes())) // C2
    return emitOpError() << "copies '" << from.getName() << "' of " << from.getBytes() << " bytes to '" << to.getName()
                         << "' of " << to.getBytes()
                         << (getCodec() ? ", packed they are " + std::to_string(wanted) : "");
  return success();
}

LogicalResult WaitOp::verify() {
  auto record = getEvent().getDefiningOp<RecordOp>();
  if (!record || record.getStream() == getStream()) // C1
    return emitOpError() << "makes " << stringifyStream(getStream()) << " wait for an event of its own";
  return success();
}
