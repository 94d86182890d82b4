// SPDX-License-Identifier: Apache-2.0
// recompose: what folds, folds; then each train.softmax, train.sqrt, train.erf, train.tanh and train.matmul is
// looked at with the few ops around it; constants that nobody reads any longer go last, in one walk over the module.
// Gradients of the single ops would read a tensor each, attention's whole matrices of scores: memory that no
// plan has to find if the op is one, with a gradient of its own. Comes before build-backward for that.
#include "passes/Passes.h"
#include "passes/Patterns.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sluice {
#define GEN_PASS_DEF_RECOMPOSE
#include "passes/Passes.h.inc"
} // namespace sluice

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

class Recomposer {
public:
  explicit Recomposer(ModuleOp module) : module(module), patterns(module) {}
  int gelus = 0, norms = 0, products = 0, attentions = 0, transposes = 0, views = 0, biases = 0;

  /// The order matters. Attention is found while its factors are still read through transposes; heads are taken apart
  /// before views are sought, which want one step a dimension; biases come behind what knows a sum with a row, and
  /// before views, which go up to the product itself then.
  void run() {
    attentions = recomposeAttention(module, patterns); // while factors are read through their transposes
    norms = recomposeLayerNorms(module, patterns);
    SmallVector<Operation *> found;
    module.walk([&](Operation *op) {
      if (isa<ErfOp, TanhOp, MatmulOp>(op))
        found.push_back(op);
    });
    for (Operation *op : found)
      if (auto product = dyn_cast<MatmulOp>(op))
        recomposeProduct(product);
      else
        gelus += recomposeGelu(op, patterns);
    unfoldHeads(module);
    transposes = keepRowOrder(module);
    SmallVector<MatmulOp> all;
    module.walk([&](MatmulOp product) { all.push_back(product); });
    for (MatmulOp product : all)
      biases += takeBias(product);
    views = readAttentionInPlace(module);
    if (gelus || norms || attentions)
      eraseUnread();
  }

private:
  /// A matrix that a transpose of its last two dimensions gives is read as it was. Not a left factor of more
  /// dimensions: the product with its rows would no longer be a single one.
  void recomposeProduct(MatmulOp product) {
    for (unsigned factor : {0u, 1u}) {
      auto transpose = product->getOperand(factor).getDefiningOp<TransposeOp>();
      const int64_t rank = transpose ? transpose.getY().getType().getRank() : 0;
      SmallVector<int64_t> last = llvm::to_vector(llvm::seq<int64_t>(0, rank));
      if (rank >= 2)
        std::swap(last[rank - 2], last[rank - 1]);
      if (rank < 2 || transpose.getPermutation() != ArrayRef<int64_t>(last) || (factor == 0 && rank > 2))
        continue;
      product->setOperand(factor, transpose.getX());
      if (factor == 0)
        product.setTransposeA(!product.getTransposeA());
      else
        product.setTransposeB(!product.getTransposeB());
      Patterns::eraseUnused(transpose);
      ++products;
    }
  }

  /// A row that a sum adds to a product, or to a reshape of its rows, becomes its bias; products with one matrix are
  /// single ones for that.
  static bool takeBias(MatmulOp product) {
    auto y = cast<RankedTensorType>(product.getY().getType());
    auto view = Patterns::onlyReader<ReshapeOp>(product.getY());
    Value made = product.getY();
    if (view && view.getY().getType().getRank() > 0 && view.getY().getType().getShape().back() == y.getShape().back())
      made = view.getY();
    auto sum = Patterns::onlyReader<AddOp>(made);
    Value row = sum ? Patterns::addedRow(sum, made) : Value();
    if (!row || product.getBias() || cast<RankedTensorType>(product.getB().getType()).getRank() != 2 ||
        (y.getRank() > 2 && product.getTransposeA()))
      return false;
    OpBuilder b(sum);
    const int64_t columns = y.getShape().back();
    Value rows = product.getA();
    if (y.getRank() != 2)
      rows = Patterns::reshaped(
          b, rows, {y.getNumElements() / columns, cast<RankedTensorType>(rows.getType()).getShape().back()});
    auto biased = MatmulOp::create(b, product.getLoc(), rows, product.getB(), Patterns::reshaped(b, row, {columns}),
                                   product.getTransposeAAttr(), product.getTransposeBAttr(), product.getAlphaAttr(),
                                   product.getBetaAttr());
    sum.getY().replaceAllUsesWith(
        Patterns::reshaped(b, biased.getY(), cast<RankedTensorType>(sum.getY().getType()).getShape()));
    sum.erase();
    if (made != product.getY())
      view.erase();
    product.erase();
    return true;
  }

  /// Constants that no attribute names: a variable is reached by its symbol alone.
  void eraseUnread() {
    llvm::DenseSet<StringAttr> read;
    module.walk([&](Operation *op) {
      for (NamedAttribute attribute : op->getAttrs())
        attribute.getValue().walk([&](FlatSymbolRefAttr symbol) { read.insert(symbol.getAttr()); });
    });
    for (auto variable : llvm::make_early_inc_range(module.getOps<VariableOp>()))
      if (variable.getRole() == Role::Constant && !read.contains(variable.getSymNameAttr()))
        variable.erase();
  }

  ModuleOp module;
  Patterns patterns;
};

struct Recompose : sluice::impl::RecomposeBase<Recompose> {
  void runOnOperation() override {
    if (failed(applyPatternsGreedily(getOperation(), {}))) // folds alone always come to an end
      return signalPassFailure();
    Recomposer recomposer(getOperation());
    recomposer.run();
    gelus += recomposer.gelus;
    products += recomposer.products;
    attentions += recomposer.attentions;
    norms += recomposer.norms;
    transposes += recomposer.transposes;
    views += recomposer.views;
    biases += recomposer.biases;
  }
};

} // namespace
