// SPDX-License-Identifier: Apache-2.0
// Verifiers, storages and kernels of the memory ops; the constraints are numbered in MemoryOps.td. Sizes of packed
// tensors are the runtime's.
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// A mask keeps shape and layout, as readers ask for single bits; other forms are plain bytes, which only the codec
/// reads. Null for what a codec does not take.
RankedTensorType sluice::packedType(RankedTensorType raw, Codec codec) {
  MLIRContext *context = raw.getContext();
  const bool isTaken = codec && (factsOf(codec)->takesHalves ? train::isReal(raw) : raw.getElementType().isF32());
  if (isTaken && codec.kind == Codec::Mask)
    return RankedTensorType::get(raw.getShape(), IntegerType::get(context, 1), raw.getEncoding());
  // Statistics, [C] vectors, are too small to gain from it and too sensitive to be rounded.
  if (!isTaken || factsOf(codec)->readDirectly || raw.getRank() < 2)
    return {};
  return RankedTensorType::get({packedBytes(codec, tensorOf(raw))}, IntegerType::get(context, 8));
}

std::optional<Codec> sluice::codecOfCopies(StringRef name) {
  auto codec = parseCodec(name);
  return codec && *codec ? codec : std::nullopt;
}

std::string sluice::codecsOfCopies() {
  SmallVector<StringRef> names;
  for (const CodecFacts &facts : codecTable)
    if (!facts.readDirectly)
      names.push_back(facts.name);
  return llvm::join(ArrayRef(names).drop_back(), ", ") + " and " + names.back().str();
}

/// Whether `packed` is what `codec` makes of `raw` on the device.
static LogicalResult checkPacked(Operation *op, Type raw, Type packed, StringRef codec) {
  const Codec form = parseForm(codec).value_or(Codec{});
  RankedTensorType wanted = packedType(cast<RankedTensorType>(raw), form);
  if (!wanted || !(factsOf(form)->onDevice || factsOf(form)->readDirectly))
    return op->emitOpError() << "knows no codec '" << codec << "' for " << raw;
  if (wanted != packed)
    return op->emitOpError() << "with codec '" << codec << "' packs " << raw << " as " << wanted << ", not " << packed;
  return success();
}

LogicalResult EncodeOp::verify() {
  return checkPacked(*this, getX().getType(), getPacked().getType(), getCodec());
} // C1

LogicalResult DecodeOp::verify() { // C1
  if (const CodecFacts *facts = findCodec(getCodec()); facts && facts->readDirectly)
    return emitOpError() << "cannot rebuild " << getX().getType() << " from a " << getCodec();
  return checkPacked(*this, getX().getType(), getPacked().getType(), getCodec());
}

std::optional<int64_t> PackedMaskOp::firstByte() { return 0; }

LogicalResult PackedMaskOp::verify() { // C1
  auto encode = getPacked().getDefiningOp<EncodeOp>();
  if (!encode || !parseForm(encode.getCodec()).value_or(Codec{}).mask)
    return emitOpError() << "finds no mask in a value that no train.encode with a mask gives";
  RankedTensorType wanted = packedType(cast<RankedTensorType>(encode.getX().getType()), Codec{Codec::Mask});
  if (getMask().getType() != wanted)
    return emitOpError() << "takes the mask of " << encode.getX().getType() << " for " << getMask().getType();
  return success();
}

/// After the wait the raw bytes may be given to others, so that whatever brings the content back has to come later.
LogicalResult AwaitOp::verify() {
  auto update = getHandle().getDefiningOp<UpdateOp>();
  if (!isa_and_nonnull<OffloadOp, EncodeOp>(getHandle().getDefiningOp()) && !(update && update.isAtHome())) // C1
    return emitOpError() << "waits for a value that neither train.offload nor train.encode nor an update at home gives";
  for (Operation *user : getHandle().getUsers()) // C2
    if (user != getOperation() && isa<AwaitOp, PrefetchOp, DecodeOp>(user) && user->getBlock() == (*this)->getBlock() &&
        user->isBeforeInBlock(*this))
      return emitOpError() << "comes after a '" << user->getName() << "' of the same value, which it has to precede";
  return success();
}

/// A handle of train.read is a variable that is at home elsewhere; it needs no offload before.
LogicalResult PrefetchOp::verify() {
  if (cast<HostHandleType>(getHandle().getType()).getTensor() != getX().getType()) // C1
    return emitOpError() << "copies " << getHandle().getType() << " back as " << getX().getType();
  if (!isa_and_nonnull<OffloadOp, ReadOp>(getHandle().getDefiningOp())) // C2
    return emitOpError() << "copies back what neither train.offload nor train.read gives";
  return success();
}

/// The handle is of the raw type even where a codec packs: what comes back is raw again.
LogicalResult OffloadOp::verify() {
  if (cast<HostHandleType>(getHandle().getType()).getTensor() != getX().getType()) // C1
    return emitOpError() << "copies " << getX().getType() << " into " << getHandle().getType();
  const ArenaFacts &arena = factsOf(homeOf(getHome()));
  if (!arena.isHome) // C3
    return emitOpError() << "cannot offload " << getX().getType() << " to the arena '" << getHome() << "'";
  if (!getCodec()) // C2
    return success();
  const auto codec = codecOfCopies(*getCodec());
  if (!codec)
    return emitOpError() << "knows no codec '" << *getCodec() << "'; there are " << codecsOfCopies();
  if (!packsFor(arena, *codec)) // C3
    return emitOpError() << "cannot offload " << getX().getType() << " to the arena '" << getHome() << "' with codec '"
                         << *getCodec() << "': its copies pack in pieces, which that codec does not";
  if (!packedType(cast<RankedTensorType>(getX().getType()), *codec))
    return emitOpError() << "with codec '" << *getCodec() << "' packs "
                         << (factsOf(*codec)->takesHalves ? "floats and halves" : "f32 tensors")
                         << " of rank 2 and more only, not " << getX().getType();
  return success();
}

Value OffloadOp::original() { return getX(); }
std::string OffloadOp::storageSuffix() { return "_" + getHome().str(); }
int64_t OffloadOp::storageBytes() {
  auto raw = cast<RankedTensorType>(getX().getType());
  return bytes(getCodec() ? packedType(raw, *parseCodec(*getCodec())) : raw);
}

Value PrefetchOp::original() {
  auto offload = getHandle().getDefiningOp<OffloadOp>();
  return offload ? Value(offload.getX()) : Value(getHandle()); // of a variable the slot itself
}
std::string PrefetchOp::storageSuffix() { return "_back"; }

Value EncodeOp::original() { return getX(); }
std::string EncodeOp::storageSuffix() {
  return findCodec(getCodec())->readDirectly ? "_" + getCodec().str() : "_packed";
}

Value DecodeOp::original() {
  auto encode = getPacked().getDefiningOp<EncodeOp>();
  return encode ? encode.getX() : getPacked();
}
std::string DecodeOp::storageSuffix() { return "_back"; }

static Calls packing(Operation *op, StringRef method, StringRef codec, Slot raw) {
  return KernelCalls(op).object(arguments::Packing{*parseCodec(codec), raw}, method, {in(0), out(0)}); // C1 knows it
}
KERNEL(EncodeOp) {
  if (findCodec(getCodec())->readDirectly)
    return KernelCalls(*this).object(arguments::Mask{elements(getX().getType()), getPositive()}, "encode",
                                     {in(0), out(0)});
  return packing(*this, "encode", getCodec(), in(0));
}

KERNEL(DecodeOp) { return packing(*this, "decode", getCodec(), out(0)); }
