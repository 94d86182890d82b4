// SPDX-License-Identifier: Apache-2.0
// Decode steps: caches, and attention to them.
#include "ir/Cache.h"
#include "ir/Rules.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

#define GET_OP_CLASSES
#include "ir/CacheOps.cpp.inc"

/// As the op sees it, whatever tensor it is a view of.
static SmallVector<int64_t> viewed(Value value, ViewAttr view) {
  return SmallVector<int64_t>(view ? view.getShape() : extents(value));
}

/// Whether a view stays within its tensor.
static bool isWithin(ViewAttr view, int64_t elements) {
  int64_t last = 0;
  SmallVector<int64_t> steps(view.getSteps());
  steps.push_back(1);
  for (auto [extent, step] : llvm::zip_equal(view.getShape(), steps)) {
    int64_t distance;
    if (llvm::MulOverflow(extent - 1, step, distance) || llvm::AddOverflow(last, distance, last))
      return false;
  }
  return !llvm::AddOverflow(last, view.getOffset(), last) && last < elements;
}

LogicalResult CacheRowsOp::verify() {
  const SmallVector<int64_t> x = viewed(getX(), getViewAttr());
  const ArrayRef<int64_t> cache = extents(getCache());
  const bool fits = x.size() == 4 && cache.size() == 4 && x[0] == cache[0] && x[1] == cache[1] && x[2] <= cache[2] &&
                    x[3] == cache[3];
  const bool places = !getPlaces() || (extents(getPlaces()) == ArrayRef<int64_t>{cache[0]} && fits && x[2] == 1);
  if (!fits || !places || ranked(getX()).getElementType() != ranked(getCache()).getElementType() ||
      (getViewAttr() && !isWithin(getViewAttr(), elements(getX().getType())))) // C2
    return emitOpError() << "stores rows of " << getX().getType() << " in " << getCache().getType()
                         << (getPlaces() ? ", one at the place of each text" : "") << ", which do not fit";
  return success();
}

LogicalResult CacheRowsOp::verifySymbolUses(SymbolTableCollection &table) {
  const FlatSymbolRefAttr symbol = variableOf(getCache());
  auto variable = symbol ? table.lookupNearestSymbolFrom<VariableOp>(*this, symbol) : VariableOp();
  if (!variable || !variable->hasAttr(cacheAttribute)) // C1
    return emitOpError() << "stores rows in "
                         << (symbol ? "'" + symbol.getValue() + "'" : llvm::Twine("what is no variable"))
                         << ", which is no cache";
  return success();
}

KERNEL(CacheRowsOp) {
  KernelCalls calls(*this);
  arguments::StoredRows kernel{};
  const SmallVector<int64_t> x = viewed(getX(), getViewAttr());
  for (int64_t extent : x)
    kernel.x.append(extent);
  kernel.cache = calls.shape(out(0));
  kernel.view = listOf(getViewAttr());
  return calls.object(kernel, "run", {in(0), getPlaces() ? in(1) : noSlot, out(0)});
}

int64_t CacheRowsOp::bytesMoved() { return 2 * bytes(getX().getType()); }

LogicalResult CachedAttentionOp::verify() {
  const SmallVector<int64_t> q = viewed(getQ(), getQViewAttr());
  const ArrayRef<int64_t> k = extents(getK()), v = extents(getV());
  const bool ranks = q.size() == 4 && k.size() == 4 && v.size() == 4;
  if (!ranks || q[2] != 1 || k[0] != q[0] || q[1] % k[1] != 0 || k[3] != q[3] || v.take_front(3) != k.take_front(3) ||
      extents(getPlaces()) != ArrayRef<int64_t>{q[0]} || extents(getY()) != ArrayRef<int64_t>{q[0], q[1], 1, v[3]} ||
      (getQViewAttr() && !isWithin(getQViewAttr(), elements(getQ().getType())))) // C1
    return emitOpError() << "attention of queries " << getQ().getType() << ", keys " << getK().getType()
                         << " and values " << getV().getType() << " does not fit";
  if (getMasks().size() > 2) // C2
    return emitOpError() << "has " << getMasks().size() << " masks, and takes what is added and what is kept";
  const SmallVector<int64_t> scores = {q[0], q[1], 1, k[2]};
  SmallVector<int64_t> all;
  for (Value mask : getMasks())
    if (extents(mask).empty() || !broadcast(extents(mask), scores, all) || all != scores) // C2
      return emitOpError() << "mask " << mask.getType() << " does not broadcast to the scores of queries "
                           << getQ().getType() << " and keys " << getK().getType();
  return success();
}

KERNEL(CachedAttentionOp) {
  KernelCalls calls(*this);
  arguments::CachedAttention kernel{};
  for (int64_t extent : viewed(getQ(), getQViewAttr()))
    kernel.q.append(extent);
  kernel.k = calls.shape(in(1)), kernel.v = calls.shape(in(2));
  kernel.scale = getScale().convertToFloat();
  if (getMask())
    kernel.mask = calls.shape(in(4));
  if (getKept())
    kernel.kept = calls.shape(in(5));
  kernel.qView = listOf(getQViewAttr());
  return calls.object(kernel, "run",
                      {in(0), in(1), in(2), in(3), getMask() ? in(4) : noSlot, getKept() ? in(5) : noSlot, out(0)});
}

int64_t CachedAttentionOp::flops() {
  const ArrayRef<int64_t> y = extents(getY()), k = extents(getK());
  return 2 * y[0] * y[1] * k[2] * (k[3] + y[3]);
}
