// SPDX-License-Identifier: Apache-2.0
// split-updates, for each step: a large weight's gradient is made and used for some rows of the weight after the other,
// right where it is used, so that it never exists whole. That of a wide linear layer is as large as the layer's weight,
// while what it is made of is small, and no other parts are of it.
#include "passes/Passes.h"

#include "ir/Buckets.h"
#include "ir/TensorName.h"
#include "passes/analysis/Storages.h"
#include "runtime/Tensor.h"

#include <numeric>

namespace sluice {
#define GEN_PASS_DEF_SPLITUPDATES
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static RankedTensorType withRows(Value value, int64_t rows) {
  SmallVector<int64_t> shape(typeOf(value).getShape());
  shape[0] = rows;
  return RankedTensorType::get(shape, typeOf(value).getElementType());
}

namespace {

/// The dimension of the maker's first operand that has the rows of the gradient: a product's are those of its first
/// factor, a convolution's weight has the output channels in front. None: it is another op, or has no such dimension.
std::optional<unsigned> rowsOf(Operation *maker) {
  if (auto product = dyn_cast<MatmulOp>(maker)) {
    const bool isMatrix = typeOf(product.getA()).getRank() == 2 && typeOf(product.getB()).getRank() == 2;
    return isMatrix && !product.getBias() ? std::optional(product.getTransposeA() ? 1u : 0u) : std::nullopt;
  }
  auto conv = dyn_cast<ConvBackwardWeightOp>(maker);
  return conv && conv.getGroup() == 1 ? std::optional(1u) : std::nullopt;
}

/// Whether the op can run right before the update instead: no variable that it reads may have been changed by then, and
/// nobody may have read its results.
bool canMoveTo(UpdateOp update, Operation *maker) {
  return llvm::none_of(maker->getOperands(), [](Value operand) { return variableOf(viewedValue(operand)); }) &&
         llvm::none_of(maker->getUsers(), [&](Operation *user) { return user->isBeforeInBlock(update); });
}

/// The same of an update that alone reads its gradient. One that waits for the norm or the check of all gradients needs
/// them whole, and so do lamb's norms.
std::optional<unsigned> rowsOf(UpdateOp update) {
  Value gradient = update.getGradient();
  if (!gradient.hasOneUse() || update.getNorm() || update.getSharded() || update.getFirst() ||
      update.getRule() == UpdateRule::Lamb || !update.use_empty())
    return std::nullopt;
  Operation *maker = gradient.getDefiningOp();
  return maker && canMoveTo(update, maker) ? rowsOf(maker) : std::nullopt;
}

/// One update and what makes its gradient, which nobody else reads.
class RowedUpdate {
public:
  RowedUpdate(UpdateOp update, unsigned dim)
      : update(update), maker(update.getGradient().getDefiningOp()), type(typeOf(update.getGradient())), dim(dim),
        b(update) {}

  /// In as many rows at a time as `bytes` have room for, or the fewest that begin where pieces of slots may.
  void run(int64_t bytes) {
    const int64_t rows = type.getDimSize(0), step = rowsWithin(bytes);
    SmallVector<Value> biases, changed(update->getOperands().take_back(update->getNumResults()));
    for (int64_t begin = 0; begin < rows; begin += step) {
      Operation *made = gradient(begin, std::min(step, rows - begin));
      if (made->getNumResults() > 1)
        biases.push_back(made->getResult(1));
      changed = updated(made->getResult(0), begin, changed);
    }
    if (!biases.empty())
      joinBiases(biases);
    update->erase();
    maker->erase();
  }

  bool isCut(int64_t bytes) const { return rowsWithin(bytes) < type.getDimSize(0); }

private:
  int64_t rowsWithin(int64_t bytes) const {
    const int64_t rows = type.getDimSize(0), row = train::bytes(type) / rows;
    const int64_t least = slotAlignment / std::gcd(slotAlignment, row),
                  most = std::max(bytes / row / least, int64_t(1));
    const int64_t parts = llvm::divideCeil(rows, most * least);
    return llvm::divideCeil(llvm::divideCeil(rows, parts), least) * least;
  }

  Operation *gradient(int64_t begin, int64_t count) {
    const Location loc = NameLoc::get(b.getStringAttr(nodeName(maker->getLoc()) + "/rows" + std::to_string(begin)));
    auto slab = SliceOp::create(b, loc, maker->getOperand(0), dim, begin, count);
    copyOrdinal(maker, slab);
    Operation *made = b.clone(*maker);
    made->setLoc(loc);
    made->setOperand(0, slab);
    for (OpResult result : made->getResults())
      result.setType(withRows(result, count));
    return made;
  }

  SmallVector<Value> updated(Value rows, int64_t begin, ValueRange values) {
    auto made =
        UpdateOp::create(b, update.getLoc(), values.getTypes(), rows, Value(), values.front(), values.drop_front(),
                         update.getRule(), update.getAveraged(), false, b.getI64IntegerAttr(begin));
    copyOrdinal(update, made);
    return made.getResults();
  }

  /// Gradients of a convolution's bias, which come with the weight's.
  void joinBiases(ArrayRef<Value> biases) {
    Value whole = maker->getResult(1);
    auto joined = ConcatOp::create(b, maker->getLoc(), whole.getType(), biases, 0);
    copyOrdinal(maker, joined);
    whole.replaceAllUsesWith(joined);
  }

  UpdateOp update;
  Operation *maker;
  RankedTensorType type; ///< of the gradient
  unsigned dim;          ///< of the maker's first operand
  OpBuilder b;
};

struct SplitUpdates : sluice::impl::SplitUpdatesBase<SplitUpdates> {
  using SplitUpdatesBase::SplitUpdatesBase;

  void runOnOperation() override {
    if (above <= 0)
      return;
    ModuleOp module = getOperation();
    if (failed(checkRunsBefore(module, "sluice-split-updates", "sluice-fuse", llvm::IsaPred<FusedOp>)))
      return signalPassFailure();
    int64_t most = 0; // of the steps for several shapes
    for (func::FuncOp step : stepsOf(module)) {
      const FailureOr<int64_t> found = split(step);
      if (failed(found))
        return signalPassFailure();
      most = std::max(most, *found);
    }
    if (most > 0)
      note(most);
  }

private:
  /// Returns how many gradients are in rows now.
  FailureOr<int64_t> split(func::FuncOp step) {
    int64_t found = 0;
    for (UpdateOp update : llvm::to_vector(step.getOps<UpdateOp>())) {
      const std::optional<unsigned> dim = rowsOf(update);
      if (!dim || bytes(update.getGradient().getType()) <= above)
        continue;
      RowedUpdate rowed(update, *dim);
      if (!rowed.isCut(above))
        continue;
      rowed.run(above);
      ++found;
    }
    if (found == 0 && insists)
      return step.emitError() << "@" << step.getName() << " has no gradient of more than " << above.getValue()
                              << " bytes that one product or convolution makes for one update alone; updates that wait "
                                 "for a norm or for other batches need it whole";
    weights += found;
    return found;
  }

  /// Behind what other parts there are.
  void note(int64_t found) {
    ModuleOp module = getOperation();
    std::string words = std::to_string(found) + (found == 1 ? " gradient" : " gradients") + " of weights in rows of " +
                        std::to_string(above) + " bytes";
    if (auto parts = module->getAttrOfType<StringAttr>(partsAttribute))
      words = parts.getValue().str() + ", " + words;
    module->setAttr(partsAttribute, StringAttr::get(module.getContext(), words));
  }
};

} // namespace
