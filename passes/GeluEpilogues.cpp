// SPDX-License-Identifier: Apache-2.0
// See GeluEpilogues.h. Reshapes may stand between a product and Gelu: both go by the order of the elements.
#include "passes/GeluEpilogues.h"

#include "ir/Products.h"
#include "passes/Reshapes.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// All that read the value or a reshape of it, in no order.
SmallVector<Operation *> readersOf(Value value) {
  SmallVector<Operation *> readers;
  for (Operation *user : value.getUsers())
    if (auto view = dyn_cast<ReshapeOp>(user))
      llvm::append_range(readers, readersOf(view.getY()));
    else
      readers.push_back(user);
  return readers;
}

/// Whether the product may compute Gelu, or its slope times what it gives.
bool takesGelu(MatmulOp product) {
  return hasWholeRows({product.getA().getType(), product.getB().getType(), product.getY().getType()}) &&
         product.getAlpha().isExactlyValue(1);
}

/// The op that makes the value, which nobody else reads on the way.
MatmulOp onlySource(Value value) {
  for (; value.hasOneUse(); value = value.getDefiningOp<ReshapeOp>().getX())
    if (!value.getDefiningOp<ReshapeOp>())
      return value.getDefiningOp<MatmulOp>();
  return {};
}

/// The value as this type, at the builder's place.
Value reshaped(OpBuilder &b, Operation *like, Value value, Type type) {
  if (value.getType() == type)
    return value;
  auto view = ReshapeOp::create(b, like->getLoc(), type, value);
  copyOrdinal(like, view);
  return view.getY();
}

/// `made` in the place of `old`, whose elements it has, and of reshapes of that which are of made's type.
void replace(OpBuilder &b, Operation *like, Value old, Value made) {
  for (Operation *user : llvm::make_early_inc_range(old.getUsers()))
    if (auto view = dyn_cast<ReshapeOp>(user); view && view.getY().getType() == made.getType()) {
      view.getY().replaceAllUsesWith(made);
      view.erase();
    }
  if (!old.use_empty())
    old.replaceAllUsesWith(reshaped(b, like, made, old.getType()));
}

void eraseUnread(Value value) {
  while (auto view = value.getDefiningOp<ReshapeOp>()) {
    if (!view->use_empty())
      return;
    value = view.getX();
    view.erase();
  }
}

/// The sum over all rows of a value [.., N]: the gradient of the bias that was added to what Gelu read.
SumToOp sumOfRows(Value value, int64_t columns) {
  for (Operation *reader : readersOf(value))
    if (auto sum = dyn_cast<SumToOp>(reader);
        sum && sum.getFactor().isExactlyValue(1) && typeOf(sum.getX()).getShape().back() == columns &&
        typeOf(sum.getY()).getNumElements() == columns && typeOf(sum.getY()).getRank() > 0 &&
        typeOf(sum.getY()).getShape().back() == columns)
      return sum;
  return {};
}

/// The op comes in the product's place, before the weights' update.
bool fuseGradient(GeluBackwardOp gelu, bool sums) {
  MatmulOp product = onlySource(gelu.getDy());
  const Value x = withoutReshapes(gelu.getX());
  auto maker = x.getDefiningOp<MatmulOp>(); // so that x is of 16 bits
  if (!gelu.getTanh() || !product || !maker || product.getBias() || !takesGelu(product) ||
      !maker->isBeforeInBlock(product))
    return false;
  auto type = typeOf(product.getY());
  SumToOp sum = sums ? sumOfRows(gelu.getDx(), type.getDimSize(1)) : SumToOp();
  OpBuilder b(product);
  const Value input = reshaped(b, product, x, type);
  const Type row = RankedTensorType::get(type.getDimSize(1), type.getElementType());
  auto both =
      MatmulGeluBackwardOp::create(b, product.getLoc(), type, sum ? row : Type(), product.getA(), product.getB(), input,
                                   product.getTransposeAAttr(), product.getTransposeBAttr());
  copyOrdinal(product, both);
  if (sum) {
    const Value summed = sum.getX();
    sum.getY().replaceAllUsesWith(reshaped(b, sum, both.getDbias(), sum.getY().getType()));
    sum.erase();
    eraseUnread(summed);
  }
  replace(b, gelu, gelu.getDx(), both.getDx());
  const SmallVector<Value> before(gelu->getOperands());
  gelu.erase();
  for (Value operand : before)
    eraseUnread(operand);
  product.erase();
  return true;
}

/// Where the gradient is not fused nobody needs the product's result beside Gelu's for good, and Gelu may overwrite it.
bool isTrained(MatmulOp product) {
  return llvm::any_of(product.getY().getUsers(), llvm::IsaPred<MatmulGeluBackwardOp>);
}

/// Whether Gelu comes before all else that reads the product, so that its result lives no longer than it did.
bool isFirstReader(GeluOp gelu, MatmulOp product) {
  return llvm::all_of(readersOf(product.getY()),
                      [&](Operation *reader) { return reader == gelu || gelu->isBeforeInBlock(reader); });
}

bool fuseGelu(GeluOp gelu) {
  auto product = withoutReshapes(gelu.getX()).getDefiningOp<MatmulOp>();
  if (!gelu.getTanh() || !product || !takesGelu(product) || (product.getBias() && !product.addsRow()) ||
      !isTrained(product) || !isFirstReader(gelu, product))
    return false;
  OpBuilder b(product);
  Value bias = product.getBias();
  if (bias)
    bias =
        reshaped(b, product, bias, RankedTensorType::get(typeOf(bias).getNumElements(), typeOf(bias).getElementType()));
  auto both = MatmulGeluOp::create(b, product.getLoc(), product.getA(), product.getB(), bias,
                                   product.getTransposeAAttr(), product.getTransposeBAttr());
  copyOrdinal(product, both);
  const Value input = gelu.getX();
  replace(b, gelu, gelu.getY(), both.getY());
  gelu.erase();
  eraseUnread(input);
  product.getY().replaceAllUsesWith(both.getX());
  product.erase();
  return true;
}

} // namespace

int sluice::fuseGeluGradients(func::FuncOp function, bool sums) {
  int made = 0;
  for (auto gelu : llvm::to_vector(function.getOps<GeluBackwardOp>()))
    made += fuseGradient(gelu, sums);
  return made;
}

int sluice::fuseGelus(func::FuncOp function) {
  int made = 0;
  for (auto gelu : llvm::to_vector(function.getOps<GeluOp>()))
    made += fuseGelu(gelu);
  return made;
}
