// SPDX-License-Identifier: Apache-2.0
// Looks at sums alone, whatever names say: of the products that a sum adds, one is x W, another (x A) B of the same x.
// A convolution counts as a product, with a second one over single pixels.
// Between them lie factors, biases and views that keep the order of elements. Nothing else may read what is added, or
// a merged W would change it, too.
#include "frontend/Adapters.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

using namespace mlir;

namespace sluice {
namespace {

/// A matrix that a variable holds.
struct Weight {
  StringAttr variable; ///< null: the value is something else
  bool transposed = false;
  int64_t inputs = 0, outputs = 0;
};

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

Value withoutViews(Value value) {
  while (auto view = value.getDefiningOp<train::ReshapeOp>())
    value = view.getX();
  return value;
}

/// A product of a value with a weight, or a convolution, which has it as a matrix [outputs, all else].
struct Linear {
  Operation *op;

  Value x() const { return op->getOperand(0); }
  Weight weight() const {
    auto product = dyn_cast<train::MatmulOp>(op);
    return product ? weightOf(product) : weightOf(cast<train::ConvOp>(op));
  }
  bool hasBias() const {
    auto product = dyn_cast<train::MatmulOp>(op);
    return product ? !!product.getBias() : !!cast<train::ConvOp>(op).getBias();
  }
  double alpha() const {
    auto product = dyn_cast<train::MatmulOp>(op);
    return product ? product.getAlpha().convertToDouble() : 1;
  }
  /// Whether this one goes over its input as the other does, with all of its windows.
  bool movesAs(const Linear &other) const {
    auto conv = dyn_cast<train::ConvOp>(op), its = dyn_cast<train::ConvOp>(other.op);
    if (!conv || !its)
      return !conv && !its;
    return typeOf(conv.getW()).getShape().drop_front() == typeOf(its.getW()).getShape().drop_front() &&
           conv.getStrides() == its.getStrides() && conv.getPads() == its.getPads() &&
           conv.getDilations() == its.getDilations();
  }
  /// Whether a result depends on one pixel alone.
  bool isPointwise() const {
    auto conv = dyn_cast<train::ConvOp>(op);
    const auto areAll = [](ArrayRef<int64_t> list, int64_t number) {
      return llvm::all_of(list, [=](int64_t n) { return n == number; });
    };
    return !conv || (areAll(typeOf(conv.getW()).getShape().drop_front(2), 1) && areAll(conv.getStrides(), 1) &&
                     areAll(conv.getPads(), 0));
  }

private:
  /// Through transposes to the variable; none where something else lies between, which would not merge.
  static Weight weightOf(train::MatmulOp product) {
    Value matrix = product.getB();
    Weight weight{
        {}, false, typeOf(matrix).getDimSize(0), typeOf(matrix).getRank() == 2 ? typeOf(matrix).getDimSize(1) : 0};
    const bool isMatrix = typeOf(matrix).getRank() == 2;
    while (auto turned = matrix.getDefiningOp<train::TransposeOp>()) {
      if (turned.getPermutation() != ArrayRef<int64_t>{1, 0})
        return weight;
      weight.transposed = !weight.transposed;
      matrix = turned.getX();
    }
    if (auto read = matrix.getDefiningOp<train::ReadOp>(); read && isMatrix)
      weight.variable = read.getVariableAttr().getAttr();
    if (product.getTransposeB()) {
      weight.transposed = !weight.transposed;
      std::swap(weight.inputs, weight.outputs);
    }
    return weight;
  }
  static Weight weightOf(train::ConvOp conv) {
    const auto type = typeOf(conv.getW());
    Weight weight{{}, true, type.getNumElements() / type.getDimSize(0), type.getDimSize(0)};
    if (auto read = withoutViews(conv.getW()).getDefiningOp<train::ReadOp>())
      weight.variable = read.getVariableAttr().getAttr();
    return weight;
  }
};

/// The product of rows, or of all channels of images, with a weight; nothing for other ops.
std::optional<Linear> linearOf(Operation *op) {
  auto product = dyn_cast_or_null<train::MatmulOp>(op);
  auto conv = dyn_cast_or_null<train::ConvOp>(op);
  const bool isLinear =
      (product && !product.getTransposeA() && typeOf(product.getA()).getRank() == 2) || (conv && conv.getGroup() == 1);
  if (!isLinear || !Linear{op}.weight().variable)
    return std::nullopt;
  return Linear{op};
}

/// A product in a sum, which counts that many times.
struct Term {
  Linear product;
  double factor;
};

/// Products with weights that a sum consists of.
SmallVector<Term> termsOf(train::AddOp sum) {
  SmallVector<Term> terms;
  const int64_t elements = typeOf(sum.getY()).getNumElements();
  SmallVector<std::pair<Operation *, double>> parts = {{sum, 1.0}};
  while (!parts.empty()) {
    auto [op, factor] = parts.pop_back_val();
    if (isa<train::MatmulOp, train::ConvOp>(op)) {
      if (const auto product = linearOf(op))
        terms.push_back({*product, factor * product->alpha()});
      continue;
    }
    if (auto scale = dyn_cast<train::ScaleOp>(op))
      factor *= scale.getFactor().convertToDouble();
    if (isa<train::AddOp, train::ScaleOp, train::ReshapeOp>(op))
      for (Value operand : llvm::reverse(op->getOperands())) // the first one is taken first
        if (operand.getDefiningOp() && operand.hasOneUse() && typeOf(operand).getNumElements() == elements)
          parts.emplace_back(operand.getDefiningOp(), factor);
  }
  return terms;
}

/// x of (x A) B, with the factor that it is multiplied by on the way to B; nothing: there is no such A.
struct Narrow {
  std::optional<Linear> first;
  double factor = 1;

