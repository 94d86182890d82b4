// SPDX-License-Identifier: Apache-2.0
// Host side of Fused<F>. The operands are seen as rows of the innermost dimension; everything about strides is worked
// out once, in the constructor, by FusedGeometry. What remains here is the inner loop and its
// bookkeeping.
#pragma once

#include "runtime/FusedGeometry.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/host/Parallel.h"
#include "runtime/host/Prefetch.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace sluice {

namespace detail {

/// An operand along a row: advancing, or one value that the compiler may keep in a register although outputs could
/// alias it.
template <DataType Type, bool Steps> struct RowOperand {
  const StoredOf<Type> *__restrict p;
  explicit RowOperand(const void *p) : p(static_cast<const StoredOf<Type> *>(p)) {}
  float at(int64_t i) const { return widened(p[i]); }
};
template <DataType Type> struct RowOperand<Type, false> {
  float value;
  explicit RowOperand(const void *p) : value(widened(*static_cast<const StoredOf<Type> *>(p))) {}
  float at(int64_t) const { return value; }
};

/// `length` bits from bit `first` on, as 1 or 0. Reads no word that holds none of them.
inline void expandMask(const uint64_t *words, int64_t first, int64_t length, float *to) {
  for (int64_t at = 0; at < length; at += 32) {
    const int64_t word = (first + at) / 64;
    const int shift = static_cast<int>((first + at) % 64), count = static_cast<int>(std::min<int64_t>(32, length - at));
    uint64_t bits = words[word] >> shift;
    if (shift + count > 64)
      bits |= words[word + 1] << (64 - shift);
    const auto lanes = static_cast<uint32_t>(bits);
    for (int i = 0; i < 32; ++i)
      to[at + i] = static_cast<float>(lanes >> i & 1);
  }
}

/// To elements of the types that F says.
template <typename F> struct FusedPointers {
  std::array<const char *, F::inputs + 1> in;
  std::array<char *, F::outputs + 1> out;
};

/// Of so many elements of an operand, the inputs first.
template <typename F> int64_t bytesOf(int operand, int64_t elements) {
  return elements * static_cast<int64_t>(byteWidth(typeOf<F>(operand)));
}

template <typename F, size_t... I, size_t... O, size_t... S>
inline void fusedRow(const F &f, const FusedPointers<F> &row, float *sums, int64_t length, Element element,
                     std::index_sequence<I...>, std::index_sequence<O...>, std::index_sequence<S...>) {
  const std::tuple<RowOperand<typeOf<F>(I), stepOf<F>(I)>...> in(RowOperand<typeOf<F>(I), stepOf<F>(I)>(row.in[I])...);
  const std::tuple<StoredOf<typeOf<F>(F::inputs + O)> *...> out(
      static_cast<StoredOf<typeOf<F>(F::inputs + O)> *>(static_cast<void *>(row.out[O]))...);
  (void)in, (void)out, (void)sums;
  // An output may be an input's very bytes, never shifted ones: iterations are independent.
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i) {
    Values<F::outputs + F::sums> value;
    if constexpr (IsRandom<F>::value)
      value =
          f(Element{element.seed, element.step, element.index + static_cast<uint64_t>(i)}, std::get<I>(in).at(i)...);
    else
      value = f(std::get<I>(in).at(i)...);
    (store(std::get<O>(out) + i, value.v[O]), ...);
    ((sums[S * Columns::tileWidth + i] += value.v[F::outputs + S]), ...);
  }
}

} // namespace detail

