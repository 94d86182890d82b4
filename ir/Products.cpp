// SPDX-License-Identifier: Apache-2.0
// Matrix products; their gradients are products again.
#include "ir/Products.h"
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

/// Rows and columns of a tensor's matrices as the product takes them.
static std::pair<int64_t, int64_t> matrixExtents(RankedTensorType tensor, bool transposed) {
  ArrayRef<int64_t> last = tensor.getShape().take_back(2);
  return transposed ? std::pair(last[1], last[0]) : std::pair(last[0], last[1]);
}

/// Whether a bias broadcasts to a product of so many rows and columns.
static bool fitsProduct(RankedTensorType bias, int64_t rows, int64_t columns) {
  SmallVector<int64_t> out;
  return bias.getRank() <= 2 && broadcast(bias.getShape(), {rows, columns}, out) &&
         out == SmallVector<int64_t>{rows, columns};
}

INFER(MatmulOp) {
  auto a = ranked(op.getA()), b = ranked(op.getB());
  if (a.getRank() < 2 || b.getRank() < 2)
    return fail(loc, "matrix product needs rank 2 or more, has ", a, " and ", b);
  auto [m, k] = matrixExtents(a, op.getTransposeA());
  auto [l, n] = matrixExtents(b, op.getTransposeB());
  SmallVector<int64_t> shape;
  if (k != l || !broadcast(a.getShape().drop_back(2), b.getShape().drop_back(2), shape)) // C1
    return fail(loc, "matrix product of ", a, " and ", b, " does not fit: inner extents ", k, " and ", l);
  if (op.getBias() && (a.getRank() != 2 || b.getRank() != 2 || !fitsProduct(ranked(op.getBias()), m, n))) // C2
    return fail(loc, "bias ", op.getBias().getType(), " does not broadcast to ", m, "x", n);
  shape.append({m, n});
  types.push_back(RankedTensorType::get(shape, a.getElementType()));
  return success();
}

template <typename Op> static MatmulOp::Properties productOf(MLIRContext *context, Op op) {
  Builder b(context);
  MatmulOp::Properties p;
  p.transpose_a = op.getTransposeAAttr(), p.transpose_b = op.getTransposeBAttr();
  p.alpha = p.beta = b.getF32FloatAttr(1);
  return p;
}

bool sluice::train::hasWholeRows(ArrayRef<Type> matrices) {
  return llvm::all_of(matrices, [](Type matrix) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(matrix).getShape();
    return shape.size() == 2 && shape[0] > 1 && shape[1] > 1 && shape[1] % 8 == 0;
  });
}

INFER(MatmulGeluOp) {
  SmallVector<Value> operands{op.getA(), op.getB()};
  if (op.getBias())
    operands.push_back(op.getBias());
  MatmulOp::Adaptor product(operands, DictionaryAttr::get(context), productOf(context, op));
  if (failed(MatmulOp::inferReturnTypes(context, loc, product, types))) // C1
    return failure();
  auto x = cast<RankedTensorType>(types.front());
  if (op.getBias() && extents(op.getBias()) != x.getShape().take_back()) // C1
    return fail(loc, "bias ", op.getBias().getType(), " is no row of ", x);
  if (!hasWholeRows({op.getA().getType(), op.getB().getType(), x})) // C2
    return fail(loc, "gelu of a product of ", op.getA().getType(), " and ", op.getB().getType(),
                ": extents are no multiples of 8");
  types.push_back(x);
  return success();
}

LogicalResult MatmulGeluBackwardOp::verify() {
  if (failed(mirrors<MatmulOp>(*this, {getA(), getB()}, productOf(getContext(), *this), {getDx()})) ||
      failed(sameShapes(*this, {getDx(), getX()})))
    return failure();                                                    // C1
  if (getDbias() && extents(getDbias()) != extents(getDx()).take_back()) // C1
    return emitOpError() << "has a sum " << getDbias().getType() << " of " << getDx().getType();
  if (!hasWholeRows({getA().getType(), getB().getType(), getDx().getType()})) // C2
    return emitOpError() << "multiplies " << getA().getType() << " and " << getB().getType()
                         << ", whose extents are no multiples of 8";
  return success();
}

/// alpha * op(a) op(b), summed over broadcast batches to `type`.
static Value product(OpBuilder &b, Location loc, Value x, Value y, bool tx, bool ty, FloatAttr alpha, Type type) {
  Value result =
      MatmulOp::create(b, loc, x, y, Value(), b.getBoolAttr(tx), b.getBoolAttr(ty), alpha, b.getF32FloatAttr(1));
  if (cast<RankedTensorType>(result.getType()).getShape() != cast<RankedTensorType>(type).getShape())
    result = SumToOp::create(b, loc, type, result, b.getF32FloatAttr(1));
  return result;
}

