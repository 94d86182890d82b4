// SPDX-License-Identifier: Apache-2.0
// The ring is larger than the last cache, so that what comes round again is in none.
#include "tools/CalibrationBench.h"

#include "runtime/FreeMemory.h"

#include <algorithm>
#include <unistd.h>

using namespace sluice;
using nlohmann::json;

namespace {

constexpr size_t mebibyte = 1 << 20, zeroBytes = 2 * mebibyte;
/// Beside what a kernel is said to touch: its operands and its scratch must not overlap.
constexpr size_t leastRing = 64 << 10;

/// Twice the largest cache, where the machine has that to spare.
size_t bytesBeyondCaches() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#else
  const long cache = 0;
#endif
  const size_t wanted = std::clamp(2 * static_cast<size_t>(std::max(0l, cache)), 192 * mebibyte, 640 * mebibyte);
  return std::max(64 * mebibyte, std::min(wanted, machineMemory().available / 4) / mebibyte * mebibyte);
}

} // namespace

Bench::Bench(DataType type)
    : type(type), arenaBytes(bytesBeyondCaches()), ring(arenaBytes), session(arenaBytes + zeroBytes, 0, 0) {
  clear(session.compute, device(0, {static_cast<int64_t>(arenaBytes + zeroBytes)}, Layout::RowMajor, DataType::U8),
        "calibrate");
}

Tensor Bench::place(Shape shape, Layout layout, DataType type) {
  Tensor tensor = device(0, shape, layout, type);
  const size_t bytes = (tensor.bytes() + 255) / 256 * 256;
  if (next + bytes > ring)
    next = 0;
  tensor.offset = next;
  next += bytes;
  return tensor;
}

double Bench::taken() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

double Bench::timed(int repeats, const Run &run) {
  session.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i)
    run(session.compute);
  session.synchronize();
  return std::max(1e-9, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

double Bench::seconds(size_t around, const Run &run) {
  ring = around;
  next = 0;
  double best = once(1, run);
  const int repeats = std::clamp(static_cast<int>(2e-3 / best), 1, 200), rounds = best > 5e-3 ? 1 : 2;
  for (int i = 0; i < rounds; ++i) // so many in a row that waking the threads counts for nothing
    best = std::min(best, once(repeats, run));
  return best;
}

void Bench::sample(const std::string &kind, std::vector<double> size, double amount, size_t bytes, const Run &run) {
  if (!fits(bytes))
    return;
  size.push_back(0);
  for (size_t around : {std::min(arenaBytes, 2 * (bytes + leastRing)), arenaBytes}) {
    size.back() = planner::surroundings(static_cast<double>(around));
    measured.push_back({kind, {size, amount / seconds(around, run)}, amount, around, run});
    if (around > arenaBytes / 2)
      break;
  }
}

double Bench::expected(const Measured &one) const {
  std::vector<planner::Sample> others;
  for (const Measured &other : measured)
    if (&other != &one && other.kind == one.kind)
      others.push_back(other.sample);
  return others.empty() ? one.sample.rate : planner::rateNear(others, one.sample.size);
}

void Bench::repeatSlowest(double mostSeconds) {
  const double end = taken() + mostSeconds;
  std::vector<std::pair<double, Measured *>> order;
  for (Measured &one : measured)
    if (one.run)
      order.emplace_back(one.sample.rate / expected(one), &one);
  std::sort(order.begin(), order.end());
  for (auto &[share, one] : order) {
    if (share > 1 || taken() > end)
      break;
    one->sample.rate = std::max(one->sample.rate, one->amount / seconds(one->around, one->run));
  }
}

json Bench::samples() const {
  json list = json::array();
  for (const Measured &one : measured) {
    list.push_back({{"kind", one.kind}, {"size", one.sample.size}, {"rate", one.sample.rate}});
    if (type == DataType::BF16)
      list.back()["type"] = "bf16";
  }
  return list;
}