template <typename F> class Fused : public Kernel {
  static_assert(F::inputs + F::outputs + F::sums <= FusedGeometry::maxOperands, "too many operands in one region");
  static_assert(detail::countOf<F>(DataType::F16, F::inputs + F::outputs) == 0, "the host runtime has no fp16");

public:
  Fused(Node node, Shape shape, Layout layout, std::initializer_list<Tensor> inputs,
        std::initializer_list<Tensor> outputs, std::initializer_list<Tensor> sums, F f = {})
      : Kernel(node), f(f), geometry(node, shape, layout, inputs, stepArray().data(), outputs, sums) {
    workspace = geometry.workspaceBytes();
    detail::checkOperands<F>(node, inputs, outputs, sums);
    for (int i = 0; i < F::inputs + F::outputs; ++i)
      ahead[static_cast<size_t>(i)] = bytesAhead(i);
  }

  void run(Stream &stream, std::initializer_list<Tensor> inputs, std::initializer_list<Tensor> outputs,
           std::initializer_list<Tensor> sums, const Tensor &scratch) const {
    Call call{};
    for (size_t i = 0; i < inputs.size() && i < F::inputs; ++i)
      call.base.in[i] = stream.data<const char>(inputs.begin()[i]);
    for (size_t i = 0; i < outputs.size() && i < F::outputs; ++i)
      call.base.out[i] = stream.data<char>(outputs.begin()[i]);
    for (size_t i = 0; i < sums.size() && i < F::sums; ++i)
      call.sums[i] = stream.data<float>(sums.begin()[i]);
    call.partials = stream.data<double>(scratch);
    for (size_t i = 0; i < F::outputs; ++i)
      call.streams[i] = streams(call, i);
    call.element = {stream.session.state.seed, static_cast<uint64_t>(stream.session.state.draw()), 0};
    stream.launch(node, "fused", [this, call] { execute(call); });
    stream.countZeros(outputs);
  }

private:
  struct Call {
    detail::FusedPointers<F> base;
    std::array<float *, F::sums + 1> sums;
    double *partials;
    Element element;
    std::array<bool, F::outputs + 1> streams; ///< outputs that go around the caches
  };

  /// Whether an output goes around the caches: one that is larger than they are and lies where no input does, so that
  /// lines that nobody wants would be read for it. Not beside sums: what is computed of these reads the output again.
  bool streams(const Call &call, size_t output) const {
    constexpr int64_t least = 4 << 20;
    const int64_t row = detail::bytesOf<F>(F::inputs + static_cast<int>(output), geometry.rowExtent);
    const char *to = call.base.out[output];
    return F::sums == 0 && geometry.rows * row >= least && row % cacheLine == 0 &&
           reinterpret_cast<uintptr_t>(to) % cacheLine == 0 &&
           std::find(call.base.in.begin(), call.base.in.end(), to) == call.base.in.end();
  }

  static std::array<bool, F::inputs + 1> stepArray() {
    std::array<bool, F::inputs + 1> steps{};
    for (int i = 0; i < F::inputs; ++i)
      steps[static_cast<size_t>(i)] = detail::stepOf<F>(i);
    return steps;
  }

  /// From a row to the one to ask for meanwhile; 0: the operand stays.
  int64_t bytesAhead(int operand) const {
    constexpr int64_t enough = 1024; // while so many bytes are computed others arrive
    const int64_t step = geometry.outer ? geometry.stride[operand][geometry.outer - 1] * geometry.group : 0;
    const int64_t bytes = detail::typeOf<F>(operand) == DataType::Bit ? 0 : detail::bytesOf<F>(operand, step);
    const bool inRows = geometry.group == 1 || geometry.wide;
    return inRows && bytes > 0 ? bytes * ((enough + bytes - 1) / bytes) : 0;
  }

  void execute(const Call &call) const {
    const int64_t tasks = geometry.columns.tasks();
    parallelFor(tasks, [&](int64_t task) {
      runTask(call, geometry.columns.task(F::sums > 0 ? tasks - 1 - task : task));
      if (F::outputs > 0)
        finishStreaming();
    });
    if constexpr (F::sums > 0)
      geometry.finishSums(call.partials, call.sums.data());
  }

  struct Repeated { ///< elements of any type
    alignas(float) char bytes[F::inputs + 1][Columns::groupWidth * sizeof(float)];
  };

  void runTask(const Call &call, const Columns::Task &task) const {
    float sums[(F::sums > 0 ? F::sums : 1) * Columns::tileWidth];
    Repeated repeated;
    if (geometry.wide)
      repeatVectors(call, repeated);
    double *partials =
        F::sums > 0 ? call.partials + task.chunk * F::sums * geometry.columns.columns + task.columnBegin : nullptr;
    for (int s = 0; s < F::sums; ++s)
      std::fill_n(partials + s * geometry.columns.columns, task.width, 0.0);
    for (int64_t begin = task.rowBegin; begin < task.rowEnd; begin += Columns::block) {
      for (int s = 0; s < F::sums; ++s)
        std::fill_n(sums + s * Columns::tileWidth, task.width, 0.0f);
      for (int64_t row = begin; row < std::min(task.rowEnd, begin + Columns::block); ++row)
        runWideRow(call, task, row, repeated, sums);
      for (int s = 0; s < F::sums; ++s)
        for (int64_t i = 0; i < task.width; ++i)
          partials[s * geometry.columns.columns + i] += static_cast<double>(sums[s * Columns::tileWidth + i]);
    }
  }

  void repeatVectors(const Call &call, Repeated &repeated) const {
    const int64_t whole = geometry.columns.columns;
    for (int i = 0; i < F::inputs; ++i)
      for (int64_t at = 0; geometry.repeats[i] && at < whole; at += geometry.rowExtent)
        std::copy_n(call.base.in[static_cast<size_t>(i)], detail::bytesOf<F>(i, geometry.rowExtent),
                    repeated.bytes[i] + detail::bytesOf<F>(i, at));
  }

  void runWideRow(const Call &call, const Columns::Task &task, int64_t row, const Repeated &repeated,
                  float *sums) const {
    const int64_t whole = geometry.rowLength(row);
    if (geometry.group == 1 || geometry.wide) {
      runRow(call, row * geometry.group, task.columnBegin, std::min(task.width, whole - task.columnBegin), repeated,
             sums);
      return;
    }
    for (int64_t at = 0; at < whole; at += geometry.rowExtent)
      runRow(call, row * geometry.group + at / geometry.rowExtent, 0, geometry.rowExtent, repeated, sums + at);
  }

  void runRow(const Call &call, int64_t row, int64_t column, int64_t length, const Repeated &repeated,
              float *sums) const {
    detail::FusedPointers<F> at = call.base;
    std::array<char *, F::outputs + 1> to{};
    constexpr int masks = detail::countOf<F>(DataType::Bit, F::inputs);
    float expanded[masks > 0 ? masks : 1][masks > 0 ? Columns::tileWidth : 1];
    for (int i = 0; i < F::inputs; ++i) {
      const auto slot = static_cast<size_t>(i);
      if constexpr (masks > 0)
        if (detail::typeOf<F>(i) == DataType::Bit) {
          float *mask = expanded[detail::countOf<F>(DataType::Bit, i)];
          const auto *words = static_cast<const uint64_t *>(static_cast<const void *>(at.in[slot]));
          detail::expandMask(words, geometry.offset(i, row) + column, length, mask);
          at.in[slot] = static_cast<const char *>(static_cast<const void *>(mask));
          continue;
        }
      if (geometry.repeats[i])
        at.in[slot] = repeated.bytes[i];
      else
        at.in[slot] += detail::bytesOf<F>(i, geometry.offset(i, row) + (detail::stepOf<F>(i) ? column : 0));
      if (detail::stepOf<F>(i) && ahead[slot])
        expect(at.in[slot] + ahead[slot], detail::bytesOf<F>(i, length));
    }
    alignas(cacheLine) char kept[F::outputs + 1][Columns::tileWidth * sizeof(float)];
    for (int i = 0; i < F::outputs; ++i) {
      const auto slot = static_cast<size_t>(i);
      at.out[slot] += detail::bytesOf<F>(F::inputs + i, geometry.offset(F::inputs + i, row) + column);
      if (call.streams[slot])
        to[slot] = std::exchange(at.out[slot], kept[slot]);
      else if (ahead[slot + F::inputs])
        expect(at.out[slot] + ahead[slot + F::inputs], detail::bytesOf<F>(F::inputs + i, length));
    }
    Element element = call.element;
    element.index = static_cast<uint64_t>(row * geometry.rowExtent + column);
    detail::fusedRow<F>(f, at, sums, length, element, std::make_index_sequence<F::inputs>(),
                        std::make_index_sequence<F::outputs>(), std::make_index_sequence<F::sums>());
    for (int i = 0; i < F::outputs; ++i)
      if (const auto slot = static_cast<size_t>(i); call.streams[slot])
        streamLines(kept[slot], to[slot], detail::bytesOf<F>(F::inputs + i, length));
  }

  F f;
  FusedGeometry geometry;
  std::array<int64_t, F::inputs + F::outputs + 1> ahead{};
};

} // namespace sluice
