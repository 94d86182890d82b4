// SPDX-License-Identifier: Apache-2.0
// Looks at sums alone, whatever names say: of the products that a sum adds, one is x W, another (x A) B of the same x.
// Between them lie factors, biases and views that keep the order of elements. Nothing else may read what is added, or
// a merged W would change it, too.
#include "frontend/Adapters.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace sluice {
namespace {

/// A matrix that a variable holds.
struct Weight {
  StringAttr variable; ///< null: the value is something else
  bool transposed = false;
  RankedTensorType type;
};

/// A product in a sum, which counts that many times.
struct Term {
  train::MatmulOp product;
  double factor;
};

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Through transposes to the variable; null where something else lies between, which would not merge.
Weight weightOf(Value matrix) {
  Weight weight{{}, false, typeOf(matrix)};
  while (auto turned = matrix.getDefiningOp<train::TransposeOp>()) {
    if (turned.getPermutation() != ArrayRef<int64_t>{1, 0})
      return weight;
    weight.transposed = !weight.transposed;
    matrix = turned.getX();
  }
  if (auto read = matrix.getDefiningOp<train::ReadOp>(); read && weight.type.getRank() == 2)
    weight.variable = read.getVariableAttr().getAttr();
  return weight;
}

/// A product of rows with a weight.
bool isLinear(train::MatmulOp product) {
  return product && !product.getTransposeA() && typeOf(product.getA()).getRank() == 2 &&
         weightOf(product.getB()).variable;
}

/// The weight as the product has it.
Weight weightOf(train::MatmulOp product) {
  Weight weight = weightOf(product.getB());
  if (product.getTransposeB()) {
    weight.transposed = !weight.transposed;
    weight.type =
        RankedTensorType::get({weight.type.getDimSize(1), weight.type.getDimSize(0)}, weight.type.getElementType());
  }
  return weight;
}

/// Products with weights that a sum consists of.
SmallVector<Term> termsOf(train::AddOp sum) {
  SmallVector<Term> terms;
  const int64_t elements = typeOf(sum.getY()).getNumElements();
  SmallVector<std::pair<Operation *, double>> parts = {{sum, 1.0}};
  while (!parts.empty()) {
    auto [op, factor] = parts.pop_back_val();
    if (auto product = dyn_cast<train::MatmulOp>(op)) {
      if (isLinear(product))
        terms.push_back({product, factor * product.getAlpha().convertToDouble()});
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

Value withoutViews(Value value) {
  while (auto view = value.getDefiningOp<train::ReshapeOp>())
    value = view.getX();
  return value;
}

/// x of (x A) B, with the factor that it is multiplied by on the way to B; null: there is no such A.
struct Narrow {
  train::MatmulOp first;
  double factor = 1;

  /// Walks from (x A) B back to x A. Only what leaves the product linear lies between: a bias or an activation would
  /// make A and B together something that no single matrix is, and another reader would see x A itself.
  explicit Narrow(train::MatmulOp second) {
    Value value = second.getA();
    for (Operation *op = value.getDefiningOp(); op && value.hasOneUse(); op = value.getDefiningOp()) {
      if (auto scale = dyn_cast<train::ScaleOp>(op))
        factor *= scale.getFactor().convertToDouble();
      else if (auto product = dyn_cast<train::MatmulOp>(op); product && isLinear(product) && !product.getBias()) {
        first = product;
        factor *= product.getAlpha().convertToDouble();
        return;
      } else if (!isa<train::ReshapeOp>(op))
        return;
      value = op->getOperand(0);
    }
  }

  /// Whether x is this value, but for a factor.
  bool reads(Value x) {
    for (Value value = first.getA();; value = value.getDefiningOp()->getOperand(0)) {
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

/// Finds adapters (Hu et al. 2021, LoRA) in @evaluate, where no dropout stands between a base and its adapter. Only
/// whole sums are looked at, so that a pair of products is met once.
class Search {
public:
  /// Counts the readers of each variable behind transposes: a matrix that two ops read is no adapter's, for merging it
  /// away would change the other reader.
  explicit Search(func::FuncOp function) : function(function) {
    function.walk([&](train::ReadOp read) {
      SmallVector<Operation *> values = {read};
      while (!values.empty())
        for (Operation *user : values.pop_back_val()->getUsers())
          if (isa<train::TransposeOp>(user))
            values.push_back(user);
          else
            ++uses[read.getVariable()];
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
    for (Term narrow : terms) {
      if (narrow.product.getBias() || !isAlone(weightOf(narrow.product)))
        continue;
      Narrow beside(narrow.product);
      if (beside.first && isAlone(weightOf(beside.first)))
        (void)llvm::any_of(terms, [&](Term base) { return add(base, narrow, beside); });
    }
  }

  /// Whether the one is an adapter of the other.
  bool add(Term base, Term narrow, Narrow beside) {
    if (base.product == narrow.product || base.factor == 0)
      return false;
    const Weight whole = weightOf(base.product), first = weightOf(beside.first), second = weightOf(narrow.product);
    const int64_t inputs = whole.type.getDimSize(0), outputs = whole.type.getDimSize(1),
                  rank = first.type.getDimSize(1);
    const bool fits = base.product.getA().getType() == beside.first.getA().getType() &&
                      first.type.getDimSize(0) == inputs && second.type.getDimSize(0) == rank &&
                      second.type.getDimSize(1) == outputs && rank < std::min(inputs, outputs);
    if (!fits || !beside.reads(withoutViews(base.product.getA())))
      return false;
    Builder b(function.getContext());
    const double scale = narrow.factor * beside.factor / base.factor;
    // The sum is base.factor W + narrow.factor beside.factor A B, and what is merged stands where W does.
    found.push_back(train::AdapterAttr::get(b.getContext(), whole.variable, first.variable, second.variable,
                                            b.getF64FloatAttr(scale), whole.transposed, first.transposed,
                                            second.transposed, !isAlone(whole)));
    return true;
  }

  bool isAlone(const Weight &weight) const { return uses.lookup(weight.variable.getValue()) == 1; }

  func::FuncOp function;
  llvm::StringMap<int> uses; ///< of variables, whichever way they lie
  SmallVector<train::AdapterAttr> found;
};

} // namespace

void noteAdapters(ModuleOp module) {
  auto evaluate = module.lookupSymbol<func::FuncOp>("evaluate");
  SmallVector<train::AdapterAttr> adapters = evaluate ? Search(evaluate).run() : SmallVector<train::AdapterAttr>();
  if (!adapters.empty())
    train::setAdapters(module, adapters);
}

} // namespace sluice
