// SPDX-License-Identifier: Apache-2.0
// Entry points of libFuzzer. The environment's SLUICE_FUZZ names the target; limits are libFuzzer's own (-timeout,
// -rss_limit_mb).
#include "test/fuzz/Target.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

using namespace sluice::fuzz;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/// The solver keeps some memory of its own where numbers of 1e-324 meet others.
extern "C" const char *__lsan_default_suppressions() { return "leak:libCoinUtils\n"; }

static const Target *target;
static std::string folder;

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  const char *name = std::getenv("SLUICE_FUZZ");
  if (!name || !(target = findTarget(name))) {
    std::fprintf(stderr, "fuzz: SLUICE_FUZZ names no target\n");
    std::exit(2);
  }
  folder = std::filesystem::temp_directory_path() / "sluice-fuzz-XXXXXX";
  if (!mkdtemp(folder.data()))
    std::exit(2);
  std::atexit([] { std::filesystem::remove_all(folder); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  target->run(std::string(reinterpret_cast<const char *>(data), size), folder);
  return 0;
}

static size_t put(const std::string &text, uint8_t *data, size_t most) {
  size_t size = std::min(text.size(), most);
  std::memcpy(data, text.data(), size);
  return size;
}

/// Models are changed by us alone; for the other formats every second change is libFuzzer's, which knows what the
/// program compares with.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  Random random(seed);
  if (target->run != runModel && random.oneIn(2))
    return LLVMFuzzerMutate(data, size, most);
  std::string input(reinterpret_cast<const char *>(data), size);
  return put(target->mutate(input, input, random), data, most);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2, size_t size2,
                                            uint8_t *out, size_t most, unsigned seed) {
  std::string input(reinterpret_cast<const char *>(data1), size1), other(reinterpret_cast<const char *>(data2), size2);
  Random random(seed);
  return put(target->mutate(input, other, random), out, most);
}