/// [batch..., M, K] as [batch * M, K].
static Value flattenRows(OpBuilder &b, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t columns = type.getShape().back();
  return ReshapeOp::create(
      b, loc, RankedTensorType::get({type.getNumElements() / columns, columns}, type.getElementType()), value);
}

// With y = alpha op(a) op(b) + beta bias: da = alpha dy op(b)^T and db = alpha op(a)^T dy, or their transposes where
// the factor is read transposed. Flags say all transposes, so that nothing is moved for them. Weights come first: their
// gradient is mostly the last op that reads a.
GRADIENT(MatmulOp) {
  Value dy = gradients.of(getY());
  if (!dy)
    return success();
  Value a = getA(), w = getB();
  bool ta = getTransposeA(), tb = getTransposeB();
  if (gradients.wanted(w)) {
    Value rows = a, rowGradients = dy;
    // One large product instead of a batch of small ones and their sum.
    if (cast<RankedTensorType>(w.getType()).getRank() == 2 && cast<RankedTensorType>(a.getType()).getRank() > 2 &&
        !ta) {
      rows = flattenRows(b, getLoc(), a);
      rowGradients = flattenRows(b, getLoc(), dy);
    }
    gradients.add(b, getLoc(), w,
                  tb ? product(b, getLoc(), rowGradients, rows, true, ta, getAlphaAttr(), w.getType())
                     : product(b, getLoc(), rows, rowGradients, !ta, false, getAlphaAttr(), w.getType()));
  }
  if (getBias() && gradients.wanted(getBias()))
    gradients.add(b, getLoc(), getBias(), SumToOp::create(b, getLoc(), getBias().getType(), dy, getBetaAttr()));
  if (gradients.wanted(a))
    gradients.add(b, getLoc(), a,
                  ta ? product(b, getLoc(), w, dy, tb, true, getAlphaAttr(), a.getType())
                     : product(b, getLoc(), dy, w, false, !tb, getAlphaAttr(), a.getType()));
  return success();
}

bool MatmulOp::isWeightOperand(unsigned) { return true; }

/// What kernels of both ops take but for the factors.
template <typename Arguments, typename Op> static Arguments productArguments(Op op, const KernelCalls &calls) {
  Arguments kernel{};
  kernel.a = calls.shape(in(0));
  kernel.transposeB = op.getTransposeB();
  kernel.alpha = op.getAlpha().convertToFloat(), kernel.beta = op.getBeta().convertToFloat();
  if (op.getBias())
    kernel.bias = calls.shape(in(2));
  kernel.algorithm = calls.algorithm();
  kernel.factors = calls.type(in(0));
  if (kernel.factors != DataType::F32)
    kernel.result = calls.type(out(0));
  return kernel;
}

KERNEL(MatmulOp) {
  KernelCalls calls(*this);
  auto kernel = productArguments<arguments::Matmul>(*this, calls);
  kernel.b = calls.shape(in(1)), kernel.c = calls.shape(out(0)), kernel.transposeA = getTransposeA();
  return calls.object(kernel, "run", {in(0), in(1), getBias() ? in(2) : noSlot, out(0), scratchSlot});
}

KERNEL(QuantizedMatmulOp) {
  KernelCalls calls(*this);
  const Quantization form = getForm().form();
  auto kernel = productArguments<arguments::QuantizedMatmul>(*this, calls);
  kernel.b = {form.rows, form.columns};
  kernel.bits = form.bits, kernel.group = form.group, kernel.dimension = form.dimension, kernel.coding = form.coding;
  return calls.object(kernel, "run", {in(0), in(1), getBias() ? in(2) : noSlot, out(0), scratchSlot});
}

template <typename Op> static arguments::MatmulGelu geluArguments(Op op, const KernelCalls &calls) {
  arguments::MatmulGelu kernel{};
  kernel.a = calls.shape(in(0)), kernel.b = calls.shape(in(1)), kernel.c = calls.shape(out(0));
  kernel.transposeA = op.getTransposeA(), kernel.transposeB = op.getTransposeB();
  kernel.algorithm = calls.algorithm();
  kernel.type = calls.type(in(0));
  return kernel;
}

KERNEL(MatmulGeluOp) {
  KernelCalls calls(*this);
  auto kernel = geluArguments(*this, calls);
  kernel.bias = !!getBias();
  return calls.object(kernel, "forward", {in(0), in(1), getBias() ? in(2) : noSlot, out(0), out(1), scratchSlot});
}

KERNEL(MatmulGeluBackwardOp) {
  KernelCalls calls(*this);
  auto kernel = geluArguments(*this, calls);
  kernel.bias = !!getDbias(), kernel.gradient = true;
  return calls.object(kernel, "backward", {in(0), in(1), in(2), out(0), getDbias() ? out(1) : noSlot, scratchSlot});
}

