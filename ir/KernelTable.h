// SPDX-License-Identifier: Apache-2.0
// What the constructor of each of the runtime's kernel classes takes after the node: the one description of it. What
// classes take by name, in a struct of options with a default for each, comes last. The rules of ops fill these in,
// #sched.call carries them and is checked against them, targets read from them what scratch depends on, and codegen
// prints them in order. A new class of kernels is a struct here and an entry in KernelTable.
#pragma once

#include "ir/RuntimeTypes.h"
#include "runtime/Collective.h"
#include "runtime/ConvNorm.h"
#include "runtime/CtcLoss.h"
#include "runtime/Dequantize.h"
#include "runtime/Embedding.h"
#include "runtime/KeyCache.h"
#include "runtime/LossAndGradient.h"
#include "runtime/MatmulGelu.h"
#include "runtime/Recurrence.h"
#include "runtime/Selection.h"
#include "runtime/Update.h"

#include <tuple>

namespace sluice {

/// A tensor of the op: as an operand of the call, or as an argument of the constructor, which takes its layout and
/// type. In: the number of an operand that is present (an absent optional one shifts the rest), and after them, of an
/// op that accumulates, its result; Out: that of a result. They are the ins and outs of the op's sched.run, whose
/// verifier (C8) refuses a number that is not there.
struct Slot {
  sched::OperandKind kind = sched::OperandKind::None;
  std::optional<int64_t> index = {};
};
constexpr Slot in(int64_t i) { return {sched::OperandKind::In, i}; }
constexpr Slot out(int64_t i) { return {sched::OperandKind::Out, i}; }
constexpr Slot scratchSlot{sched::OperandKind::Scratch}, noSlot{sched::OperandKind::None},
    parameterSlot{sched::OperandKind::Parameter}; ///< the ParameterId of an update

/// An argument `const Tensor &`: rules say which tensor of the op it is, who reads a call finds its shape, type and
/// layout.
struct TensorArgument {
  TensorArgument(Slot slot = {}) : slot(slot) {}
  Slot slot;
  Tensor tensor = {};
};

/// An argument std::initializer_list<int>.
using Numbers = llvm::SmallVector<int64_t, 4>;

/// The class, its name, and its arguments in the order of the constructor.
#define KERNEL_ARGUMENTS(Class, ...)                                                                                   \
  using Kernel = sluice::Class;                                                                                        \
  static constexpr const char *kernel = #Class, *names = #__VA_ARGS__;                                                 \
  auto members() { return std::tie(__VA_ARGS__); }                                                                     \
  auto members() const { return std::tie(__VA_ARGS__); }

/// The options of a class, which `struct Class : ClassOptions` has: programs set them by setters `withName`.
#define KERNEL_OPTIONS(Class, ...)                                                                                     \
  using Options = sluice::Class##Options;                                                                              \
  static constexpr const char *optionNames = #__VA_ARGS__;                                                             \
  auto options() { return std::tie(__VA_ARGS__); }                                                                     \
  auto options() const { return std::tie(__VA_ARGS__); }

/// Structs of the names of their classes; what the constructors mean by their arguments is said there. Defaults are
/// those of the constructors.
namespace arguments {

struct Attention : AttentionOptions {
  AttentionPass pass;
  Shape q, k, v;
  float scale;
  KERNEL_ARGUMENTS(Attention, pass, q, k, v, scale)
  KERNEL_OPTIONS(Attention, mask, kept, causal, ratio, key, type, algorithm, qView, kView, vView, yView)
};

struct AveragePool {
  Shape x, y;
  Window window;
  bool countIncludePad;
  KERNEL_ARGUMENTS(AveragePool, x, y, window, countIncludePad)
};

struct BatchNormInversion {
  Shape x;
  int64_t slots;
  float alpha;
  DataType from;
  KERNEL_ARGUMENTS(BatchNormInversion, x, slots, alpha, from)
};

struct BatchNormStatistics {
  Shape x;
  float epsilon;
  KERNEL_ARGUMENTS(BatchNormStatistics, x, epsilon)
};

struct BatchStatistics {
  int64_t channels, count;
  float momentum, epsilon;
  int64_t ranks;
  KERNEL_ARGUMENTS(BatchStatistics, channels, count, momentum, epsilon, ranks)
};

struct BroadcastTo {
  TensorArgument x, y;
  float scale = 1;
  KERNEL_ARGUMENTS(BroadcastTo, x, y, scale)
};

struct CachedAttention : CachedAttentionOptions {
  Shape q, k, v;
  float scale;
  KERNEL_ARGUMENTS(CachedAttention, q, k, v, scale)
  KERNEL_OPTIONS(CachedAttention, mask, kept, qView)
};

struct CancellationCheck {
  int64_t elements, parts;
  KERNEL_ARGUMENTS(CancellationCheck, elements, parts)
};

struct Conv : ConvOptions {
  ConvPass pass;
  Shape x, w, y;
  Window window;
  KERNEL_ARGUMENTS(Conv, pass, x, w, y, window)
  KERNEL_OPTIONS(Conv, groups, bias, algorithm, type)
};

struct ConvNorm : ConvNormOptions {
  ConvPass pass;
  Shape x, w, y;
  Window window;
  KERNEL_ARGUMENTS(ConvNorm, pass, x, w, y, window)
  KERNEL_OPTIONS(ConvNorm, groups, addend, algorithm, type, epsilon)
};

struct CtcLoss {
  Shape x;
  int64_t labels, blank;
  bool zeroInfinity;
  int64_t ignoreIndex = sluice::Loss::none;
  KERNEL_ARGUMENTS(CtcLoss, x, labels, blank, zeroInfinity, ignoreIndex)
};

struct Dequantize {
  Shape matrix;
  int64_t bits, group, dimension;
  Coding coding = Coding::Symmetric;
  KERNEL_ARGUMENTS(Dequantize, matrix, bits, group, dimension, coding)
};

struct Embedding {
  Shape table, ids;
  KERNEL_ARGUMENTS(Embedding, table, ids)
};

struct GradientNorm {
  Shape gradient;
  KERNEL_ARGUMENTS(GradientNorm, gradient)
};

struct Lamb {
  Shape w;
  KERNEL_ARGUMENTS(Lamb, w)
};

struct LayerNorm {
  Shape x;
  float epsilon;
  KERNEL_ARGUMENTS(LayerNorm, x, epsilon)
};

struct Loss {
  LossKind kind;
  Shape x;
  int64_t ignoreIndex = sluice::Loss::none, classes = 0, first = 0, targets = 0;
  KERNEL_ARGUMENTS(Loss, kind, x, ignoreIndex, classes, first, targets)
};

struct LossAndGradient {
  Shape x;
  int64_t ignoreIndex = sluice::Loss::none, classes = 0, first = 0, targets = 0;
  KERNEL_ARGUMENTS(LossAndGradient, x, ignoreIndex, classes, first, targets)
};

struct Lrn {
  Shape x;
  int64_t size;
  float alpha, beta, bias;
  KERNEL_ARGUMENTS(Lrn, x, size, alpha, beta, bias)
};

struct Mask {
  int64_t elements;
  bool positive;
  KERNEL_ARGUMENTS(Mask, elements, positive)
};

struct Matmul : MatmulOptions {
  Shape a, b, c;
  KERNEL_ARGUMENTS(Matmul, a, b, c)
  KERNEL_OPTIONS(Matmul, transposeA, transposeB, alpha, beta, bias, algorithm, factors, result)
};

struct MatmulGelu : MatmulGeluOptions {
  Shape a, b, c;
  KERNEL_ARGUMENTS(MatmulGelu, a, b, c)
  KERNEL_OPTIONS(MatmulGelu, transposeA, transposeB, bias, gradient, algorithm, type)
};

struct MaxPool {
  Shape x, y;
  Window window;
  KERNEL_ARGUMENTS(MaxPool, x, y, window)
};

struct Packing {
  Codec codec;
  TensorArgument x;
  KERNEL_ARGUMENTS(Packing, codec, x)
};

struct Pick {
  Shape x, ids;
  KERNEL_ARGUMENTS(Pick, x, ids)
};

struct QuantizedMatmul : MatmulOptions {
  Shape a, b;
  int64_t bits, group, dimension;
  Coding coding;
  KERNEL_ARGUMENTS(QuantizedMatmul, a, b, bits, group, dimension, coding)
  KERNEL_OPTIONS(QuantizedMatmul, transposeA, transposeB, alpha, beta, bias, algorithm, factors, result)
};

struct Recurrence {
  RecurrentCell cell;
  Shape gates;
  bool reverse;
  KERNEL_ARGUMENTS(Recurrence, cell, gates, reverse)
};

struct Reorder {
  TensorArgument x, y;
  Numbers permutation;
  KERNEL_ARGUMENTS(Reorder, x, y, permutation)
};

struct Resize {
  Shape x, y;
  float scaleH, scaleW;
  ResizeMode mode;
  ResizeCoordinates coordinates;
  NearestRounding rounding;
  KERNEL_ARGUMENTS(Resize, x, y, scaleH, scaleW, mode, coordinates, rounding)
};

struct SharesNorm {
  int64_t elements;
  KERNEL_ARGUMENTS(SharesNorm, elements)
};

struct Slab {
  TensorArgument large, small;
  int64_t axis, start;
  KERNEL_ARGUMENTS(Slab, large, small, axis, start)
};

struct Softmax {
  Shape x;
  int64_t axis;
  bool logarithm;
  KERNEL_ARGUMENTS(Softmax, x, axis, logarithm)
};

struct StoredRows {
  Shape x, cache, view = {};
  KERNEL_ARGUMENTS(StoredRows, x, cache, view)
};

struct SumTo {
  TensorArgument x, y;
  float scale = 1;
  KERNEL_ARGUMENTS(SumTo, x, y, scale)
};

struct Top {
  Shape x;
  int64_t count;
  bool smallest, last;
  KERNEL_ARGUMENTS(Top, x, count, smallest, last)
};

struct SynchronizedNorm {
  int64_t channels, ranks;
  float epsilon;
  KERNEL_ARGUMENTS(SynchronizedNorm, channels, ranks, epsilon)
};

struct UpdateStatistics {
  int64_t channels, count;
  float momentum, epsilon;
  KERNEL_ARGUMENTS(UpdateStatistics, channels, count, momentum, epsilon)
};

} // namespace arguments
#undef KERNEL_ARGUMENTS
#undef KERNEL_OPTIONS

template <typename... A> struct KernelList {};
using KernelTable =
    KernelList<arguments::Attention, arguments::AveragePool, arguments::BatchNormInversion,
               arguments::BatchNormStatistics, arguments::BatchStatistics, arguments::BroadcastTo,
               arguments::CachedAttention, arguments::CancellationCheck, arguments::Conv, arguments::ConvNorm,
               arguments::CtcLoss, arguments::Dequantize, arguments::Embedding, arguments::GradientNorm,
               arguments::Lamb, arguments::LayerNorm, arguments::Loss, arguments::LossAndGradient, arguments::Lrn,
               arguments::Mask, arguments::Matmul, arguments::MatmulGelu, arguments::MaxPool, arguments::Packing,
               arguments::Pick, arguments::QuantizedMatmul, arguments::Recurrence, arguments::Reorder,
               arguments::Resize, arguments::SharesNorm, arguments::Slab, arguments::Softmax, arguments::StoredRows,
               arguments::SumTo, arguments::SynchronizedNorm, arguments::Top, arguments::UpdateStatistics>;

} // namespace sluice
