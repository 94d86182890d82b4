// SPDX-License-Identifier: Apache-2.0
// Gemm and MatMul. A product with a rank-2 right side is one rank-2 product, whatever the rank of the left side.
#include "frontend/NodeImport.h"

using namespace mlir;

namespace sluice {
namespace {

/// Either factor may be the weight, which decides its fans under --init.
Use weightUse(bool inputsFirst) {
  Use use;
  use.kind = Use::Weight;
  use.inputsFirst = inputsFirst;
  return use;
}

LogicalResult importGemm(NodeImport &node) {
  bool transposeA = node.attributes.integer("transA", 0), transposeB = node.attributes.integer("transB", 0);
  Value a = node.tensor(0, weightUse(transposeA)), b = node.tensor(1, weightUse(!transposeB));
  Value c = node.has(2) ? node.tensor(2, {Use::Bias}) : Value();
  if (!a || !b || (node.has(2) && !c))
    return failure();
  if (typeOf(a).getRank() != 2 || typeOf(b).getRank() != 2)
    return node.error("needs matrices, has " + shapeText(shapeOf(a).vec()) + " and " + shapeText(shapeOf(b).vec()));
  auto alpha = node.f32(node.attributes.number("alpha", 1)), beta = node.f32(node.attributes.number("beta", 1));
  int64_t columns = shapeOf(b)[transposeB ? 0 : 1];
  // The kernel adds a bias row; anything else is an addition of its own.
  bool row = c && (shapeOf(c) == ArrayRef<int64_t>{columns} || shapeOf(c) == ArrayRef<int64_t>{1, columns});
  Value bias = row ? node.reshape(c, {columns}) : Value();
  auto product = node.make<train::MatmulOp>(a, b, bias, transposeA, transposeB, alpha, row ? beta : node.f32(1));
  if (!product || !c || row)
    return product ? node.result(product) : failure();
  auto scaled = node.make<train::ScaleOp>(c, beta);
  auto sum = scaled ? node.make<train::AddOp>(product.getY(), scaled.getY()) : train::AddOp();
  return sum ? node.result(sum) : failure();
}

/// Vectors become matrices with an extent of 1, which goes again at the end. Rows of all leading dimensions become one
/// matrix where the other operand is a matrix: one large product is faster than a batch of small ones, and adapters are
/// looked for in that form.
LogicalResult importMatMul(NodeImport &node) {
  Value a = node.tensor(0, weightUse(false)), b = node.tensor(1, weightUse(true));
  if (!a || !b)
    return failure();
  if (typeOf(a).getRank() == 0 || typeOf(b).getRank() == 0)
    return node.error("has a scalar operand");
  bool vectorA = typeOf(a).getRank() == 1, vectorB = typeOf(b).getRank() == 1;
  if (vectorA)
    a = node.reshape(a, {1, shapeOf(a)[0]});
  if (vectorB)
    b = node.reshape(b, {shapeOf(b)[0], 1});
  SmallVector<int64_t> lead(shapeOf(a).drop_back());
  bool flatten = lead.size() > 1 && typeOf(b).getRank() == 2;
  if (flatten) {
    int64_t rows = 1;
    for (int64_t extent : lead)
      rows *= extent;
    a = node.reshape(a, {rows, shapeOf(a).back()});
  }
  auto product = node.make<train::MatmulOp>(a, b, Value(), false, false, node.f32(1), node.f32(1));
  if (!product)
    return failure();
  SmallVector<int64_t> shape(shapeOf(product));
  if (flatten) {
    lead.push_back(shape.back());
    shape = lead;
  }
  if (vectorB)
    shape.pop_back();
  if (vectorA)
    shape.erase(shape.end() - (vectorB ? 1 : 2));
  return node.result(node.reshape(product, shape));
}

} // namespace

void addProducts(NodeImporters &table) {
  table["Gemm"] = importGemm;
  table["MatMul"] = importMatMul;
}

} // namespace sluice
