// SPDX-License-Identifier: Apache-2.0
// What everybody asks about targets, in one table. Whose kernels are asked for their workspaces is in
// passes/EstimateCost.cpp, how a program is built in codegen/BuildExecutable.cpp. Standard library only.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

enum class Target { Host, Cuda };

struct TargetFacts {
  Target target;
  const char *name;         ///< --target, and the folder of its runtime
  const char *suffix;       ///< of emitted source
  const char *device;       ///< profile that is planned for unless --device says otherwise; null: this machine's
  const char *project;      ///< form of a project's CMakeLists.txt, in codegen/
  bool levels;              ///< programs can be built for a level of x86-64 (--cpu)
  bool reducedPrecision;    ///< tf32 and fp16 besides fp32 and bf16
  bool zerosStay;           ///< copies with zvc leave zeros out before the link, else after it
  int64_t workspaceOfFp32;  ///< bytes, where no --workspace-limit is given; 0: follows from the step
  int64_t workspaceOfOther; ///< in other precisions

  constexpr int64_t workspaceLimit(std::string_view precision) const {
    return precision == "fp32" ? workspaceOfFp32 : workspaceOfOther;
  }
};

/// In the order of the enumerators.
constexpr TargetFacts targetTable[] = {
    {Target::Host, "host", ".cpp", nullptr, "HostProject.cmake", true, false, false, 0, 0},
    // Engines of f32 without tensor cores need more workspace than those of other precisions.
    {Target::Cuda, "cuda", ".cu", "h200", "CudaProject.cmake", false, true, true, 256 << 20, 64 << 20},
};

constexpr const TargetFacts &factsOf(Target target) { return targetTable[static_cast<int>(target)]; }

} // namespace sluice
