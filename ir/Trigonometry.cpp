// SPDX-License-Identifier: Apache-2.0
// The scalar rules of train.trigonometric and of its gradient, from sine, cosine, arc tangent, exponential and
// logarithm, without cancellation where a result is small.
#include "ir/Scalar.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

using P = arith::CmpFPredicate;

/// sqrt((1 - x) (1 + x)), to the last digits where x is near 1.
Value leg(const Scalar &s, Value x) { return s.sqrt(s.mul(s.sub(s.constant(1), x), s.add(s.constant(1), x))); }
/// (e^x - e^-x) / 2; below 1, where that cancels, by its series (S. Moshier, Cephes).
Value sinh(const Scalar &s, Value x) {
  Value size = s.magnitude(x), e = s.exp(size), square = s.mul(x, x);
  Value large = s.withSign(x, s.mul(s.constant(0.5), s.sub(e, s.div(s.constant(1), e))));
  Value series = s.add(s.mul(s.constant(2.03721912945e-4), square), s.constant(8.33028376239e-3));
  series = s.mul(s.mul(s.add(s.mul(series, square), s.constant(1.66667160211e-1)), square), x);
  return s.select(s.compare(P::OLT, size, s.constant(1)), s.add(series, x), large);
}
Value cosh(const Scalar &s, Value x) {
  Value e = s.exp(s.magnitude(x));
  return s.mul(s.constant(0.5), s.add(e, s.div(s.constant(1), e)));
}
/// The inverse of sinh. Where x^2 would overflow, or the 1 beside it is lost, log(2 |x|).
Value asinh(const Scalar &s, Value x) {
  Value size = s.magnitude(x), square = s.mul(x, x), root = s.sqrt(s.add(square, s.constant(1)));
  Value near = s.log1p(s.add(size, s.div(square, s.add(s.constant(1), root))));
  Value far = s.add(s.log(size), s.constant(M_LN2));
  return s.withSign(x, s.select(s.compare(P::OLT, size, s.constant(1e4)), near, far));
}
Value acosh(const Scalar &s, Value x) {
  Value above = s.sub(x, s.constant(1)), root = s.mul(s.sqrt(above), s.sqrt(s.add(x, s.constant(1))));
  Value near = s.log1p(s.add(above, root)), far = s.add(s.log(x), s.constant(M_LN2));
  return s.select(s.compare(P::OGT, x, s.constant(1e4)), far, near);
}
/// log((1 + x) / (1 - x)) / 2, whose argument is 1 + 2 x / (1 - x).
Value atanh(const Scalar &s, Value x) {
  Value size = s.magnitude(x), rest = s.sub(s.constant(1), size), twice = s.div(s.add(size, size), rest);
  Value near = s.log1p(twice), far = s.log(twice);
  Value whole = s.select(s.compare(P::OGT, twice, s.constant(1e8)), far, near);
  return s.withSign(x, s.mul(s.constant(0.5), whole));
}
Value inverted(const Scalar &s, Value x) { return s.div(s.constant(1), x); }
/// The slope of `function` at x.
Value slope(const Scalar &s, Trigonometry function, Value x) {
  switch (function) {
  case Trigonometry::Sin:
    return s.cos(x);
  case Trigonometry::Cos:
    return s.negative(s.sin(x));
  case Trigonometry::Tan: {
    Value c = s.cos(x);
    return inverted(s, s.mul(c, c));
  }
  case Trigonometry::Asin:
    return inverted(s, leg(s, x));
  case Trigonometry::Acos:
    return s.div(s.constant(-1), leg(s, x));
  case Trigonometry::Atan:
    return inverted(s, s.add(s.constant(1), s.mul(x, x)));
  case Trigonometry::Sinh:
    return cosh(s, x);
  case Trigonometry::Cosh:
    return sinh(s, x);
  case Trigonometry::Asinh:
    return inverted(s, s.sqrt(s.add(s.mul(x, x), s.constant(1))));
  case Trigonometry::Acosh:
    return inverted(s, s.mul(s.sqrt(s.sub(x, s.constant(1))), s.sqrt(s.add(x, s.constant(1)))));
  case Trigonometry::Atanh:
    return inverted(s, s.mul(s.sub(s.constant(1), x), s.add(s.constant(1), x)));
  }
  return {};
}

} // namespace

RULE(TrigonometricOp) {
  SCALAR;
  Value x = v[0];
  switch (getFunction()) {
  case Trigonometry::Sin:
    return {s.sin(x)};
  case Trigonometry::Cos:
    return {s.cos(x)};
  case Trigonometry::Tan:
    return {s.div(s.sin(x), s.cos(x))};
  case Trigonometry::Asin: // half the angle has the tangent x / (1 + sqrt(1 - x^2))
    return {s.mul(s.constant(2), s.atan(s.div(x, s.add(s.constant(1), leg(s, x)))))};
  case Trigonometry::Acos:
    return {s.mul(s.constant(2), s.atan(s.sqrt(s.div(s.sub(s.constant(1), x), s.add(s.constant(1), x)))))};
  case Trigonometry::Atan:
    return {s.atan(x)};
  case Trigonometry::Sinh:
    return {sinh(s, x)};
  case Trigonometry::Cosh:
    return {cosh(s, x)};
  case Trigonometry::Asinh:
    return {asinh(s, x)};
  case Trigonometry::Acosh:
    return {acosh(s, x)};
  case Trigonometry::Atanh:
    return {atanh(s, x)};
  }
  return {};
}
RULE(TrigonometricBackwardOp) {
  SCALAR;
  return {s.mul(v[0], slope(s, getFunction(), v[1]))};
}
