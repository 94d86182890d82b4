// SPDX-License-Identifier: Apache-2.0
// V6 of verify-schedule. Works sizes out for itself.
#include "passes/analysis/SlotSizes.h"

#include "ir/Train.h"
#include "runtime/CodecTable.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;

namespace {

using Wide = unsigned __int128;

/// Bytes of a tensor, worked out here and in 128 bits so that no mistake of the rest can hide; what does not fit those
/// is their largest number.
Wide sizeOf(RankedTensorType type) {
  Wide bits = type.getElementTypeBitWidth();
  for (int64_t extent : type.getShape())
    if (extent < 0 || __builtin_mul_overflow(bits, static_cast<Wide>(extent), &bits))
      return ~Wide(0);
  return type.getElementTypeBitWidth() == 1 ? (bits / 64 + (bits % 64 != 0)) * 8 : bits / 8; // masks have whole words
}

/// V6. Of a piece, where in the buffer it begins.
LogicalResult checkSize(Operation *op, BufferOp buffer, Type type, std::optional<int64_t> first = {}) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  const Wide needed = tensor ? sizeOf(tensor) : ~Wide(0), given = static_cast<Wide>(buffer.getBytes());
  if (first ? *first >= 0 && needed <= given && static_cast<Wide>(*first) <= given - needed : needed == given)
    return success();
  if (first)
    return op->emitOpError() << "V6: '" << buffer.getName() << "' has " << buffer.getBytes() << " bytes, in which no "
                             << type << " begins at " << *first;
  auto error = op->emitOpError() << "V6: '" << buffer.getName() << "' has " << buffer.getBytes() << " bytes, but "
                                 << type << " needs ";
  return needed >> 63 ? error << "at least 2^63" : error << static_cast<int64_t>(needed);
}

/// Blocks of 4x4 of the two-dimensional split of the tensor, in the order of memory, that pads least.
Wide zfpBlocksOf(RankedTensorType type) {
  SmallVector<int64_t> extents(type.getShape());
  if (train::layoutOf(type) == train::LayoutKind::NHWC) // channels are neighbours
    std::rotate(extents.begin() + 1, extents.begin() + 2, extents.end());
  const auto padded = [](Wide extent) { return (extent + 3) / 4; };
  Wide total = 1, columns = 1, fewest = ~Wide(0);
  for (int64_t extent : extents)
    total *= static_cast<Wide>(extent);
  fewest = padded(total); // one row
  for (int64_t extent : llvm::reverse(extents)) {
    columns *= static_cast<Wide>(extent);
    if (columns > 0)
      fewest = std::min(fewest, padded(columns) * padded(total / columns));
  }
  return fewest;
}

/// Bytes of what a codec makes of a tensor, as runtime/Codec.h lays it out.
Wide packedSizeOf(RankedTensorType type, Codec codec) {
  const Wide raw = sizeOf(type), elements = raw * 8 / type.getElementTypeBitWidth(), blocks = (elements + 63) / 64;
  const auto multiple = [](Wide bytes, Wide of) { return (bytes + of - 1) / of * of; };
  const Wide mask = codec.mask ? multiple(9 * blocks, 64) : 0, parts = (raw + (1 << 17) - 1) >> 17;
  switch (codec.kind) {
  case Codec::Fp16:
  case Codec::Bf16:
    return mask + 2 * elements;
  case Codec::Int8:
    return mask + 68 * blocks;
  case Codec::Zfp:
    return mask + multiple(2 * zfpBlocksOf(type) * static_cast<Wide>(codec.bits()), 8);
  case Codec::Zvc:
    return multiple(8 * (parts + 1), 64) + raw;
  case Codec::None:
  case Codec::Mask:
  case Codec::Argmax:
  case Codec::Counter:
    break;
  }
  return raw;
}

/// V6, of a copy that packs: the slot has the bytes of the form, and what comes back was packed the same way.
LogicalResult checkPackedCopy(sched::CopyOp copy, llvm::DenseMap<Value, sched::CopyOp> &packedBy) {
  const bool toHost = copy.getFrom().getDefiningOp<BufferOp>().onDevice();
  const Value slot = toHost ? copy.getTo() : copy.getFrom();
  auto type = copy.getType() ? dyn_cast<RankedTensorType>(*copy.getType()) : RankedTensorType();
  const std::optional<Codec> codec = copy.getCodec() ? parseCodec(*copy.getCodec()) : std::nullopt;
  if (copy.getCodec()) {
    auto held = slot.getDefiningOp<BufferOp>();
    if (!type || !codec ||
        failed(checkSize(copy, (toHost ? copy.getFrom() : copy.getTo()).getDefiningOp<BufferOp>(), type)))
      return failure();
    if (const Wide needed = packedSizeOf(type, *codec); needed != static_cast<Wide>(held.getBytes()))
      return copy.emitOpError() << "V6: '" << held.getName() << "' has " << held.getBytes() << " bytes, but " << type
                                << " packed with " << *copy.getCodec() << " needs " << static_cast<int64_t>(needed);
  }
  const auto [first, isFirst] = packedBy.try_emplace(slot, copy);
  sched::CopyOp other = first->second;
  if (isFirst || (other.getCodecAttr() == copy.getCodecAttr() && other.getTypeAttr() == copy.getTypeAttr()))
    return success();
  const auto text = [](sched::CopyOp of) { return of.getCodec() ? of.getCodec()->str() : "no codec"; };
  return copy.emitOpError() << "V6: unpacks '" << slot.getDefiningOp<BufferOp>().getName() << "' with " << text(copy)
                            << " as " << copy.getType().value_or(Type()) << ", it was packed with " << text(other)
                            << " as " << other.getType().value_or(Type());
}

/// Pieces lie within their slots, whole tensors have all of them.
LogicalResult checkRun(sched::RunOp run) {
  for (auto [i, operand] : llvm::enumerate(run.getIns()))
    if (failed(checkSize(run, operand.getDefiningOp<BufferOp>(), run.inType(i), run.inFirst(i))))
      return failure();
  for (auto [i, operand] : llvm::enumerate(run.getOuts()))
    if (failed(checkSize(run, operand.getDefiningOp<BufferOp>(), run.outType(i), run.outFirst(i))))
      return failure();
  return success();
}

} // namespace

/// V6: every buffer holds what is declared for it, what runs read and write in it, and what copies bring.
LogicalResult sluice::checkSizes(const SymbolTable &symbols, sched::ProgramOp program) {
  for (auto buffer : program.getBody().getOps<BufferOp>()) {
    if (buffer.getType() && failed(checkSize(buffer, buffer, *buffer.getType())))
      return failure();
    auto variable =
        buffer.getVariable() ? symbols.lookup<train::VariableOp>(*buffer.getVariable()) : train::VariableOp();
    if (variable && failed(checkSize(buffer, buffer, variable.getType())))
      return failure();
  }
  for (auto run : program.getBody().getOps<sched::RunOp>())
    if (failed(checkRun(run)))
      return failure();
  llvm::DenseMap<Value, sched::CopyOp> packedBy;
  for (auto copy : program.getBody().getOps<sched::CopyOp>()) {
    if (failed(checkPackedCopy(copy, packedBy)))
      return failure();
    auto from = copy.getFrom().getDefiningOp<BufferOp>(), to = copy.getTo().getDefiningOp<BufferOp>();
    if (!copy.getCodec() && from.getBytes() != to.getBytes())
      return copy.emitOpError() << "V6: copies '" << from.getName() << "' of " << from.getBytes() << " bytes to '"
                                << to.getName() << "' of " << to.getBytes();
  }
  return success();
}
