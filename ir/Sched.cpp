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

/// (%x : tensor<4xf32>, %y at 256 : tensor<4xf32>)
static ParseResult parseTypedBuffers(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &buffers,
                                     ArrayAttr &types, DenseI64ArrayAttr &firsts) {
  SmallVector<Attribute> parsed;
  SmallVector<int64_t> begins;
  auto one = [&]() -> ParseResult {
    Type type;
    int64_t &first = begins.emplace_back(wholeBuffer);
    if (parser.parseOperand(buffers.emplace_back()) ||
        (succeeded(parser.parseOptionalKeyword("at")) && parser.parseInteger(first)) || parser.parseColonType(type))
      return failure();
    parsed.push_back(TypeAttr::get(type));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one))
    return failure();
  types = parser.getBuilder().getArrayAttr(parsed);
  firsts = firstsOf(parser.getContext(), begins);
  return success();
}

/// (%a : type, %b at 4096 : type), each buffer with the type that it is used as and, for a piece, its first byte.
static void printTypedBuffers(OpAsmPrinter &printer, Operation *, OperandRange buffers, ArrayAttr types,
                              DenseI64ArrayAttr firsts) {
  printer << "(";
  llvm::interleaveComma(llvm::enumerate(buffers), printer, [&](auto buffer) {
    printer << buffer.value();
    if (const auto first = firstOf(firsts, buffer.index()))
      printer << " at " << *first;
    printer << " : " << cast<TypeAttr>(types[buffer.index()]).getValue();
  });
  printer << ")";
}

DenseI64ArrayAttr sluice::sched::firstsOf(MLIRContext *context, ArrayRef<int64_t> firsts) {
  const bool anyPiece = llvm::any_of(firsts, [](int64_t first) { return first != wholeBuffer; });
  return anyPiece ? DenseI64ArrayAttr::get(context, firsts) : DenseI64ArrayAttr();
}

std::optional<int64_t> sluice::sched::firstOf(DenseI64ArrayAttr firsts, size_t i) {
  return firsts && firsts[i] != wholeBuffer ? std::optional(firsts[i]) : std::nullopt;
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

// parseArenaSizes leaves -1 for an arena that was not written down beside another one.
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

/// What programs of one module share: the same key means the same bytes.
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

// What can be said of a buffer alone. Whether places overlap is verify-schedule's, as are alignment and arenas' sizes:
// until assign-slots has run, buffers need no offsets.
LogicalResult BufferOp::verify() {
  if (static_cast<int64_t>(getBytes()) <= 0) // C1
    return emitOpError() << "'" << getName() << "' has " << getBytes() << " bytes";
  if (getVariable().has_value() + getInput().has_value() + getResult().has_value() > 1) // C2
    return emitOpError() << "'" << getName() << "' is of several kinds";
  if (getInput() && getSpace() > Space::Host) // C2
    return emitOpError() << "'" << getName() << "' is an input in the " << stringifySpace(getSpace()) << " arena";
  bool batch = getBatch().has_value(), wanted = getInput() && onDevice();
  if (batch != wanted || (batch && *getBatch() > 1))
    return emitOpError() << "'" << getName() << "' "
                         << (wanted ? "is an input on the device and needs batch 0 or 1"
                                    : "has a batch but is no input on the device");
  if (getFirst().has_value() && (outlivesStep() || *getFirst() < 1 || *getFirst() > *getLast())) // C3
    return emitOpError() << "'" << getName() << "' cannot live in steps " << *getFirst() << " to " << *getLast();
  if (getOffset() && static_cast<int64_t>(*getOffset()) < 0) // C4
    return emitOpError() << "'" << getName() << "' has the negative offset " << static_cast<int64_t>(*getOffset());
  if ((getResult() || getKept() || (getVariable() && !factsOf(getSpace()).isHome)) && !onDevice()) // C5
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

// Sizes are compared exactly: a copy of fewer bytes would leave the end of its target as it was, and nothing later
// would see it. A packed form has the codec's size for this type, not less, however well it packs: slots are fixed.
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
    if (!type || !packed || packed == type || bytesOf(type) != wanted ||
        !packsFor(factsOf(host.getSpace()), *codec)) // C4
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
