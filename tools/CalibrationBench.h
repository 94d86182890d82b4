// SPDX-License-Identifier: Apache-2.0
// Where kernels are measured, see Calibrate.cpp.
#pragma once

#include "passes/planner/Profile.h"
#include "runtime/Runtime.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace sluice {

/// Kernels in an arena whose places they go round.
class Bench {
public:
  explicit Bench(DataType type) : type(type), session(arenaBytes, 0, 0) {
    clear(session.compute, device(0, {static_cast<int64_t>(arenaBytes)}, Layout::RowMajor, DataType::U8), "calibrate");
  }

  /// Place for a tensor, after the last one; the arena is a ring.
  Tensor place(Shape shape, Layout layout = Layout::RowMajor, DataType type = DataType::F32) {
    Tensor tensor = device(0, shape, layout, type);
    const size_t bytes = (tensor.bytes() + 255) / 256 * 256;
    if (next + bytes > ring)
      next = 0;
    tensor.offset = next;
    next += bytes;
    return tensor;
  }
  Tensor space(size_t bytes) { return place({static_cast<int64_t>(bytes)}, Layout::RowMajor, DataType::U8); }

  /// Whether a kernel that touches so many bytes can be measured.
  static bool fits(size_t bytes) { return bytes <= arenaBytes / 2; }

  /// Seconds of so many runs.
  template <typename Run> double total(int repeats, Run &&run) {
    session.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i)
      run(session.compute);
    session.synchronize();
    return std::max(1e-9, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  /// Whether the time that sampling may take is over.
  bool late() const { return std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(mostSeconds); }

  /// Seconds of one `run`, whose operands go round in so many bytes; short ones are repeated to two milliseconds.
  template <typename Run> double seconds(size_t around, Run &&run) {
    ring = around;
    next = 0;
    double best = once(1, run);
    const int repeats = std::clamp(static_cast<int>(2e-3 / best), 1, 200), rounds = best > 5e-3 ? 1 : 2;
    for (int i = 0; i < rounds; ++i) // so many in a row that waking the threads counts for nothing
      best = std::min(best, once(repeats, run));
    return best;
  }

  /// Files how fast a kernel that takes places for so many bytes does that amount: with operands that were touched a
  /// moment ago and, where caches would hold them, with some that were not. Tensors have the bench's type.
  template <typename Run>
  void sample(const std::string &kind, std::vector<double> size, double amount, size_t bytes, Run &&run) {
    const size_t near = std::min<size_t>(arenaBytes, 2 * (bytes + 4096));
    size.push_back(0);
    for (size_t around : {near, bytes < cachedBytes ? arenaBytes : near}) {
      size.back() = planner::surroundings(static_cast<double>(around));
      samples.push_back({{"kind", kind}, {"size", size}, {"rate", amount / seconds(around, run)}});
      if (type == DataType::BF16)
        samples.back()["type"] = "bf16";
      if (around == arenaBytes || bytes >= cachedBytes)
        break;
    }
  }

  const DataType type;
  Session session;
  nlohmann::json samples = nlohmann::json::array();

private:
  static constexpr double mostSeconds = 3.5;
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  template <typename Run> double once(int repeats, Run &&run) { return total(repeats, run) / repeats; }

  static constexpr size_t arenaBytes = size_t{192} << 20, cachedBytes = size_t{24} << 20;
  size_t next = 0, ring = arenaBytes;
};

} // namespace sluice
