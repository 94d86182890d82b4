// SPDX-License-Identifier: Apache-2.0
// Making #sched.call attributes from what the runtime's constructors take, and reading them back.
#pragma once

#include "ir/RuntimeTypes.h"
#include "runtime/Recurrence.h"

#include <string>
#include <vector>

namespace sluice {

/// A tensor of the op: as an operand of the call, or as an argument of the constructor, which takes its layout and
/// type.
struct Slot {
  sched::OperandKind kind;
  std::optional<int64_t> index = {};
};
constexpr Slot in(int64_t i) { return {sched::OperandKind::In, i}; }
constexpr Slot out(int64_t i) { return {sched::OperandKind::Out, i}; }
constexpr Slot scratchSlot{sched::OperandKind::Scratch}, noSlot{sched::OperandKind::None};

/// An enumerator of the runtime that the compiler itself has no use for.
struct Enumerator {
  llvm::StringRef type;
  std::string name;
};

/// Enumerators of the runtime by name, in order.
template <typename E> struct Enumerators;
template <> struct Enumerators<ConvPass> {
  static constexpr const char *type = "ConvPass", *names[] = {"Forward", "BackwardData", "BackwardWeight"};
};
template <> struct Enumerators<AttentionPass> {
  static constexpr const char *type = "AttentionPass", *names[] = {"Forward", "Backward"};
};
template <> struct Enumerators<LossKind> {
  static constexpr const char *type = "LossKind",
                              *names[] = {"SoftmaxCrossEntropy", "MeanSquaredError", "BceWithLogits"};
};
template <> struct Enumerators<RecurrentCell> {
  static constexpr const char *type = "RecurrentCell",
                              *names[] = {"Lstm", "Gru", "GruLinearBeforeReset", "RnnTanh", "RnnRelu"};
};
template <> struct Enumerators<DataType> {
  static constexpr const char *type = "DataType", *names[] = {"F32", "BF16", "F16", "I64", "I32", "U8", "Bit"};
};

/// Collects the calls of one op.
class KernelCalls {
public:
  explicit KernelCalls(mlir::Operation *op) : op(op), b(op->getContext()) {}

  /// The op's tensors in the runtime's terms.
  Shape shape(Slot slot) const { return shapeOf(typeOf(slot)); }
  DataType type(Slot slot) const { return tensorOf(typeOf(slot)).type; }
  /// What estimate-cost chose, or the kernel's own choice.
  train::AlgorithmAttr algorithm() const;

  /// `method` of an object of the class `kernel`, constructed from `arguments` after the node's name.
  template <typename... Arguments>
  KernelCalls &object(llvm::StringRef kernel, llvm::StringRef method, llvm::ArrayRef<Slot> operands,
                      const Arguments &...arguments) {
    return add(kernel, {attribute(arguments)...}, method, operands);
  }
  /// A function of the runtime: stream, operands, `arguments`, node.
  template <typename... Arguments>
  KernelCalls &function(llvm::StringRef name, llvm::ArrayRef<Slot> operands, const Arguments &...arguments) {
    return add("", {attribute(arguments)...}, name, operands);
  }
  /// More arguments for the call that was added last.
  template <typename... Arguments> KernelCalls &with(const Arguments &...arguments) {
    return extend({attribute(arguments)...});
  }

  operator llvm::SmallVector<sched::CallAttr>() const { return calls; }

private:
  mlir::RankedTensorType typeOf(Slot slot) const;
  KernelCalls &add(llvm::StringRef kernel, llvm::ArrayRef<mlir::Attribute> arguments, llvm::StringRef method,
                   llvm::ArrayRef<Slot> operands);
  KernelCalls &extend(llvm::ArrayRef<mlir::Attribute> arguments);

  mlir::Attribute attribute(bool value) { return b.getBoolAttr(value); }
  mlir::Attribute attribute(int64_t value) { return b.getI64IntegerAttr(value); }
  mlir::Attribute attribute(llvm::APFloat value) { return b.getF32FloatAttr(value.convertToFloat()); }
  mlir::Attribute attribute(float value) { return b.getF32FloatAttr(value); }
  mlir::Attribute attribute(llvm::ArrayRef<int64_t> list) { return b.getDenseI64ArrayAttr(list); }
  mlir::Attribute attribute(const Shape &shape) { return b.getDenseI64ArrayAttr({shape.dims, size_t(shape.rank)}); }
  mlir::Attribute attribute(Slot slot) { return sched::OperandAttr::get(b.getContext(), slot.kind, slot.index); }
  mlir::Attribute attribute(llvm::ArrayRef<Slot> slots) {
    return b.getArrayAttr(llvm::map_to_vector(slots, [&](Slot slot) { return attribute(slot); }));
  }
  mlir::Attribute attribute(const Enumerator &e) {
    return sched::EnumeratorAttr::get(b.getContext(), b.getStringAttr(e.type), b.getStringAttr(e.name));
  }
  template <typename E> std::enable_if_t<std::is_enum_v<E>, mlir::Attribute> attribute(E e) {
    return attribute(Enumerator{Enumerators<E>::type, Enumerators<E>::names[static_cast<size_t>(e)]});
  }
  mlir::Attribute attribute(mlir::Attribute made) { return made; }

  mlir::Operation *op;
  mlir::Builder b;
  llvm::SmallVector<sched::CallAttr> calls;
};

/// A window as an argument; absent dilations are 1.
sched::WindowAttr windowOf(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> strides,
                           llvm::ArrayRef<int64_t> pads, mlir::DenseI64ArrayAttr dilations = {});

/// Reads the argument back; another type than the class's constructor takes ends the program, naming the class. `op` is
/// the op whose call it is.
template <typename T> T argument(mlir::Operation *op, sched::CallAttr call, unsigned i);
template <> bool argument<bool>(mlir::Operation *op, sched::CallAttr call, unsigned i);
template <> int64_t argument<int64_t>(mlir::Operation *op, sched::CallAttr call, unsigned i);
template <> float argument<float>(mlir::Operation *op, sched::CallAttr call, unsigned i);
template <> Shape argument<Shape>(mlir::Operation *op, sched::CallAttr call, unsigned i);
template <> Tensor argument<Tensor>(mlir::Operation *op, sched::CallAttr call, unsigned i);
template <> Window argument<Window>(mlir::Operation *op, sched::CallAttr call, unsigned i);
template <> ConvPass argument<ConvPass>(mlir::Operation *op, sched::CallAttr call, unsigned i);
template <> AttentionPass argument<AttentionPass>(mlir::Operation *op, sched::CallAttr call, unsigned i);
template <> LossKind argument<LossKind>(mlir::Operation *op, sched::CallAttr call, unsigned i);
template <> DataType argument<DataType>(mlir::Operation *op, sched::CallAttr call, unsigned i);
template <> RecurrentCell argument<RecurrentCell>(mlir::Operation *op, sched::CallAttr call, unsigned i);

/// The same of an argument with a default, which calls may leave out.
template <typename T> T argumentOr(T otherwise, mlir::Operation *op, sched::CallAttr call, unsigned i) {
  return i < call.getArguments().size() ? argument<T>(op, call, i) : otherwise;
}

} // namespace sluice
