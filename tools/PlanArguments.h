// SPDX-License-Identifier: Apache-2.0
// What sluice-plan was asked, and how its commands end.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::plan {

enum Exit { Ok = 0, BadInput = 1, Usage = 2, NoPlan = 3, Internal = 4 };

/// Thrown; ends the tool with this status.
struct Failure {
  Exit code;
  std::string message;
};

/// The flags of sluice-plan as given: of a model's sweep, then of a chain, then of packing.
struct Arguments {
  std::string model, strategies, output;
  int steps = 12;
  bool sweep = false, force = false;
  std::string problem, strategy = "auto", memory, release = "whole", allowLossy;
  std::string pack, pool, capacity;
  int64_t nodes = 0;
  bool json = false;
};

/// The text of an input file; Failure when it cannot be read.
std::string readFile(const std::string &path);
/// "1500000", "600MiB", "8GiB" as bytes; Failure names the option.
double sizeOf(const std::string &text, const char *option);

/// --pack: places static buffers; the exit status.
int packProblem(const Arguments &arguments);
/// --pool: what an allocator needs that places the buffers as they come, beside the load that static packing starts
/// from.
int searchPools(const Arguments &arguments);

} // namespace sluice::plan
