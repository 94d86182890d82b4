// SPDX-License-Identifier: Apache-2.0
// Weights in fewer bits as floats: a thread takes neighbouring bytes of a row, of 4 bits those of both halves of it. An
// id that is out of range gives NaN, and ends the step with an error.
#include "runtime/Dequantize.h"
#include "runtime/cuda/IdNote.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Storage.h"
#include "runtime/kernels/QuantizationRules.h"

namespace sluice {

namespace {

/// Elements of a row from `column` on, of the codes' bits from `shift` on.
template <typename Code, int count, typename T>
__device__ inline void restoreRun(const Quantization &matrix, uint32_t codes, int shift, const float *scales,
                                  int64_t column, T *y) {
  if (column >= matrix.columns) // the other half of a row of odd length
    return;
  const float *zeros = Code::hasZeros ? scales + matrix.scales() : scales; // else nobody looks
  float values[count];
  if (matrix.dimension == 1 && matrix.group % count == 0) {
    const float scale = scales[column / matrix.group], zero = zeros[column / matrix.group];
#pragma unroll
    for (int i = 0; i < count; ++i)
      values[i] = Code::restored(codes >> (8 * i + shift), scale, zero);
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int64_t at = matrix.dimension == 0 ? column + i : (column + i) / matrix.group;
      values[i] = Code::restored(codes >> (8 * i + shift), scales[at], zeros[at]);
    }
  }
  storeVector(y + column, values);
}

/// What a row of y is: a row of the matrix, or the one that an id names.
struct Rows {
  const int64_t *ids; ///< null: rows as they are
  int64_t count;
  IdNote note;
};

/// `count` bytes a thread, 4 where all rows consist of whole such groups, else 1.
template <typename Code, int count, typename T>
__global__ void restoreMatrix(Quantization matrix, const uint8_t *bytes, Rows rows, T *y) {
  const int64_t width = matrix.rowBytes();
  const float *scales = reinterpret_cast<const float *>(bytes);
  SLUICE_PIXEL_LOOP(i, rows.count) {
    const int64_t row = rows.ids ? rows.ids[i] : i;
    T *to = y + i * matrix.columns;
    if (row < 0 || row >= matrix.rows) {
      if (threadIdx.x == 0)
        rows.note(row, i, matrix.rows);
      for (int64_t c = threadIdx.x; c < matrix.columns; c += blockDim.x)
        store(to + c, nanf(""));
      continue;
    }
    const uint8_t *codes = bytes + matrix.elementsAt() + row * width;
    const float *own = scales + (matrix.dimension == 0 ? row / matrix.group : row) * matrix.scaleColumns();
    for (int64_t at = count * static_cast<int64_t>(threadIdx.x); at < width;
         at += count * static_cast<int64_t>(blockDim.x)) {
      uint32_t some = codes[at];
      if constexpr (count == 4)
        some = *reinterpret_cast<const uint32_t *>(codes + at);
      restoreRun<Code, count>(matrix, some, 0, own, at, to);
      if constexpr (Code::bits == 4)
        restoreRun<Code, count>(matrix, some, 4, own, at + width, to);
    }
  }
}

template <typename Code, typename T>
void restoreRows(cudaStream_t stream, const Quantization &matrix, const uint8_t *from, const Rows &rows, T *to) {
  const bool fours = matrix.rowBytes() % 4 == 0 && matrix.columns % 4 == 0;
  const PixelGrid shape(rows.count, matrix.rowBytes() / (fours ? 4 : 1));
  const auto one = restoreMatrix<Code, 1, T>;
  const auto four = restoreMatrix<Code, 4, T>;
  if (fours)
    four<<<shape.grid, shape.block, 0, stream>>>(matrix, from, rows, to);
  else
    one<<<shape.grid, shape.block, 0, stream>>>(matrix, from, rows, to);
}

void restore(Node node, Stream &stream, const Quantization &matrix, const Tensor &form, const Rows &rows,
             const Tensor &y) {
  const uint8_t *from = stream.data<uint8_t>(form);
  void *address = stream.address(y);
  stream.launch(node, "dequantize", [&] {
    forStored(y.type, [&](auto *stored) {
      using T = std::remove_pointer_t<decltype(stored)>;
      T *to = static_cast<T *>(address);
      forCode(matrix, [&](auto code) { restoreRows<decltype(code)>(native(stream), matrix, from, rows, to); });
    });
  });
}

} // namespace

void Dequantize::run(Stream &stream, const Tensor &form, const Tensor &y) const {
  restore(node, stream, matrix, form, {nullptr, matrix.rows, {}}, y);
}

void Dequantize::rows(Stream &stream, const Tensor &form, const Tensor &ids, const Tensor &y) const {
  restore(node, stream, matrix, form, {stream.data<int64_t>(ids), ids.shape.elements(), idNote(IdUse::Row, node)}, y);
}

} // namespace sluice
