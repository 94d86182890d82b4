// SPDX-License-Identifier: Apache-2.0
// Walks the function twice, as two runs do, with a clock that counts the bytes touched.
#include "passes/kernels/Touches.h"

#include "passes/analysis/Storages.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace sluice;

namespace {

/// When a storage was touched, by the clock of bytes.
struct Life {
  double first = -1, last = -1;
};

/// The storages that an op touches, each once, with the bytes of it that it touches.
SmallVector<std::pair<int, double>, 4> touchedBy(Operation *op, const Storages &storages) {
  SmallVector<std::pair<int, double>, 4> touched;
  llvm::SmallSet<int, 8> seen;
  const auto note = [&](ArrayRef<int> places, auto values) {
    for (auto [place, value] : llvm::zip(places, values))
      if (seen.insert(place).second)
        touched.push_back({place, double(train::bytes(value.getType()))});
  };
  note(storages.reads(op), op->getOperands());
  note(storages.writes(op), op->getResults());
  return touched;
}

} // namespace

Touches::Touches(func::FuncOp function, ArrayRef<Operation *> ops) {
  const Storages storages(function);
  std::vector<Life> lives(storages.all().size()), before;
  double clock = 0;
  for (int run = 0; run < 2; ++run) {
    before = std::exchange(lives, std::vector<Life>(lives.size()));
    for (Operation *op : ops) {
      const auto touched = touchedBy(op, storages);
      double bytes = 0;
      for (const auto &[place, size] : touched)
        bytes += size;
      SmallVector<Touch, 4> &of = touches[op];
      of.clear();
      for (const auto &[place, size] : touched) {
        Life &life = lives[place];
        const Life &earlier = before[place];
        const bool isFirst = life.first < 0, stays = storages[place].outlivesStep();
        const double since = !isFirst ? clock - life.last : stays ? clock - earlier.last : earlier.last - earlier.first;
        of.push_back({size, since + bytes});
        life.first = isFirst ? clock : life.first;
        life.last = clock + bytes;
      }
      clock += bytes;
    }
  }
}

ArrayRef<Touch> Touches::of(Operation *op) const {
  const auto found = touches.find(op);
  return found == touches.end() ? ArrayRef<Touch>() : ArrayRef<Touch>(found->second);
}
