// SPDX-License-Identifier: Apache-2.0
// Making and reading #sched.call attributes, see KernelCall.h.
#include "ir/KernelCall.h"

#include <stdexcept>

using namespace mlir;
using namespace sluice;

train::AlgorithmAttr KernelCalls::algorithm() const {
  auto chosen = train::attr::get<train::attr::Algorithm>(op);
  return chosen ? chosen : train::AlgorithmAttr::get(b.getContext(), StringAttr::get(b.getContext()), 1, 0);
}

static RankedTensorType typeIn(Operation *op, sched::OperandKind kind, std::optional<int64_t> index) {
  assert(index && "no tensor of the op");
  return cast<RankedTensorType>(kind == sched::OperandKind::In ? op->getOperand(*index).getType()
                                                               : op->getResult(*index).getType());
}

RankedTensorType KernelCalls::typeOf(Slot slot) const { return typeIn(op, slot.kind, slot.index); }

KernelCalls &KernelCalls::add(StringRef kernel, ArrayRef<Attribute> arguments, StringRef method,
                              ArrayRef<Slot> operands) {
  auto places = llvm::map_to_vector(operands, [&](Slot slot) { return cast<sched::OperandAttr>(attribute(slot)); });
  calls.push_back(sched::CallAttr::get(b.getContext(), b.getStringAttr(kernel), b.getArrayAttr(arguments),
                                       b.getStringAttr(method), places));
  return *this;
}

KernelCalls &KernelCalls::extend(ArrayRef<Attribute> arguments) {
  sched::CallAttr last = calls.pop_back_val();
  auto all = llvm::to_vector(last.getArguments());
  llvm::append_range(all, arguments);
  calls.push_back(sched::CallAttr::get(b.getContext(), last.getKernel(), b.getArrayAttr(all), last.getMethod(),
                                       last.getOperands()));
  return *this;
}

sched::WindowAttr sluice::windowOf(MLIRContext *context, ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
                                   ArrayRef<int64_t> pads, DenseI64ArrayAttr dilations) {
  Builder b(context);
  return sched::WindowAttr::get(context, b.getDenseI64ArrayAttr(kernel), b.getDenseI64ArrayAttr(strides),
                                b.getDenseI64ArrayAttr(pads),
                                dilations ? dilations : b.getDenseI64ArrayAttr(SmallVector<int64_t>(kernel.size(), 1)));
}

/// The argument as an attribute of type A. What throws is a rule that does not agree with who reads its calls, which no
/// input can bring about.
template <typename A> static A argumentAs(sched::CallAttr call, unsigned i) {
  A value = i < call.getArguments().size() ? dyn_cast<A>(call.getArguments()[i]) : A();
  if (!value)
    throw std::logic_error("argument " + std::to_string(i) + " of a call of " + call.getKernel().str() +
                           " is of another type than its constructor takes");
  return value;
}

template <> bool sluice::argument<bool>(Operation *, sched::CallAttr call, unsigned i) {
  return argumentAs<BoolAttr>(call, i).getValue();
}
template <> int64_t sluice::argument<int64_t>(Operation *, sched::CallAttr call, unsigned i) {
  return argumentAs<IntegerAttr>(call, i).getInt();
}
template <> float sluice::argument<float>(Operation *, sched::CallAttr call, unsigned i) {
  return argumentAs<FloatAttr>(call, i).getValue().convertToFloat();
}
template <> Shape sluice::argument<Shape>(Operation *, sched::CallAttr call, unsigned i) {
  Shape shape;
  for (int64_t extent : argumentAs<DenseI64ArrayAttr>(call, i).asArrayRef())
    shape.append(extent);
  return shape;
}
template <> Tensor sluice::argument<Tensor>(Operation *op, sched::CallAttr call, unsigned i) {
  auto slot = argumentAs<sched::OperandAttr>(call, i);
  return tensorOf(typeIn(op, slot.getKind(), slot.getIndex()));
}
template <> Window sluice::argument<Window>(Operation *, sched::CallAttr call, unsigned i) {
  auto window = argumentAs<sched::WindowAttr>(call, i);
  Window result;
  llvm::copy(window.getKernel().asArrayRef(), result.kernel);
  llvm::copy(window.getStrides().asArrayRef(), result.strides);
  llvm::copy(window.getPads().asArrayRef(), result.pads);
  llvm::copy(window.getDilations().asArrayRef(), result.dilations);
  return result;
}

template <typename E> static E enumerator(sched::CallAttr call, unsigned i) {
  auto named = argumentAs<sched::EnumeratorAttr>(call, i);
  for (auto [value, name] : llvm::enumerate(Enumerators<E>::names))
    if (named.getType() == Enumerators<E>::type && named.getName() == name)
      return static_cast<E>(value);
  throw std::logic_error("a call of " + call.getKernel().str() + " names " + named.getName().str() + ", which is no " +
                         Enumerators<E>::type);
}
template <> ConvPass sluice::argument<ConvPass>(Operation *, sched::CallAttr call, unsigned i) {
  return enumerator<ConvPass>(call, i);
}
template <> AttentionPass sluice::argument<AttentionPass>(Operation *, sched::CallAttr call, unsigned i) {
  return enumerator<AttentionPass>(call, i);
}
template <> LossKind sluice::argument<LossKind>(Operation *, sched::CallAttr call, unsigned i) {
  return enumerator<LossKind>(call, i);
}
template <> DataType sluice::argument<DataType>(Operation *, sched::CallAttr call, unsigned i) {
  return enumerator<DataType>(call, i);
}
template <> RecurrentCell sluice::argument<RecurrentCell>(Operation *, sched::CallAttr call, unsigned i) {
  return enumerator<RecurrentCell>(call, i);
}
