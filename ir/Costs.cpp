// SPDX-License-Identifier: Apache-2.0
// The Costed methods that differ from the default: floating-point operations of convolutions, products and fused
// regions.
#include "ir/Train.h"

using namespace mlir;
using namespace sluice::train;

/// Every element of `output` takes one multiply-add for every weight of its filter.
static int64_t convFlops(Type output, Type weights) {
  auto w = cast<RankedTensorType>(weights);
  return 2 * elements(output) * (elements(w) / w.getDimSize(0));
}

int64_t ConvOp::flops() { return convFlops(getY().getType(), getW().getType()); }
int64_t ConvTransposeOp::flops() { return convFlops(getX().getType(), getW().getType()); }
int64_t ConvBackwardDataOp::flops() { return convFlops(getDy().getType(), getW().getType()); }
int64_t ConvBackwardWeightOp::flops() { return convFlops(getDy().getType(), getDw().getType()); }

int64_t MatmulOp::flops() {
  auto a = cast<RankedTensorType>(getA().getType());
  int64_t inner = a.getDimSize(a.getRank() - (getTransposeA() ? 2 : 1));
  return 2 * elements(getY().getType()) * inner;
}

int64_t FusedOp::flops() {
  int64_t perElement = static_cast<int64_t>(getBody().front().getOperations().size()) - 1;
  return elements(domain()) * std::max<int64_t>(1, perElement);
}
