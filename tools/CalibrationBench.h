// SPDX-License-Identifier: Apache-2.0
// Where kernels are measured, see Calibrate.cpp.
#pragma once

#include "passes/planner/Profile.h"
#include "runtime/Runtime.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace sluice {

/// Kernels in an arena whose places they go round. What runs may be kept and run again later: it owns its kernel.
class Bench {
public:
  using Run = std::function<void(Stream &)>;

  explicit Bench(DataType type);

  /// Place for a tensor, after the last one; the arena is a ring.
  Tensor place(Shape shape, Layout layout = Layout::RowMajor, DataType type = DataType::F32);
  Tensor space(size_t bytes) { return place({static_cast<int64_t>(bytes)}, Layout::RowMajor, DataType::U8); }
  /// Of the bench's type.
  Tensor placeOwn(Shape shape, Layout layout = Layout::RowMajor) { return place(shape, layout, type); }
  /// Ids that name the first row or class: nothing else ever lies there. 2 MiB at most.
  Tensor zeros(Shape shape) const { return device(arenaBytes, shape, Layout::RowMajor, DataType::I64); }

  /// Whether a kernel that touches so many bytes can be measured.
  bool fits(size_t bytes) const { return bytes <= arenaBytes / 2; }

  /// Seconds of so many runs in the whole arena.
  double total(int repeats, const Run &run) {
    ring = arenaBytes, next = 0;
    return timed(repeats, run);
  }

  /// Seconds since the bench was made.
  double taken() const;

  /// Seconds of one `run`, whose operands go round in so many bytes; short ones are repeated to two milliseconds.
  double seconds(size_t around, const Run &run);

  /// Files how fast a kernel that takes places for so many bytes does that amount: with operands that were touched a
  /// moment ago, and with some that no cache holds any more. Tensors have the bench's type.
  void sample(const std::string &kind, std::vector<double> size, double amount, size_t bytes, const Run &run);
  /// Files a rate as it is.
  void file(const std::string &kind, std::vector<double> size, double rate) {
    measured.push_back({kind, {std::move(size), rate}, rate, 0, nullptr});
  }
  /// One that waits for memory: its rate is in those bytes.
  void sampleTraffic(const std::string &kind, double bytes, const Run &run) {
    sample(kind, {bytes}, bytes, static_cast<size_t>(bytes), run);
  }

  /// Measures once more what took longer than its like, until so many seconds are over: other work makes nothing
  /// faster.
  void repeatSlowest(double mostSeconds);

  nlohmann::json samples() const;

  const DataType type;

private:
  struct Measured {
    std::string kind;
    planner::Sample sample;
    double amount;
    size_t around;
    Run run;
  };

  double timed(int repeats, const Run &run);
  double once(int repeats, const Run &run) { return timed(repeats, run) / repeats; }
  /// The rate that others of the kind would make one expect; its own where there are none.
  double expected(const Measured &one) const;

  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  const size_t arenaBytes; ///< without the zeros behind it
  std::vector<Measured> measured;
  size_t next = 0, ring;

public:
  Session session;
};

/// Samples of kinds of kernels, each set in a file of its own.
void measureConvolutions(Bench &bench, double mostSeconds);
void measureProducts(Bench &bench);
void measureAttention(Bench &bench);
void measureTraffic(Bench &bench);
/// Scalar functions of regions, which are computed in float whatever is stored.
void measureFunctions(Bench &bench);
/// Of a region that does next to nothing.
double launchSeconds(Bench &bench);

} // namespace sluice
