// SPDX-License-Identifier: Apache-2.0
// Elementwise regions. The compiler prints one small function object per region; this template turns it into a kernel
// that walks all operands once. The same function object is compiled for either target. Generated files are compiled
// without contraction of a*b+c, so how ops are grouped into regions changes no bit.
//
//   struct NormalizeRelu {
//     static constexpr int inputs = 5, outputs = 1, sums = 0;
//     static constexpr bool steps[] = {true, true, true, true, true};
//     SLUICE_KERNEL Values<1> operator()(float x, float mean, float rstd, float scale, float bias) const {
//       float v0 = (x - mean) * rstd * scale + bias;
//       return {{v0 > 0 ? v0 : 0}};
//     }
//   };
//   const Fused<NormalizeRelu> relu1{"/relu1/Relu", shape, Layout::NHWC, {x, channel(mean), ...}, {y}, {}};
//   relu1.run(s.compute, {x, channel(mean), channel(rstd), channel(scale), channel(bias)}, {y}, {}, scratch);
//
// Every operand broadcasts to `shape` by numpy's rules; `channel` turns a [C] vector into one that
// broadcasts along dimension 1. Operands of the region's rank have its layout. An operand advances along the innermost
// physical dimension (C in NHWC) or is constant there: `steps` says which at compile time, so that the loop vectorizes;
// without `steps` all advance. Where the shape has extent 1 in that dimension either is right. Outputs have the full
// shape and may be an input's very bytes (in place).
//
// Operands and outputs are F32 unless `static constexpr DataType types[]` says what each of them is, inputs first. The
// rule sees floats: of a mask (Bit; of the region's shape and layout, inputs only) 1 or 0, of BF16 and of F16 (cuda
// only) their values; outputs are rounded where they are stored. Vectors and sums are F32.
//
// A sum is a vector as long as the innermost physical dimension, or a scalar: one of the region's values summed over
// all the rest, in a fixed order that does not depend on the number of threads. operator() returns the outputs, then
// the values to sum.
//
// With `static constexpr bool random = true`, operator() gets an Element first, see Random.h:
//   float r = uniform(randomKey(e.seed, nameKey("/drop1/Dropout"), e.step), e.index);
//
// With `static constexpr int means = n`, which cuda alone has, rowTerms() takes the operands and returns n values,
// whose means over the element's row, the innermost dimension, operator() gets as a Values<n> before the operands,
// after the Element:
//   SLUICE_KERNEL Values<1> rowTerms(float x) const { return {{x}}; }
//   SLUICE_KERNEL Values<1> operator()(Values<1> row, float x) const { return {{x - row.v[0]}}; }
#pragma once

#include "runtime/FusedGeometry.h"
#include "runtime/Kernels.h"
#include "runtime/Math.h"
#include "runtime/Random.h"
#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/Float16.h"

#include <array>
#include <initializer_list>
#include <type_traits>
#include <utility>

namespace sluice {

/// What operator() returns.
template <int Count> struct Values {
  float v[Count > 0 ? Count : 1];
};

/// Which element a random region is at: its index in physical order, and the step's key material.
struct Element {
  uint64_t seed, step, index;
};

/// A [C] vector as an operand that broadcasts along dimension 1 of a rank-4 (or `rank`) region.
constexpr Tensor channel(Tensor vector, int rank = 4) {
  for (int i = 1; i < rank - 1; ++i)
    vector.shape.append(1);
  return vector;
}

namespace detail {

template <typename F, typename = void> struct HasSteps : std::false_type {};
template <typename F> struct HasSteps<F, std::void_t<decltype(F::steps)>> : std::true_type {};
template <typename F> constexpr bool stepOf(int input) {
  if constexpr (HasSteps<F>::value)
    return F::steps[input];
  else
    return input >= 0;
}

template <typename F, typename = void> struct HasTypes : std::false_type {};
template <typename F> struct HasTypes<F, std::void_t<decltype(F::types)>> : std::true_type {};
/// Of an input, or, after them, of an output.
template <typename F> constexpr DataType typeOf(int operand) {
  if constexpr (HasTypes<F>::value)
    return F::types[operand];
  else
    return operand < 0 ? DataType::Bit : DataType::F32;
}
/// How many of the first `operands` have this type.
template <typename F> constexpr int countOf(DataType type, int operands) {
  int count = 0;
  for (int i = 0; i < operands; ++i)
    count += typeOf<F>(i) == type;
  return count;
}

/// How an element of the type is stored; one of a mask is asked for in other ways.
template <DataType Type>
using StoredOf =
    std::conditional_t<Type == DataType::BF16, BFloat16, std::conditional_t<Type == DataType::F16, Float16, float>>;

/// The same of floats of 16 bits.
template <typename F> constexpr int halvesOf(int operands) {
  return countOf<F>(DataType::BF16, operands) + countOf<F>(DataType::F16, operands);
}

template <typename F, typename = void> struct IsRandom : std::false_type {};
template <typename F> struct IsRandom<F, std::void_t<decltype(F::random)>> : std::bool_constant<F::random> {};

/// Means of rows that operator() takes.
template <typename F, typename = void> struct HasMeans : std::false_type {};
template <typename F> struct HasMeans<F, std::void_t<decltype(F::means)>> : std::true_type {};
template <typename F> constexpr int meansOf() {
  if constexpr (HasMeans<F>::value)
    return F::means;
  else
    return 0;
}

template <typename F, int... Operand>
constexpr std::array<DataType, sizeof...(Operand) + 1> typesOf(std::integer_sequence<int, Operand...>) {
  return {{typeOf<F>(Operand)..., DataType::F32}};
}
template <typename F>
constexpr auto regionTypes = typesOf<F>(std::make_integer_sequence<int, F::inputs + F::outputs>());

/// Throws std::invalid_argument naming `node` when the operands are not those that F was printed for.
template <typename F> void checkOperands(const char *node, TensorList inputs, TensorList outputs, TensorList sums) {
  RegionSignature{F::inputs, F::outputs, F::sums, regionTypes<F>.data()}.check(node, inputs, outputs, sums);
}

} // namespace detail

} // namespace sluice

#if defined(__CUDACC__)
#include "runtime/cuda/Fused.h"
#else
#include "runtime/host/Fused.h"
#endif
