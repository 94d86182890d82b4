// SPDX-License-Identifier: Apache-2.0
// Gradients of broadcasting (SumTo) and broadcasts (BroadcastTo). A sum sees x as [kept][reduced][innermost]: tasks are
// ranges of the reduced positions by tiles of the innermost dimension, short blocks are added in float, the rest in
// double, in an order that depends on the shapes alone.
#include "runtime/Fused.h"
#include "runtime/host/ElementTypes.h"
#include "runtime/kernels/BroadcastTo.h"
#include "runtime/kernels/Strides.h"

#include <vector>

namespace sluice {

using Dimension = SumDimension;

struct SumTo::Impl {
  Dimension inner{};
  std::vector<Dimension> kept, reduced; ///< all others, innermost first
  int64_t keptCount = 1;
  Columns columns; ///< rows: reduced positions
  float scale = 1;

  int64_t slots() const {
    return inner.reduced ? columns.tasks() : columns.chunks * columns.columns;
  } ///< partials per kept position

  static int64_t offset(const std::vector<Dimension> &dimensions, int64_t index, int64_t Dimension::*stride) {
    int64_t offset = 0;
    for (const Dimension &d : dimensions) {
      offset += index % d.extent * (d.*stride);
      index /= d.extent;
    }
    return offset;
  }

  template <typename T> void partial(const T *x, int64_t keptIndex, int64_t taskIndex, double *partials) const {
    const Columns::Task task = columns.task(taskIndex);
    const T *base = x + offset(kept, keptIndex, &Dimension::strideX) + task.columnBegin;
    double totals[Columns::tileWidth] = {};
    float sums[Columns::tileWidth];
    for (int64_t begin = task.rowBegin; begin < task.rowEnd; begin += Columns::block) {
      std::fill_n(sums, task.width, 0.0f);
      for (int64_t row = begin; row < std::min(task.rowEnd, begin + Columns::block); ++row) {
        const T *from = base + offset(reduced, row, &Dimension::strideX);
        for (int64_t i = 0; i < task.width; ++i)
          sums[i] += widened(from[i]);
      }
      for (int64_t i = 0; i < task.width; ++i)
        totals[i] += static_cast<double>(sums[i]);
    }
    double *to = partials + keptIndex * slots();
    if (!inner.reduced) {
      std::copy_n(totals, task.width, to + task.chunk * columns.columns + task.columnBegin);
      return;
    }
    double total = 0;
    for (int64_t i = 0; i < task.width; ++i)
      total += totals[i];
    to[taskIndex] = total;
  }

  void finish(const double *partials, float *y, int64_t keptIndex) const {
    const double *from = partials + keptIndex * slots();
    float *to = y + offset(kept, keptIndex, &Dimension::strideY);
    const int64_t width = inner.reduced ? 1 : inner.extent, count = slots() / width;
    for (int64_t i = 0; i < width; ++i) {
      double total = 0;
      for (int64_t chunk = 0; chunk < count; ++chunk)
        total += from[chunk * width + i];
      to[i * inner.strideY] = static_cast<float>(total * static_cast<double>(scale));
    }
  }
};

SumTo::SumTo(Node node, const Tensor &x, const Tensor &y, float scale) : Kernel(node) {
  auto plan = std::make_shared<Impl>();
  std::vector<Dimension> all = sumDimensions(node, x, y);
  plan->inner = all.front();
  int64_t rows = 1;
  for (size_t i = 1; i < all.size(); ++i) {
    (all[i].reduced ? plan->reduced : plan->kept).push_back(all[i]);
    (all[i].reduced ? rows : plan->keptCount) *= all[i].extent;
  }
  if (all.size() == 1 && plan->inner.reduced &&
      plan->inner.extent % Columns::tileWidth == 0) { // one long row: many short ones
    rows = plan->inner.extent / Columns::tileWidth;
    plan->inner.extent = Columns::tileWidth;
    plan->reduced.push_back({rows, Columns::tileWidth, 0, true});
  }
  plan->columns = Columns(rows, plan->inner.extent);
  plan->scale = scale;
  workspace = sizeof(double) * static_cast<size_t>(plan->keptCount * plan->slots());
  impl = plan;
}

void SumTo::run(Stream &stream, const Tensor &x, const Tensor &y, const Tensor &scratch) const {
  float *py = stream.data<float>(y);
  double *partials = stream.data<double>(scratch);
  forStored(node, x.type, [&](auto *type) {
    const auto *px = stream.data<Stored<decltype(type)>>(x);
    stream.launch(node, "sum_to", [plan = impl.get(), px, py, partials] {
      const int64_t tasks = plan->columns.tasks();
      const int64_t elements =
          std::max<int64_t>(1, plan->columns.rowsPerChunk * std::min(plan->inner.extent, Columns::tileWidth));
      const int64_t grain = std::max<int64_t>(1, 16384 / elements);
      parallelRanges(plan->keptCount * tasks, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          plan->partial(px, i / tasks, i % tasks, partials);
      });
      parallelRanges(plan->keptCount, 256, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          plan->finish(partials, py, i);
      });
    });
  });
}

} // namespace sluice
