// SPDX-License-Identifier: Apache-2.0
// See MovedElements.h.
#include "passes/MovedElements.h"

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

MovedElements::MovedElements(RankedTensorType type) {
  int64_t step = 1;
  for (int64_t extent : llvm::reverse(type.getShape())) {
    dims.insert(dims.begin(), Dim{{extent, step}});
    step *= extent;
  }
}

bool MovedElements::isMovement(Operation *op) { return isa_and_nonnull<ReshapeOp, TransposeOp, SliceOp>(op); }

bool MovedElements::through(Operation *op) {
  if (auto turned = dyn_cast<TransposeOp>(op))
    return transpose(turned.getPermutation()), true;
  if (auto part = dyn_cast<SliceOp>(op))
    return slice(dims[part.getAxis()], static_cast<int64_t>(part.getStart()), static_cast<int64_t>(part.getLength()));
  auto shaped = dyn_cast<ReshapeOp>(op);
  return shaped && reshape(cast<RankedTensorType>(shaped.getY().getType()).getShape());
}

void MovedElements::transpose(ArrayRef<int64_t> permutation) {
  dims = llvm::map_to_vector(permutation, [&](int64_t i) { return dims[static_cast<size_t>(i)]; });
}

// A dimension of one element may have any step: it gets the one that it would have in a row-major tensor, so that equal
// views are equal attributes.
ViewAttr MovedElements::view(MLIRContext *context) const {
  SmallVector<int64_t> shape(dims.size(), 1), steps(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 0;) {
    Dim dim = dims[i];
    merge(dim);
    if (dim.size() > 1)
      return {};
    if (!dim.empty())
      shape[i] = dim.front().extent, steps[i] = dim.front().step;
    else if (i + 1 < dims.size()) // as if it were row-major
      steps[i] = steps[i + 1] * shape[i + 1];
  }
  if (dims.size() < 2 || steps.back() != 1)
    return {};
  steps.pop_back();
  return ViewAttr::get(context, shape, offset, steps);
}

SmallVector<MovedElements::Factor, 2> MovedElements::factors() const {
  Dim all;
  for (const Dim &dim : dims)
    llvm::append_range(all, dim);
  merge(all);
  return all;
}

SmallVector<MovedElements::Factor, 2> MovedElements::factorsOf(size_t dim) const {
  Dim one = dims[dim];
  merge(one);
  return one;
}

/// Neighbouring factors that walk on evenly become one; those of one element go.
void MovedElements::merge(Dim &dim) {
  Dim merged;
  for (const Factor &f : dim) {
    if (f.extent == 1)
      continue;
    if (!merged.empty() && merged.back().step == f.step * f.extent)
      merged.back() = {merged.back().extent * f.extent, f.step};
    else
      merged.push_back(f);
  }
  dim = merged;
}

/// Of a dimension of one step: of several factors a slice may begin in the middle of one.
bool MovedElements::slice(Dim &dim, int64_t start, int64_t length) {
  merge(dim);
  if (dim.size() > 1)
    return false;
  const int64_t step = dim.empty() ? 1 : dim.front().step;
  offset += start * step;
  dim = {{length, step}};
  return true;
}

// New extents take factors from the outermost on, whole or a part that divides one; what straddles two dimensions has
// no single step and is refused.
bool MovedElements::reshape(ArrayRef<int64_t> shape) {
  Dim all = factors();
  std::reverse(all.begin(), all.end()); // the outermost one is last
  SmallVector<Dim> made;
  for (int64_t left : shape) {
    Dim &dim = made.emplace_back();
    while (left > 1) {
      if (all.empty())
        return false; // of no elements
      Factor &next = all.back();
      const int64_t part = std::min(left, next.extent);
      if (left % part || next.extent % part)
        return false;
      dim.push_back({part, next.step * (next.extent / part)});
      left /= part;
      next.extent /= part;
      if (next.extent == 1)
        all.pop_back();
    }
  }
  dims = made;
  return true;
}
