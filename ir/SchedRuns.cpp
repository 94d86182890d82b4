// SPDX-License-Identifier: Apache-2.0
// What a sched.run must be, and the attributes that say its calls. The constraints are numbered in SchedOps.td.
#include "ir/KernelCall.h"

using namespace mlir;
using namespace sluice::sched;

static int64_t bytesOf(RankedTensorType tensor) { return sluice::tensorOf(tensor).bytes(); }

static BufferOp definition(Value buffer) { return buffer.getDefiningOp<BufferOp>(); }

/// C2
static LogicalResult checkBytes(RunOp op, BufferOp slot, RankedTensorType tensor, std::optional<int64_t> first) {
  const int64_t needed = bytesOf(tensor), given = slot.getBytes();
  if (!first && needed != given)
    return op.emitOpError() << "'" << op.getKernel() << "' uses '" << slot.getName() << "' as " << tensor << " of "
                            << needed << " bytes, but it has " << given;
  if (first && (*first < 0 || *first % sluice::slotAlignment || needed > given || *first > given - needed))
    return op.emitOpError() << "'" << op.getKernel() << "' uses the " << needed << " bytes of " << tensor << " at "
                            << *first << " of '" << slot.getName() << "', which has " << given
                            << "; pieces lie within and begin at a multiple of " << sluice::slotAlignment;
  return success();
}

/// C1 to C3 of one of the two lists, which `list` names in errors.
static LogicalResult checkOperands(RunOp op, StringRef list, OperandRange buffers, ArrayAttr types,
                                   DenseI64ArrayAttr firsts) {
  if (buffers.size() != types.size()) // C1
    return op.emitOpError() << "'" << op.getKernel() << "' has " << buffers.size() << " " << list << " and "
                            << types.size() << " types";
  if (firsts && buffers.size() != static_cast<size_t>(firsts.size())) // C1
    return op.emitOpError() << "'" << op.getKernel() << "' has " << buffers.size() << " " << list << ", but says where "
                            << firsts.size() << " begin";
  for (auto [i, buffer, type] : llvm::enumerate(buffers, types)) {
    BufferOp slot = definition(buffer);
    auto tensor = dyn_cast<RankedTensorType>(cast<TypeAttr>(type).getValue());
    if (!slot || !tensor || !sluice::train::isAddressable(tensor))
      return op.emitOpError() << "'" << op.getKernel() << "' takes buffers as static tensors, not " << type;
    if (failed(checkBytes(op, slot, tensor, firstOf(firsts, i))))
      return failure();
    const bool atHome = factsOf(op.getStream()).work == sluice::StreamWork::HostKernels;
    if (slot.getSpace() != (atHome ? Space::Host : Space::Device)) // C3
      return op.emitOpError() << "'" << op.getKernel() << "' works on '" << slot.getName() << "', which is in "
                              << sluice::factsOf(idOf(slot.getSpace())).label;
  }
  return success();
}

/// The operand names one of the run's tensors, its parameter, or none.
static bool isThere(RunOp op, OperandAttr operand) {
  if (operand.getKind() == OperandKind::Parameter)
    return op.getParameter().has_value();
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
                                << " of " << op.getIns().size() << " ins and " << op.getOuts().size() << " outs"
                                << (op.getParameter() ? "" : " without a parameter");
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

// The table knows what a class takes. What a function takes is the C++ compiler's to check, so that here it is enough
// that codegen can print each argument.
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

/// C6
static bool maySuit(Role role, sluice::StreamWork work) {
  switch (work) {
  case sluice::StreamWork::Kernels:
    return !factsOf(role).together;
  case sluice::StreamWork::Codecs:
    return role == Role::Encode || role == Role::Decode;
  case sluice::StreamWork::Collectives:
    return factsOf(role).together;
  case sluice::StreamWork::HostKernels:
    return role == Role::Update;
  case sluice::StreamWork::Copies:
    return false;
  }
  return false;
}

LogicalResult RunOp::verify() {
  if (getInVersions().size() != getIns().size() || getOutVersions().size() != getOuts().size()) // C5
    return emitOpError() << "'" << getKernel() << "' has " << getIns().size() << " ins and " << getOuts().size()
                         << " outs, but versions of " << getInVersions().size() << " and " << getOutVersions().size();
  if (failed(checkOperands(*this, "ins", getIns(), getInTypes(), getInFirstsAttr())) ||
      failed(checkOperands(*this, "outs", getOuts(), getOutTypes(), getOutFirstsAttr())))
    return failure();
  if (!maySuit(getRole(), factsOf(getStream()).work)) // C6
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
