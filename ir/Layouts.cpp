// SPDX-License-Identifier: Apache-2.0
// The LayoutAware methods that differ from the default: convolution weights and their gradients stay row-major.
#include "ir/Train.h"

using namespace mlir;
using namespace sluice::train;

bool ConvOp::isLayoutFixed(unsigned operand) { return operand == 1; }
bool ConvTransposeOp::isLayoutFixed(unsigned operand) { return operand == 1; }
bool ConvBackwardDataOp::isLayoutFixed(unsigned operand) { return operand == 1; }
bool ConvBackwardWeightOp::isResultLayoutFixed(unsigned result) { return result == 0; }

LayoutWish FusedOp::layoutWish() {
  return getSums() || !getBody().getOps<UniformOp>().empty() ? LayoutWish::ChannelsLast : LayoutWish::Follow;
}
