// SPDX-License-Identifier: Apache-2.0
// Row-major tensors go through one buffer piece by piece. NHWC ones are cut along their first dimension, where both
// orders agree, so that a piece is some whole samples (one at least).

#include "runtime/program/TensorIO.h"

#include "runtime/program/SharedStates.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace sluice {

static constexpr size_t pieceBytes = size_t{4} << 20;

/// Both orders of `samples` images of `rows` x `columns` matrices: from[r][c] becomes to[c][r].
template <typename Element>
static void transpose(const void *from, void *to, int64_t samples, int64_t rows, int64_t columns) {
  const Element *in = static_cast<const Element *>(from);
  Element *out = static_cast<Element *>(to);
  for (int64_t n = 0; n < samples; ++n, in += rows * columns, out += rows * columns)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        out[c * rows + r] = in[r * columns + c];
}

static void reorder(const Tensor &tensor, const void *from, void *to, bool towardsNhwc) {
  if (tensor.layout == Layout::RowMajor) {
    std::memcpy(to, from, tensor.bytes());
    return;
  }
  if (tensor.shape.rank < 3)
    throw std::logic_error("NHWC layout with a rank below 3");
  int64_t samples = tensor.shape[0], channels = tensor.shape[1], pixels = 1;
  for (int i = 2; i < tensor.shape.rank; ++i)
    pixels *= tensor.shape[i];
  int64_t rows = towardsNhwc ? channels : pixels, columns = towardsNhwc ? pixels : channels;
  switch (byteWidth(tensor.type)) {
  case 1:
    return transpose<uint8_t>(from, to, samples, rows, columns);
  case 2:
    return transpose<uint16_t>(from, to, samples, rows, columns);
  case 4:
    return transpose<uint32_t>(from, to, samples, rows, columns);
  default:
    return transpose<uint64_t>(from, to, samples, rows, columns);
  }
}

void toPhysical(const Tensor &tensor, const void *logical, void *physical) { reorder(tensor, logical, physical, true); }
void toLogical(const Tensor &tensor, const void *physical, void *logical) { reorder(tensor, physical, logical, false); }

using VisitPiece = std::function<void(const Tensor &, size_t)>;

/// Calls `visit` with the pieces of images: whole samples.
static void forEachSamples(const Tensor &tensor, const VisitPiece &visit) {
  size_t sample = tensor.bytes() / static_cast<size_t>(tensor.shape[0]);
  int64_t samples = std::max<int64_t>(1, static_cast<int64_t>(pieceBytes / sample));
  for (int64_t n = 0; n < tensor.shape[0]; n += samples) {
    Tensor piece = tensor;
    piece.shape.dims[0] = std::min(samples, tensor.shape[0] - n);
    size_t first = static_cast<size_t>(n) * sample;
    piece.offset += first;
    visit(piece, first);
  }
}

/// Calls `visit` with the pieces of a tensor, each a tensor of its own, and with the byte at which each begins.
static void forEachPiece(const Tensor &tensor, const VisitPiece &visit) {
  size_t total = tensor.bytes();
  if (total == 0)
    return;
  if (tensor.layout == Layout::NHWC)
    return forEachSamples(tensor, visit);
  for (size_t first = 0; first < total; first += pieceBytes) {
    Tensor piece = tensor;
    piece.shape = {static_cast<int64_t>(std::min(pieceBytes, total - first) / byteWidth(tensor.type))};
    piece.offset += first;
    visit(piece, first);
  }
}

void readTensor(Session &session, const Tensor &tensor, const TakePiece &take) {
  std::vector<char> physical, logical;
  forEachPiece(tensor, [&](const Tensor &piece, size_t) {
    physical.resize(piece.bytes());
    session.read(piece, physical.data());
    if (piece.layout == Layout::RowMajor)
      return take(physical.data(), physical.size());
    logical.resize(physical.size());
    toLogical(piece, physical.data(), logical.data());
    take(logical.data(), logical.size());
  });
}

void writeTensor(Session &session, const Tensor &tensor, const GivePiece &give) {
  std::vector<char> physical, logical;
  forEachPiece(tensor, [&](const Tensor &piece, size_t first) {
    logical.resize(piece.bytes());
    give(first, logical.data(), logical.size());
    if (piece.layout == Layout::RowMajor)
      return session.write(piece, logical.data());
    physical.resize(logical.size());
    toPhysical(piece, logical.data(), physical.data());
    session.write(piece, physical.data());
  });
}

void readWeights(Session &session, const Variable &variable, const TakePiece &take) {
  if (!variable.form)
    return readSaved(session, variable, take);
  std::vector<char> bytes(variable.tensor.bytes());
  session.read(variable.tensor, bytes.data());
  dequantize(variable.form, bytes.data(), take);
}

void writeWeights(Session &session, const Variable &variable, const GivePiece &give) {
  if (!variable.form)
    return writeSaved(session, variable, give);
  const std::string bytes = quantized(variable.form, variable.name, give);
  session.write(variable.tensor, bytes.data());
}

} // namespace sluice
