// SPDX-License-Identifier: Apache-2.0
// As ONNX and ONNX Runtime (among its contrib operators) describe the ops. Sizes are compared before anything is
// multiplied that the file does not bound.
#include "frontend/StoredLayouts.h"

#include "frontend/Attributes.h"
#include "frontend/ElementTypes.h"
#include "frontend/HostTensor.h"
#include "onnx/onnx_pb.h"

#include <algorithm>

namespace sluice {

using onnx::TensorProto;

std::string StoredPart::text() const {
  return "'" + name + "' of " + elementTypeName(tensor.elementType) + " " + shapeText(tensor.shape);
}
int64_t StoredPart::size() const { return elementCount(tensor.shape).value_or(-1); }
bool StoredPart::is(std::initializer_list<int32_t> types) const {
  return std::find(types.begin(), types.end(), tensor.elementType) != types.end();
}

namespace {

int64_t ceiling(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// Numbers of the types that weights, scales and zero points have, in rows of `columns`.
PackedNumbers numbersOf(const StoredPart &part, int64_t columns) {
  const int bits = part.is({TensorProto::FLOAT}) ? 32 : part.is({TensorProto::INT4, TensorProto::UINT4}) ? 4 : 8;
  return {part.tensor.bytes, bits, part.is({TensorProto::INT8, TensorProto::INT4}), columns, 1};
}

/// The same of bytes that hold numbers of `bits` bits; each row begins with a byte.
PackedNumbers packedNumbersOf(const StoredPart &part, int bits, int64_t columns) {
  return {part.tensor.bytes, bits, false, ceiling(columns * bits, 8) * 8 / bits, 1};
}

/// Scales or zero points of DequantizeLinear: one, a vector, or a matrix as groups lie.
PackedNumbers ofGroups(const StoredPart &part, const Quantization &form) {
  PackedNumbers numbers = numbersOf(part, form.scaleColumns());
  if (part.size() == 1)
    numbers.rowStep = numbers.columnStep = 0;
  else if (part.tensor.shape.size() == 1) {
    numbers.rowStep = form.dimension == 1;
    numbers.columnStep = form.dimension == 0;
  }
  return numbers;
}

/// Which elements share a scale of DequantizeLinear.
Result<Quantization> groupsOf(const onnx::NodeProto &node, const StoredPart &x, const StoredPart &scales) {
  const int64_t rows = x.tensor.shape[0], columns = x.tensor.shape[1],
                block = Attributes(node).integer("block_size", 0), axis = Attributes(node).integer("axis", 1);
  const int bits = x.is({TensorProto::INT8, TensorProto::UINT8}) ? 8 : 4;
  if (block == 0 && scales.size() == 1)
    return Quantization{bits, columns, 1, rows, columns};
  if (axis < -2 || axis > 1)
    return Error{"has axis " + std::to_string(axis) + " of a matrix"};
  const size_t along = static_cast<size_t>(axis < 0 ? axis + 2 : axis);
  std::vector<int64_t> wanted = {x.tensor.shape[along]};
  if (block > 0) {
    wanted = x.tensor.shape;
    wanted[along] = ceiling(wanted[along], block);
  }
  if (block < 0 || scales.tensor.shape != wanted)
    return Error{"has scales " + scales.text() + " along axis " + std::to_string(along) + " of weights " + x.text() +
                 (block == 0 ? std::string() : ", in blocks of " + std::to_string(block)) +
                 (block < 0 ? std::string() : "; there must be " + shapeText(wanted))};
  if (block > 0)
    return Quantization{bits, std::min(block, x.tensor.shape[along]), static_cast<int>(along), rows, columns};
  // One for each index of the axis: a group is all that lies across it.
  return along == 0 ? Quantization{bits, columns, 1, rows, columns} : Quantization{bits, rows, 0, rows, columns};
}

bool isBlock(int64_t block) { return block >= 16 && (block & (block - 1)) == 0; }

constexpr char blocksSupported[] = "in blocks of 16, 32, 64 or a higher power of two";

} // namespace

Result<StoredMatrix> dequantizedMatrix(const onnx::NodeProto &node, const StoredParts &parts) {
  const auto &[x, scales, zeros] = parts;
  if (!scales.is({TensorProto::FLOAT}))
    return Error{"has scales " + scales.text() + "; floats are supported"};
  if (zeros && (zeros->tensor.elementType != x.tensor.elementType || zeros->tensor.shape != scales.tensor.shape))
    return Error{"has zero points " + zeros->text() + " beside weights " + x.text() + " and scales " + scales.text() +
                 ": they have the type of the weights and the shape of the scales"};
  Result<Quantization> form = groupsOf(node, x, scales);
  if (!form)
    return form.takeError();
  return StoredMatrix{*form, numbersOf(x, form->columns), ofGroups(scales, *form),
                      zeros ? std::optional(ofGroups(*zeros, *form)) : std::nullopt};
}

Result<StoredMatrix> productMatrix(const onnx::NodeProto &node, const StoredParts &parts) {
  const auto &[b, scales, zeros] = parts;
  const Attributes attributes(node);
  const int64_t rows = attributes.integer("N", 0), columns = attributes.integer("K", 0),
                bits = attributes.integer("bits", 4), block = attributes.integer("block_size", 0);
  constexpr int64_t most = int64_t{1} << 40; // numbers of a block, or blocks: products of two are no int64_t's end
  if ((bits != 4 && bits != 8) || !isBlock(block) || block > most)
    return Error{"has weights of " + std::to_string(bits) + " bits in blocks of " + std::to_string(block) +
                 "; supported are 4 and 8 bits, " + blocksSupported};
  if (rows < 1 || columns < 1 || columns > most)
    return Error{"says N=" + std::to_string(rows) + " and K=" + std::to_string(columns) + ", which are no extents"};
  const int64_t blocks = ceiling(columns, block), width = blocks * block * bits / 8;
  const auto fits = [&](const StoredPart &part, int64_t row) {
    return part.size() % rows == 0 && part.size() / rows == row;
  };
  const auto misfit = [&](const StoredPart &part, const char *what, int64_t row) {
    return Error{std::string("has ") + what + " " + part.text() + "; N=" + std::to_string(rows) +
                 " rows of K=" + std::to_string(columns) + " in blocks of " + std::to_string(block) + " need " +
                 std::to_string(row) + " each"};
  };
  if (!b.is({TensorProto::UINT8}) || !fits(b, width))
    return misfit(b, "weights", width);
  if (!scales.is({TensorProto::FLOAT}) || !fits(scales, blocks))
    return misfit(scales, "scales", blocks);
  const bool packed = zeros && zeros->is({TensorProto::UINT8});
  const int64_t zeroRow = packed ? ceiling(blocks * bits, 8) : blocks;
  if (zeros && ((!packed && !zeros->is({TensorProto::FLOAT})) || !fits(*zeros, zeroRow)))
    return misfit(*zeros, "zero points", zeroRow);
  StoredMatrix matrix{{static_cast<int>(bits), std::min(block, columns), 1, rows, columns},
                      packedNumbersOf(b, static_cast<int>(bits), blocks * block),
                      numbersOf(scales, blocks)};
  matrix.zero = static_cast<float>(1 << (bits - 1));
  if (zeros)
    matrix.zeros = packed ? packedNumbersOf(*zeros, static_cast<int>(bits), blocks) : numbersOf(*zeros, blocks);
  return matrix;
}

Result<StoredMatrix> gatheredMatrix(const onnx::NodeProto &node, const StoredParts &parts) {
  const auto &[data, scales, zeros] = parts;
  const Attributes attributes(node);
  const bool inBytes = data.is({TensorProto::UINT8}); // of which each holds one number or two of the last dimension
  const int64_t block = attributes.integer("block_size", 128), said = attributes.integer("quantize_axis", 1),
                bits = inBytes ? attributes.integer("bits", 4) : 4, axis = said < 0 ? said + 2 : said;
  const bool hasBits = inBytes ? bits == 4 || bits == 8 : data.is({TensorProto::INT4, TensorProto::UINT4});
  if (data.tensor.shape.size() != 2 || data.size() < 1 || axis < 0 || axis > 1 || !hasBits || !isBlock(block))
    return Error{"has data " + data.text() + " of " + std::to_string(bits) + " bits along axis " +
                 std::to_string(said) + " in blocks of " + std::to_string(block) +
                 "; supported are matrices of 4 or 8 bits, " + blocksSupported};
  const Quantization form{static_cast<int>(bits), block, static_cast<int>(axis), data.tensor.shape[0],
                          data.tensor.shape[1] * (inBytes ? 8 / bits : 1)};
  const std::vector<int64_t> wanted = {form.scaleRows(), form.scaleColumns()};
  const std::vector<int64_t> wantedZeros = {wanted[0], inBytes ? ceiling(wanted[1] * bits, 8) : wanted[1]};
  if (!scales.is({TensorProto::FLOAT}) || scales.tensor.shape != wanted)
    return Error{"has scales " + scales.text() + " of data " + data.text() + "; blocks of " + std::to_string(block) +
                 " need float32 " + shapeText(wanted)};
  if (zeros && (zeros->tensor.elementType != data.tensor.elementType || zeros->tensor.shape != wantedZeros))
    return Error{"has zero points " + zeros->text() + " of data " + data.text() + "; blocks of " +
                 std::to_string(block) + " need " + elementTypeName(data.tensor.elementType) + " " +
                 shapeText(wantedZeros)};
  const auto packed = [&](const StoredPart &part, int64_t columns) {
    return inBytes ? packedNumbersOf(part, static_cast<int>(bits), columns) : numbersOf(part, columns);
  };
  StoredMatrix matrix{form, packed(data, form.columns), numbersOf(scales, wanted[1])};
  matrix.zero = static_cast<float>(inBytes ? 1 << (bits - 1) : 0);
  if (zeros)
    matrix.zeros = packed(*zeros, wanted[1]);
  return matrix;
}

} // namespace sluice
