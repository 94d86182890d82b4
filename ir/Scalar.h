// SPDX-License-Identifier: Apache-2.0
// What the scalar rules of elementwise ops are written with: arith and math ops on f32, at one place.
#pragma once

#include "ir/Rules.h"
#include "ir/ScalarNames.h"

#include <cmath>

namespace sluice::train {

/// Shorthand for scalar arithmetic at one place.
struct Scalar {
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value constant(double v) const {
    return mlir::arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(v)));
  }
  mlir::Value add(mlir::Value x, mlir::Value y) const { return mlir::arith::AddFOp::create(b, loc, x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) const { return mlir::arith::SubFOp::create(b, loc, x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) const { return mlir::arith::MulFOp::create(b, loc, x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y) const { return mlir::arith::DivFOp::create(b, loc, x, y); }
  mlir::Value compare(mlir::arith::CmpFPredicate p, mlir::Value x, mlir::Value y) const {
    return mlir::arith::CmpFOp::create(b, loc, p, x, y);
  }
  mlir::Value select(mlir::Value c, mlir::Value x, mlir::Value y) const {
    return mlir::arith::SelectOp::create(b, loc, c, x, y);
  }
  mlir::Value exp(mlir::Value x) const { return mlir::math::ExpOp::create(b, loc, x); }
  mlir::Value log(mlir::Value x) const { return mlir::math::LogOp::create(b, loc, x); }
  mlir::Value sqrt(mlir::Value x) const { return mlir::math::SqrtOp::create(b, loc, x); }
  mlir::Value sin(mlir::Value x) const { return mlir::math::SinOp::create(b, loc, x); }
  mlir::Value cos(mlir::Value x) const { return mlir::math::CosOp::create(b, loc, x); }
  mlir::Value atan(mlir::Value x) const { return mlir::math::AtanOp::create(b, loc, x); }
  /// `x`, which generated kernels call `name`.
  mlir::Value named(llvm::StringRef name, mlir::Value x) const {
    x.setLoc(withScalarName(loc, name));
    return x;
  }
  mlir::Value negative(mlir::Value x) const { return sub(constant(0), x); }
  /// 1 / (1 + e^-x). For large negative x the exponential is infinite and the quotient 0, as it should be.
  mlir::Value logistic(mlir::Value x) const { return div(constant(1), add(constant(1), exp(negative(x)))); }
  /// log(1 + x) for x >= 0: what 1 + x rounds away of x, the factor gives back (W. Kahan).
  mlir::Value log1p(mlir::Value x) const {
    mlir::Value sum = add(constant(1), x), lost = div(x, sub(sum, constant(1)));
    return select(compare(mlir::arith::CmpFPredicate::OEQ, sum, constant(1)), x, mul(log(sum), lost));
  }
  /// -x where `sign` is below 0.
  mlir::Value withSign(mlir::Value sign, mlir::Value x) const {
    return select(compare(mlir::arith::CmpFPredicate::OLT, sign, constant(0)), negative(x), x);
  }
  mlir::Value magnitude(mlir::Value x) const { return withSign(x, x); }
  /// The probability that gelu multiplies x by: that of a normal variable below x, or its approximation by tanh, where
  /// (1 + tanh(u)) / 2 is the logistic function of 2 u, which keeps its digits where tanh is near -1.
  mlir::Value below(mlir::Value x, bool tanh) const {
    if (tanh)
      return logistic(mul(constant(M_SQRT2 * M_2_SQRTPI), add(x, mul(constant(0.044715), mul(x, mul(x, x))))));
    mlir::Value odd = mlir::math::ErfOp::create(b, loc, mul(x, constant(M_SQRT1_2)));
    return mul(constant(0.5), add(constant(1), odd));
  }
  /// 1 / sqrt(variance + epsilon)
  mlir::Value rstd(mlir::Value variance, const llvm::APFloat &epsilon) const {
    mlir::Value deviation = mlir::math::SqrtOp::create(b, loc, add(variance, constant(epsilon.convertToDouble())));
    return named("rstd", div(constant(1), deviation));
  }
  mlir::Value xhat(mlir::Value x, mlir::Value mean, mlir::Value rstd) const {
    return named("xhat", mul(sub(x, mean), rstd));
  }
};

} // namespace sluice::train

/// The rule of an op: its scalar results from the scalars `v`, made by `builder`.
#define RULE(Op) llvm::SmallVector<mlir::Value> Op::buildScalar(OpBuilder &builder, ValueRange v)
#define SCALAR                                                                                                         \
  Scalar s { builder, getLoc() }
