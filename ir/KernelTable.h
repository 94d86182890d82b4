// SPDX-License-Identifier: Apache-2.0
// Which kernels of the runtime an op becomes: one table for the compiler, which asks the kernels for their workspaces,
// and for codegen, which prints their construction and calls. An op of the train dialect and the sched.run that it
// became give the same KernelOp.
#pragma once

#include "ir/Sched.h"
#include "ir/Train.h"
#include "runtime/Codec.h"

#include <string>
#include <vector>

namespace sluice {

/// An op reduced to what its kernel depends on.
struct KernelOp {
  std::string kernel; ///< mnemonic of the train op
  std::string node;   ///< ONNX node
  std::vector<mlir::RankedTensorType> ins, outs;
  mlir::DictionaryAttr parameters;

  int64_t integer(llvm::StringRef name) const;
  double number(llvm::StringRef name) const;
  bool flag(llvm::StringRef name) const;
  std::vector<int64_t> list(llvm::StringRef name) const;
  std::string word(llvm::StringRef name) const;
  bool present(llvm::StringRef name) const; ///< a unit attribute
  Algorithm algorithm() const;              ///< what estimate-cost chose; its name lives as long as the MLIR context
};

KernelOp kernelOf(mlir::Operation *trainOp);
KernelOp kernelOf(sched::RunOp run);

/// A type in the runtime's terms.
Shape shapeOf(mlir::RankedTensorType type);
Tensor tensorOf(mlir::RankedTensorType type);

/// What a codec makes of a tensor: the mask of f32 or bf16, or a vector of i8. Null for an unknown codec, and for other
/// codecs of other elements than f32 (halves are half as large already), and of vectors.
mlir::RankedTensorType packedType(mlir::RankedTensorType raw, llvm::StringRef codec);

/// The codec of this name if copies can apply it, and the names of all such.
std::optional<Codec> codecOfCopies(llvm::StringRef name);
std::string codecsOfCopies();

/// A tensor of the op. In a call, an operand that the op leaves out is `none`.
struct Slot {
  enum Kind { In, Out, Scratch } kind;
  unsigned index = 0;
};
constexpr Slot in(unsigned i) { return {Slot::In, i}; }
constexpr Slot out(unsigned i) { return {Slot::Out, i}; }
constexpr Slot scratchSlot{Slot::Scratch, 0};

/// Constructor arguments that refer to a tensor of the op.
struct ShapeArgument {
  Slot slot;
  Shape shape;
};
struct TensorArgument {
  Slot slot;
  Tensor tensor;
};

/// One method call on a kernel object.
struct KernelCall {
  const char *method;
  std::vector<Slot> arguments;
};

/// The operands of a train.fused as the runtime wants them: [C] vectors broadcast along dimension 1, and whether each
/// operand advances along the innermost physical dimension.
struct FusedOperands {
  Shape shape;
  Layout layout;
  std::vector<Tensor> inputs;
  std::vector<bool> channel, steps;
  unsigned outputs = 0, sums = 0;
};
FusedOperands fusedOperands(const KernelOp &op);

/// Calls maker.kernel<K>("K", suffix, call, constructor arguments...) for every kernel of the op that may need scratch,
/// and maker.simple("K", suffix, call, ...) for those that never do. `suffix` tells several kernels of one op apart.
/// train.fused, train.update and zero fills are not here: they have no class of their own. False for an op without an
/// entry.
template <typename Maker> bool makeKernels(const KernelOp &op, Maker &maker);

// The table.

namespace kernels {

inline Window windowOf(const KernelOp &op, std::vector<int64_t> kernel) {
  auto strides = op.list("strides"), pads = op.list("pads"), dilations = op.list("dilations");
  if (dilations.empty())
    dilations = {1, 1};
  return {{kernel[0], kernel[1]},
          {strides[0], strides[1]},
          {pads[0], pads[1], pads[2], pads[3]},
          {dilations[0], dilations[1]}};
}

inline ShapeArgument shape(const KernelOp &op, Slot slot) {
  return {slot, shapeOf(slot.kind == Slot::In ? op.ins[slot.index] : op.outs[slot.index])};
}
inline TensorArgument tensor(const KernelOp &op, Slot slot) {
  return {slot, tensorOf(slot.kind == Slot::In ? op.ins[slot.index] : op.outs[slot.index])};
}

inline DataType type(const KernelOp &op, Slot slot) { return tensor(op, slot).tensor.type; }

/// Element types are the last arguments, left out where all are F32.
template <typename Maker>
void convolution(const KernelOp &op, Maker &m, ConvPass pass, Slot x, Slot w, Slot y, bool bias, KernelCall call) {
  Shape weight = shape(op, w).shape;
  auto make = [&](auto... types) {
    m.template kernel<Conv>("Conv", "", call, pass, shape(op, x), shape(op, w), shape(op, y),
                            windowOf(op, {weight[2], weight[3]}), op.integer("group"), bias, op.algorithm(), types...);
  };
  if (type(op, x) == DataType::F32)
    make();
  else
    make(type(op, x));
}

template <typename Maker> void product(const KernelOp &op, Maker &m) {
  float alpha = static_cast<float>(op.number("alpha")), beta = static_cast<float>(op.number("beta"));
  auto make = [&](auto... rest) {
    m.template kernel<Matmul>("Matmul", "", KernelCall{"run", {in(0), in(1), in(2), out(0), scratchSlot}},
                              shape(op, in(0)), shape(op, in(1)), shape(op, out(0)), op.flag("transpose_a"),
                              op.flag("transpose_b"), rest...);
  };
  const ShapeArgument bias = op.ins.size() > 2 ? shape(op, in(2)) : ShapeArgument{in(2), {}};
  const Algorithm algorithm = op.algorithm();
  if (type(op, in(0)) != DataType::F32)
    make(alpha, beta, bias, algorithm, type(op, in(0)), type(op, out(0)));
  else if (*algorithm.name || algorithm.workspace)
    make(alpha, beta, bias, algorithm);
  else if (op.ins.size() > 2)
    make(alpha, beta, bias);
  else if (alpha != 1 || beta != 1)
    make(alpha, beta);
  else
    make();
}

inline LossKind lossKind(const std::string &loss) {
  return loss == "mse"               ? LossKind::MeanSquaredError
         : loss == "bce_with_logits" ? LossKind::BceWithLogits
                                     : LossKind::SoftmaxCrossEntropy;
}

} // namespace kernels

template <typename Maker> bool makeConvolutions(const KernelOp &op, Maker &m) {
  using kernels::convolution;
  if (op.kernel == "conv")
    convolution(op, m, ConvPass::Forward, in(0), in(1), out(0), op.ins.size() > 2,
                {"forward", {in(0), in(1), in(2), out(0), scratchSlot}});
  else if (op.kernel == "conv_backward_data")
    convolution(op, m, ConvPass::BackwardData, out(0), in(1), in(0), false,
                {"backwardData", {in(0), in(1), out(0), scratchSlot}});
  else if (op.kernel == "conv_backward_weight")
    convolution(op, m, ConvPass::BackwardWeight, in(1), out(0), in(0), op.outs.size() > 1,
                {"backwardWeight", {in(0), in(1), out(0), out(1), scratchSlot}});
  else if (op.kernel == "conv_transpose") // the data gradient of the convolution that maps y to x
    convolution(op, m, ConvPass::BackwardData, out(0), in(1), in(0), false,
                {"backwardData", {in(0), in(1), out(0), scratchSlot}});
  else
    return false;
  return true;
}

template <typename Maker> bool makeWindows(const KernelOp &op, Maker &m) {
  using namespace kernels;
  if (op.kernel == "max_pool")
    m.template kernel<MaxPool>("MaxPool", "", KernelCall{"forward", {in(0), out(0), out(1), scratchSlot}},
                               shape(op, in(0)), shape(op, out(0)), windowOf(op, op.list("kernel")));
  else if (op.kernel == "max_pool_backward")
    m.template kernel<MaxPool>("MaxPool", "", KernelCall{"backward", {in(0), in(1), out(0), scratchSlot}},
                               shape(op, out(0)), shape(op, in(0)), windowOf(op, op.list("kernel")));
  else if (op.kernel == "average_pool")
    m.template kernel<AveragePool>("AveragePool", "", KernelCall{"forward", {in(0), out(0), scratchSlot}},
                                   shape(op, in(0)), shape(op, out(0)), windowOf(op, op.list("kernel")),
                                   op.flag("count_include_pad"));
  else if (op.kernel == "average_pool_backward")
    m.template kernel<AveragePool>("AveragePool", "", KernelCall{"backward", {in(0), out(0), scratchSlot}},
                                   shape(op, out(0)), shape(op, in(0)), windowOf(op, op.list("kernel")),
                                   op.flag("count_include_pad"));
  else
    return false;
  return true;
}

template <typename Maker> bool makeNorms(const KernelOp &op, Maker &m) {
  using namespace kernels;
  auto lrn = [&](KernelCall call) {
    m.template kernel<Lrn>("Lrn", "", call, shape(op, in(0)), op.integer("size"),
                           static_cast<float>(op.number("alpha")), static_cast<float>(op.number("beta")),
                           static_cast<float>(op.number("bias")));
  };
  if (op.kernel == "batch_norm_statistics")
    m.template kernel<BatchNormStatistics>("BatchNormStatistics", "",
                                           KernelCall{"run", {in(0), out(0), out(1), scratchSlot}}, shape(op, in(0)),
                                           static_cast<float>(op.number("epsilon")));
  else if (op.kernel == "update_statistics")
    m.simple("UpdateStatistics", "", KernelCall{"run", {in(0), in(1), out(0), out(1)}}, shapeOf(op.ins[0])[0],
             op.integer("count"), static_cast<float>(op.number("momentum")), static_cast<float>(op.number("epsilon")));
  else if (op.kernel == "save_guarded_channels")
    m.simple("BatchNormInversion", "", KernelCall{"save", {in(0), in(1), in(2), out(0)}}, shape(op, in(0)),
             op.outs[0].getDimSize(0), 1.0f, op.present("half"));
  else if (op.kernel == "invert_batch_norm_leaky_relu")
    m.simple("BatchNormInversion", "", KernelCall{"invert", {in(0), in(1), in(2), in(3), in(4), in(5), out(0)}},
             shape(op, in(0)), op.ins[5].getDimSize(0), static_cast<float>(op.number("alpha")), op.present("half"));
  else if (op.kernel == "check_cancellation")
    m.simple("CancellationCheck", "", KernelCall{"run", {in(0), in(1), out(0)}}, op.ins[0].getNumElements(),
             op.outs[0].getDimSize(0));
  else if (op.kernel == "lrn")
    lrn({"forward", {in(0), out(0), scratchSlot}});
  else if (op.kernel == "lrn_backward")
    lrn({"backward", {in(0), in(1), out(0), scratchSlot}});
  else
    return false;
  return true;
}

template <typename Maker> bool makeMatrices(const KernelOp &op, Maker &m) {
  using namespace kernels;
  if (op.kernel == "matmul") {
    product(op, m);
  } else if (op.kernel == "softmax") {
    m.simple("Softmax", "", KernelCall{"forward", {in(0), out(0)}}, shape(op, in(0)), op.integer("axis"),
             op.flag("logarithm"));
  } else if (op.kernel == "softmax_backward") {
    m.simple("Softmax", "", KernelCall{"backward", {in(0), in(1), out(0)}}, shape(op, in(0)), op.integer("axis"),
             op.flag("logarithm"));
  } else if (op.kernel == "softmax_cross_entropy" || op.kernel == "mse" || op.kernel == "bce_with_logits") {
    m.template kernel<Loss>("Loss", "", KernelCall{"forward", {in(0), in(1), out(0), scratchSlot}}, lossKind(op.kernel),
                            shape(op, in(0)));
  } else if (op.kernel == "loss_backward") {
    m.simple("Loss", "", KernelCall{"backward", {in(0), in(1), out(0)}}, lossKind(op.word("loss")), shape(op, in(0)));
  } else if (op.kernel == "count_correct") {
    m.simple("Loss", "", KernelCall{"countCorrect", {in(0), in(1), out(0)}}, LossKind::SoftmaxCrossEntropy,
             shape(op, in(0)));
  } else {
    return false;
  }
  return true;
}

template <typename Maker> bool makeShapes(const KernelOp &op, Maker &m) {
  using namespace kernels;
  if (op.kernel == "concat") {
    int64_t start = 0;
    for (unsigned i = 0; i < op.ins.size(); ++i) {
      m.simple("Slab", "_part" + std::to_string(i), KernelCall{"insert", {in(i), out(0)}}, tensor(op, out(0)),
               tensor(op, in(i)), op.integer("axis"), start);
      start += op.ins[i].getDimSize(op.integer("axis"));
    }
  } else if (op.kernel == "slice") {
    m.simple("Slab", "", KernelCall{"extract", {in(0), out(0)}}, tensor(op, in(0)), tensor(op, out(0)),
             op.integer("axis"), op.integer("start"));
  } else if (op.kernel == "pad_slab") { // behind a zero fill
    m.simple("Slab", "", KernelCall{"insert", {in(0), out(0)}}, tensor(op, out(0)), tensor(op, in(0)),
             op.integer("axis"), op.integer("start"));
  } else if (op.kernel == "transpose" || op.kernel == "reorder" || op.kernel == "cast") {
    m.simple("Reorder", "", KernelCall{"run", {in(0), out(0)}}, tensor(op, in(0)), tensor(op, out(0)),
             op.list("permutation"));
  } else if (op.kernel == "sum_to") {
    m.template kernel<SumTo>("SumTo", "", KernelCall{"run", {in(0), out(0), scratchSlot}}, tensor(op, in(0)),
                             tensor(op, out(0)), static_cast<float>(op.number("factor")));
  } else if (op.kernel == "broadcast_to") {
    m.simple("BroadcastTo", "", KernelCall{"run", {in(0), out(0)}}, tensor(op, in(0)), tensor(op, out(0)),
             static_cast<float>(op.number("factor")));
  } else if (op.kernel == "resize" || op.kernel == "resize_backward") {
    bool forward = op.kernel == "resize";
    m.simple("Resize", "", KernelCall{forward ? "forward" : "backward", {in(0), out(0)}},
             shape(op, forward ? in(0) : out(0)), shape(op, forward ? out(0) : in(0)),
             static_cast<float>(op.number("scale_h")), static_cast<float>(op.number("scale_w")),
             static_cast<ResizeMode>(op.integer("mode")), static_cast<ResizeCoordinates>(op.integer("coordinates")),
             static_cast<NearestRounding>(op.integer("nearest")));
  } else {
    return false;
  }
  return true;
}

template <typename Maker> bool makeCodecs(const KernelOp &op, Maker &m) {
  using namespace kernels;
  if (op.kernel != "encode" && op.kernel != "decode")
    return false;
  const bool encodes = op.kernel == "encode";
  if (const CodecFacts *facts = findCodec(op.word("codec")); facts && facts->readDirectly)
    m.simple("Mask", "", KernelCall{"encode", {in(0), out(0)}}, op.ins[0].getNumElements(), op.present("positive"));
  else
    m.simple("Packing", "", KernelCall{encodes ? "encode" : "decode", {in(0), out(0)}},
             parseCodec(op.word("codec")).value_or(Codec{}), tensor(op, encodes ? in(0) : out(0)));
  return true;
}

template <typename Maker> bool makeKernels(const KernelOp &op, Maker &m) {
  return makeConvolutions(op, m) || makeWindows(op, m) || makeNorms(op, m) || makeMatrices(op, m) ||
         makeShapes(op, m) || makeCodecs(op, m);
}

} // namespace sluice