  /// Walks from (x A) B back to x A. Only what leaves the product linear lies between: a bias or an activation would
  /// make A and B together something that no single matrix is, and another reader would see x A itself.
  explicit Narrow(const Linear &second) {
    Value value = second.x();
    for (Operation *op = value.getDefiningOp(); op && value.hasOneUse(); op = value.getDefiningOp()) {
      if (auto scale = dyn_cast<train::ScaleOp>(op))
        factor *= scale.getFactor().convertToDouble();
      else if (const auto product = linearOf(op); product && !product->hasBias()) {
        first = product;
        factor *= product->alpha();
        return;
      } else if (!isa<train::ReshapeOp>(op))
        return;
      value = op->getOperand(0);
    }
  }

  /// Whether x is this value, but for a factor.
  bool reads(Value x) {
    for (Value value = first->x();; value = value.getDefiningOp()->getOperand(0)) {
      value = withoutViews(value);
      if (value == x)
        return true;
      auto scale = value.getDefiningOp<train::ScaleOp>();
      if (!scale)
        return false;
      factor *= scale.getFactor().convertToDouble();
    }
  }
};

/// The vector that a sum is multiplied by over lengths without a gradient, as DoRA has it; null: none.
StringAttr magnitudeOf(train::AddOp sum) {
  Value value = sum.getY();
  while (value.hasOneUse() && isa<train::ReshapeOp>(*value.user_begin()))
    value = value.user_begin()->getResult(0);
  auto product = value.hasOneUse() ? dyn_cast<train::MulOp>(*value.user_begin()) : train::MulOp();
  auto ratio =
      product ? withoutViews(product.getA() == value ? product.getB() : product.getA()).getDefiningOp<train::DivOp>()
              : train::DivOp();
  auto read = ratio ? withoutViews(ratio.getA()).getDefiningOp<train::ReadOp>() : train::ReadOp();
  return read && withoutViews(ratio.getB()).getDefiningOp<train::DetachOp>() ? read.getVariableAttr().getAttr()
                                                                             : StringAttr();
}

/// Finds adapters (Hu et al. 2021, LoRA) in @evaluate, where no dropout stands between a base and its adapter. Only
/// whole sums are looked at, so that a pair of products is met once.
class Search {
public:
  /// Counts the readers of each variable behind transposes: a matrix that two ops read is no adapter's, for merging it
  /// away would change the other reader. What only lengths are computed of, which no gradient passes, is read by none,
  /// nor is what multiplies zeros, as DoRA's dropout leaves where nothing is dropped.
  explicit Search(func::FuncOp function) : function(function) {
    llvm::DenseSet<Operation *> detached;
    for (Operation &op : llvm::reverse(function.getBody().front()))
      if (isa<train::DetachOp>(op) ||
          (!op.use_empty() && llvm::all_of(op.getUsers(), [&](Operation *user) { return detached.contains(user); })))
        detached.insert(&op);
    function.walk([&](train::ReadOp read) {
      SmallVector<Operation *> values = {read};
      while (!values.empty())
        for (Operation *user : values.pop_back_val()->getUsers())
          if (isa<train::TransposeOp>(user))
            values.push_back(user);
          else
            uses[read.getVariable()] += !detached.contains(user) && !multipliesZeros(user);
    });
  }

