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

/// V6
LogicalResult checkSize(Operation *op, BufferOp buffer, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  Wide needed = tensor ? sizeOf(tensor) : ~Wide(0);
  if (needed == static_cast<Wide>(buffer.getBytes()))
    return success();
  auto error = op->emitOpError() << "V6: '" << buffer.getName() << "' has " << buffer.getBytes() << " bytes, but "
                                 << type << " needs ";
  return needed >> 63 ? error << "at least 2^63" : error << static_cast<int64_t>(needed);
}

bool isMaskedCodec(Attribute argument) {
  auto codec = dyn_cast<sched::CodecAttr>(argument);
  return codec && hasMask(codec.getName().getValue());
}

/// Packed forms that begin with a mask: the tensors that were packed.
llvm::DenseMap<Value, Type> masksInFront(sched::ProgramOp program) {
  llvm::DenseMap<Value, Type> masks;
  for (auto run : program.getBody().getOps<sched::RunOp>())
    for (auto call : run.getCalls().getAsRange<sched::CallAttr>())
      for (Attribute argument : call.getArguments())
        if (isMaskedCodec(argument) && run.getRole() == sched::Role::Encode && !run.getOuts().empty() &&
            !run.getIns().empty())
          masks[run.getOuts()[0]] = cast<TypeAttr>(run.getInTypes()[0]).getValue();
  return masks;
}

/// Whether `type` is the mask of what was packed.
bool isMaskOf(Type type, Type packed) {
  auto mask = dyn_cast<RankedTensorType>(type), raw = dyn_cast_or_null<RankedTensorType>(packed);
  return mask && raw && mask.getElementType().isInteger(1) && mask.getShape() == raw.getShape() &&
         mask.getEncoding() == raw.getEncoding();
}

LogicalResult checkRun(sched::RunOp run, const llvm::DenseMap<Value, Type> &masks) {
  for (auto [operand, type] : llvm::zip(run.getIns(), run.getInTypes()))
    if (Type used = cast<TypeAttr>(type).getValue(); !isMaskOf(used, masks.lookup(operand)))
      if (failed(checkSize(run, operand.getDefiningOp<BufferOp>(), used)))
        return failure();
  for (auto [operand, type] : llvm::zip(run.getOuts(), run.getOutTypes()))
    if (failed(checkSize(run, operand.getDefiningOp<BufferOp>(), cast<TypeAttr>(type).getValue())))
      return failure();
  return success();
}

} // namespace

LogicalResult sluice::checkSizes(const SymbolTable &symbols, sched::ProgramOp program) {
  const llvm::DenseMap<Value, Type> masks = masksInFront(program);
  for (auto buffer : program.getBody().getOps<BufferOp>()) {
    if (buffer.getType() && failed(checkSize(buffer, buffer, *buffer.getType())))
      return failure();
    auto variable =
        buffer.getVariable() ? symbols.lookup<train::VariableOp>(*buffer.getVariable()) : train::VariableOp();
    if (variable && failed(checkSize(buffer, buffer, variable.getType())))
      return failure();
  }
  for (auto run : program.getBody().getOps<sched::RunOp>())
    if (failed(checkRun(run, masks)))
      return failure();
  for (auto copy : program.getBody().getOps<sched::CopyOp>()) {
    auto from = copy.getFrom().getDefiningOp<BufferOp>(), to = copy.getTo().getDefiningOp<BufferOp>();
    if (!copy.getCodec() && from.getBytes() != to.getBytes())
      return copy.emitOpError() << "V6: copies '" << from.getName() << "' of " << from.getBytes() << " bytes to '"
                                << to.getName() << "' of " << to.getBytes();
  }
  return success();
}