LogicalResult QuantizedMatmulOp::verify() {
  ArrayRef<int64_t> a = extents(getA()), y = extents(getY()), matrix = getForm().getShape();
  const int64_t k = matrix[getTransposeB() ? 1 : 0], n = matrix[getTransposeB() ? 0 : 1];
  if (getB().getType() != getForm().heldType() || a.size() < 2 || a.size() != y.size() ||
      a.drop_back() != y.drop_back() || a.back() != k || y.back() != n) // C1
    return emitOpError() << "makes " << getY().getType() << " of " << getA().getType() << " and " << getB().getType()
                         << ", which " << getForm() << " does not";
  if (getBias() && (a.size() != 2 || !fitsProduct(cast<RankedTensorType>(getBias().getType()), a[0], n))) // C2
    return emitOpError() << "has a bias " << getBias().getType() << ", which does not broadcast to " << a[0] << "x"
                         << n;
  return success();
}

// Of one of the batch's products: profiles hold rates by the size of a product.
static OpWork productWork(Value a, bool transposeA, Value y) {
  ArrayRef<int64_t> result = extents(y), factor = extents(a);
  return ProductWork{result[result.size() - 2], factor[factor.size() - (transposeA ? 2 : 1)], result.back()};
}
OpWork MatmulOp::work() { return productWork(getA(), getTransposeA(), getY()); }
OpWork MatmulGeluOp::work() { return productWork(getA(), getTransposeA(), getX()); }
OpWork MatmulGeluBackwardOp::work() { return productWork(getA(), getTransposeA(), getDx()); }

OpWork QuantizedMatmulOp::work() {
  ArrayRef<int64_t> result = extents(getY());
  return ProductWork{result[result.size() - 2], extents(getA()).back(), result.back()};
}

static int64_t productFlops(Value a, bool transposeA, Value y) {
  ArrayRef<int64_t> factor = extents(a);
  return 2 * elements(y.getType()) * factor[factor.size() - (transposeA ? 2 : 1)];
}
int64_t MatmulOp::flops() { return productFlops(getA(), getTransposeA(), getY()); }
int64_t MatmulGeluOp::flops() { return productFlops(getA(), getTransposeA(), getX()); }
int64_t MatmulGeluBackwardOp::flops() { return productFlops(getA(), getTransposeA(), getDx()); }

int64_t QuantizedMatmulOp::flops() { return 2 * elements(getY().getType()) * extents(getA()).back(); }

PrecisionPreference MatmulOp::precisionPreference() { return PrecisionPreference::Product; }
PrecisionPreference MatmulGeluOp::precisionPreference() { return PrecisionPreference::Product; }
PrecisionPreference MatmulGeluBackwardOp::precisionPreference() { return PrecisionPreference::Product; }
PrecisionPreference QuantizedMatmulOp::precisionPreference() { return PrecisionPreference::Product; }

template <typename Op> static bool addsRow(Op op) {
  auto bias = op.getBias() ? cast<RankedTensorType>(op.getBias().getType()) : RankedTensorType();
  return bias && bias.getRank() > 0 && op.getBeta().isExactlyValue(1) &&
         bias.getNumElements() == bias.getShape().back() && bias.getShape().back() == extents(op.getY()).back();
}

// One row, or one column, is added as such, whatever else it looks like.
template <typename Op> static bool addsToMatrix(Op op) {
  return op.getBias() && op.getBias().getType() == op.getY().getType() && !isHalf(op.getY().getType()) &&
         !op.addsRow() && extents(op.getY()).back() > 1 && op.getAlpha().isExactlyValue(1) &&
         op.getBeta().isExactlyValue(1);
}

bool MatmulOp::addsRow() { return ::addsRow(*this); }
bool QuantizedMatmulOp::addsRow() { return ::addsRow(*this); }
bool MatmulOp::addsToMatrix() { return ::addsToMatrix(*this); }
bool QuantizedMatmulOp::addsToMatrix() { return ::addsToMatrix(*this); }

// cuBLASLt adds a row of the result's type.
template <typename Op> static bool isBiasWide(Op op, unsigned i) {
  return i >= 2 && !(isHalf(op.getY().getType()) && op.addsRow());
}
bool MatmulOp::isOperandWide(unsigned i) { return isBiasWide(*this, i); }
bool QuantizedMatmulOp::isOperandWide(unsigned i) { return isBiasWide(*this, i); }

// cuBLASLt stores sums as they are; cuDNN's engines that do so are few.
bool MatmulOp::mayStoreWide() { return true; }
bool QuantizedMatmulOp::mayStoreWide() { return true; }