  SmallVector<train::AdapterAttr> run() {
    function.walk([&](train::AddOp sum) {
      if (isWhole(sum))
        look(sum);
    });
    return std::move(found);
  }

private:
  /// Whether the sum is no part of another one.
  static bool isWhole(train::AddOp sum) {
    Operation *op = sum;
    while (op->hasOneUse()) {
      op = *op->user_begin();
      if (isa<train::AddOp>(op))
        return false;
      if (!isa<train::ScaleOp, train::ReshapeOp>(op))
        return true;
    }
    return true;
  }

  void look(train::AddOp sum) {
    const SmallVector<Term> terms = termsOf(sum);
    for (const Term &narrow : terms) {
      if (narrow.product.hasBias() || !narrow.product.isPointwise() || !isAlone(narrow.product.weight()))
        continue;
      Narrow beside(narrow.product);
      if (beside.first && isAlone(beside.first->weight()))
        (void)llvm::any_of(terms, [&](const Term &base) { return add(sum, base, narrow, beside); });
    }
  }

  /// Whether the one is an adapter of the other.
  bool add(train::AddOp sum, const Term &base, const Term &narrow, Narrow beside) {
    if (base.product.op == narrow.product.op || base.factor == 0)
      return false;
    const Weight whole = base.product.weight(), first = beside.first->weight(), second = narrow.product.weight();
    const int64_t rank = first.outputs;
    const bool fits = base.product.x().getType() == beside.first->x().getType() &&
                      base.product.movesAs(*beside.first) && first.inputs == whole.inputs && second.inputs == rank &&
                      second.outputs == whole.outputs && rank < std::min(whole.inputs, whole.outputs);
    if (!fits || !beside.reads(withoutViews(base.product.x())))
      return false;
    Builder b(function.getContext());
    const double scale = narrow.factor * beside.factor / base.factor;
    // The sum is base.factor W + narrow.factor beside.factor A B, and what is merged stands where W does.
    found.push_back(train::AdapterAttr::get(b.getContext(), whole.variable, first.variable, second.variable,
                                            b.getF64FloatAttr(scale), whole.transposed, first.transposed,
                                            second.transposed, !isAlone(whole), magnitudeOf(sum)));
    return true;
  }

  static bool multipliesZeros(Operation *op) {
    auto difference = isa<train::MatmulOp, train::ConvOp>(op)
                          ? withoutViews(op->getOperand(0)).getDefiningOp<train::SubOp>()
                          : train::SubOp();
    return difference && withoutViews(difference.getA()) == withoutViews(difference.getB());
  }
  bool isAlone(const Weight &weight) const { return uses.lookup(weight.variable.getValue()) == 1; }

  func::FuncOp function;
  llvm::StringMap<int> uses; ///< of variables, whichever way they lie
  SmallVector<train::AdapterAttr> found;
};

} // namespace

Status checkMagnitudes(ModuleOp module) {
  const auto adapters = train::adaptersOf(module);
  for (auto variable : module.getOps<train::VariableOp>())
    if (variable.getInit() == train::Init::Norm && llvm::none_of(adapters, [&](train::AdapterAttr adapter) {
          return adapter.getMagnitude() == variable.getSymNameAttr();
        }))
      return Error{"--adapter: of '" + variable.getSymName().str() +
                   "' it is not known what it is the length of, as of a weight that several nodes read: leave that out "
                   "of targets, or use lora"};
  return Success{};
}

void noteAdapters(ModuleOp module) {
  auto evaluate = module.lookupSymbol<func::FuncOp>("evaluate");
  SmallVector<train::AdapterAttr> adapters = evaluate ? Search(evaluate).run() : SmallVector<train::AdapterAttr>();
  if (!adapters.empty())
    train::setAdapters(module, adapters);
}

} // namespace sluice
