// SPDX-License-Identifier: Apache-2.0
// Gelu from the erf or tanh in its middle: what that is taken of is a polynomial of x, however its factors and powers
// are written, and after it stand 1, x and a half in any order.
#include "passes/Patterns.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// Coefficients of powers 0 to 3.
using Polynomial = std::array<double, 4>;

/// Around one erf or tanh, the `odd` function of the formula. x is not known from its place: each value that the
/// argument is made of is tried, and the polynomial of it says whether it is the one.
class GeluPattern {
public:
  GeluPattern(Operation *odd, const Patterns &patterns) : odd(odd), patterns(patterns) {}

  bool replace() {
    const bool tanh = isa<TanhOp>(odd);
    llvm::SetVector<Value> candidates;
    collect(odd->getOperand(0), candidates);
    for (Value candidate : candidates) {
      x = candidate;
      if (!isArgument(tanh))
        continue;
      if (Value product = wholeProduct()) {
        OpBuilder b(product.getDefiningOp());
        Value gelu = GeluOp::create(b, product.getLoc(), x, tanh);
        product.replaceAllUsesWith(gelu);
        Patterns::eraseUnused(product.getDefiningOp());
        return true;
      }
    }
    return false;
  }

private:
  static constexpr int deepest = 6; ///< ops above the erf or tanh

  /// What may be x: all that the argument is made of.
  void collect(Value value, llvm::SetVector<Value> &candidates, int depth = deepest) const {
    if (value.getType() == odd->getOperand(0).getType())
      candidates.insert(value);
    if (Operation *op = value.getDefiningOp(); depth > 0 && isa_and_nonnull<AddOp, MulOp, DivOp, ScaleOp>(op))
      for (Value operand : op->getOperands())
        collect(operand, candidates, depth - 1);
  }

  /// x / sqrt(2), or sqrt(2/pi) * (x + 0.044715 x^3).
  bool isArgument(bool tanh) const {
    const double linear = tanh ? M_SQRT1_2 * M_2_SQRTPI : M_SQRT1_2;
    const std::optional<Polynomial> p = polynomialOf(odd->getOperand(0));
    return p && (*p)[0] == 0 && Patterns::isAbout((*p)[1], linear) && (*p)[2] == 0 &&
           (tanh ? Patterns::isAbout((*p)[3], 0.044715 * linear) : (*p)[3] == 0);
  }

  /// Of x; none for what is no polynomial of it, or one of a higher degree.
  std::optional<Polynomial> polynomialOf(Value value, int depth = deepest) const {
    if (value == x)
      return Polynomial{0, 1, 0, 0};
    if (std::optional<double> constant = patterns.number(value))
      return Polynomial{*constant, 0, 0, 0};
    double factor;
    Value inner = patterns.unscaled(value, factor);
    Operation *op = value.getDefiningOp();
    if (depth == 0 || (inner == value && !isa_and_nonnull<AddOp, MulOp>(op)))
      return std::nullopt;
    const auto a = polynomialOf(inner == value ? op->getOperand(0) : inner, depth - 1);
    if (!a)
      return std::nullopt;
    if (inner != value)
      return product(*a, {factor, 0, 0, 0});
    const auto b = polynomialOf(op->getOperand(1), depth - 1);
    if (!b)
      return std::nullopt;
    return isa<MulOp>(op) ? product(*a, *b) : sum(*a, *b);
  }
  static Polynomial sum(Polynomial a, const Polynomial &b) {
    for (size_t i = 0; i < a.size(); ++i)
      a[i] += b[i];
    return a;
  }
  /// Nothing where the degree is above what GELU's argument has.
  static std::optional<Polynomial> product(const Polynomial &a, const Polynomial &b) {
    Polynomial result = {};
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t j = 0; j < b.size(); ++j)
        if (a[i] != 0 && b[j] != 0) {
          if (i + j >= result.size())
            return std::nullopt;
          result[i + j] += a[i] * b[j];
        }
    return result;
  }

  /// The product of 1 + odd, x and a half, each value on the way being read by the next op alone; null for none.
  Value wholeProduct() const {
    auto sum = Patterns::onlyReader<AddOp>(odd->getResult(0));
    if (!sum || !Patterns::isAbout(patterns.number(sum.getA() == odd->getResult(0) ? sum.getB() : sum.getA()), 1))
      return {};
    Value product = sum.getY();
    double outer = 1, factor;
    bool multiplied = false; // by x
    while (!multiplied || !Patterns::isAbout(outer, 0.5)) {
      if (auto scale = Patterns::onlyReader<ScaleOp>(product)) {
        outer *= scale.getFactor().convertToDouble();
        product = scale.getY();
        continue;
      }
      auto multiply = Patterns::onlyReader<MulOp>(product);
      if (!multiply || multiply.getType() != x.getType())
        return {};
      Value other = multiply.getA() == product ? multiply.getB() : multiply.getA();
      if (std::optional<double> number = patterns.number(other)) {
        outer *= *number;
      } else if (!multiplied && patterns.unscaled(other, factor) == x) {
        multiplied = true;
        outer *= factor;
      } else if (!multiplied && other == x) { // itself a product by a constant
        multiplied = true;
      } else {
        return {};
      }
      product = multiply.getY();
    }
    return product;
  }

  Operation *odd;
  const Patterns &patterns;
  Value x;
};

} // namespace

bool sluice::recomposeGelu(Operation *odd, const Patterns &patterns) { return GeluPattern(odd, patterns).replace(); }
