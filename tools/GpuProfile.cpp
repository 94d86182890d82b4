// SPDX-License-Identifier: Apache-2.0
// A profile is one card's: names of others begin alike (a laptop's RTX 4060), and some cards of one name have half of
// the memory. What nvidia-smi says in other words than these two counts as no GPU.
#include "tools/GpuProfile.h"

#include "passes/planner/Profile.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>

using namespace sluice;

namespace {

/// By NVIDIA's name without its own, as drivers say it.
constexpr std::pair<const char *, const char *> cards[] = {
    {"GeForce RTX 3060", "rtx-3060"},
    {"GeForce RTX 4060", "rtx-4060"},
    {"GeForce RTX 4060 Ti", "rtx-4060-ti-16"},
    {"GeForce RTX 4090", "rtx-4090"},
    {"GeForce RTX 5060 Ti", "rtx-5060-ti-16"},
    {"GeForce GTX 1080 Ti", "gtx-1080ti"},
    {"TITAN X (Pascal)", "titan-x"},
    {"Tesla V100-PCIE-16GB", "v100-pcie"},
    {"A100-SXM4-80GB", "a100"},
    {"H100 80GB HBM3", "h100"},
    {"H200", "h200"},
};

struct Gpu {
  std::string name; ///< empty: there is none
  double bytes = 0;
};

/// A driver that hangs must not hold the compiler up for long.
Gpu findGpu() {
  Gpu gpu;
  FILE *said = popen(
      "timeout 10 nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits 2>/dev/null </dev/null", "r");
  char line[256] = "";
  if (!said)
    return gpu;
  const bool any = fgets(line, sizeof line, said);
  while (any && fgetc(said) != EOF) { // so that it ends by itself
  }
  if (pclose(said) != 0 || !any)
    return gpu;
  const std::string text = line;
  const size_t comma = text.rfind(", ");
  if (comma == std::string::npos)
    return gpu;
  gpu.bytes = std::strtod(text.c_str() + comma + 2, nullptr) * 1024 * 1024;
  gpu.name = text.substr(0, comma);
  return gpu;
}

/// Empty: none.
std::string profileOf(const Gpu &gpu) {
  const std::string maker = "NVIDIA ";
  const std::string name = gpu.name.rfind(maker, 0) == 0 ? gpu.name.substr(maker.size()) : gpu.name;
  for (const auto &[card, profile] : cards)
    for (const auto &[shipped, text] : planner::shippedProfiles())
      if (name == card && shipped == profile)
        if (const Result<planner::Profile> known = planner::parseProfile(text);
            known && std::abs(gpu.bytes / static_cast<double>(known->memory) - 1) < 0.1) // ECC takes a sixteenth
          return profile;
  return "";
}

} // namespace

void sluice::chooseGpu(DriverOptions &options) {
  if (const char *named = std::getenv("SLUICE_DEVICE"); named && *named)
    return;
  const Gpu gpu = findGpu();
  if (gpu.name.empty())
    return;
  std::string &device = options.pipeline.device;
  if (const std::string profile = profileOf(gpu); !profile.empty()) {
    device = profile;
    std::cerr << "sluicec: note: planning for this machine's " << gpu.name << " (--device=" << device << ")\n";
  } else {
    std::cerr << "sluicec: note: no profile is that of this machine's " << gpu.name << ": planning for another card ("
              << device << "), whose times are others; --device=FILE.json names one of yours\n";
  }
}
