// SPDX-License-Identifier: Apache-2.0
// What is fuzzed: one function a kind of input, and how such inputs are changed. Both drivers know targets through this
// alone: Supervisor.cpp (every test run, and long campaigns without coverage) and LibFuzzer.cpp (guided by coverage).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::fuzz {

/// Size of weights.bin, which lies beside the models.
constexpr size_t sharedBytes = size_t(1) << 20;

/// A sequence of numbers that is the same everywhere (SplitMix64), so that an input is known by seed and index.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// From 0 to count - 1; 0 when count is 0.
  size_t below(size_t count) { return count ? next() % count : 0; }
  bool oneIn(size_t count) { return below(count) == 0; }
  template <typename List> const auto &pick(const List &list) { return *(std::begin(list) + below(std::size(list))); }
  /// A whole number as mistakes and attacks have them: small, a power of two and its neighbours, an end of a range.
  int64_t number();

private:
  uint64_t state;
};

enum class Outcome { Refused, Accepted };

struct Target {
  const char *name, *suffix; ///< of its files in the corpus
  /// Throws nothing and ends the process by finding() when the input shows a defect. `folder` is for files.
  Outcome (*run)(const std::string &input, const std::string &folder);
  /// A changed copy of `input`; parts may come from `other`.
  std::string (*mutate)(const std::string &input, const std::string &other, Random &random);
};

const std::vector<Target> &targets();
const Target *findTarget(std::string_view name);

/// Reports a defect other than a crash and ends the process.
[[noreturn]] void finding(const std::string &what);
/// What finding() calls first; set by the driver.
extern void (*onFinding)(const std::string &what);

std::string readFile(const std::string &path);
void writeFile(const std::string &path, const std::string &bytes);

// The single targets, by file.
Outcome runModel(const std::string &input, const std::string &folder);
Outcome runNpy(const std::string &input, const std::string &folder);
Outcome runSafetensors(const std::string &input, const std::string &folder);
Outcome runCheckpoint(const std::string &input, const std::string &folder);
Outcome runRecipe(const std::string &input, const std::string &folder);
Outcome runImage(const std::string &input, const std::string &folder);
Outcome runNpz(const std::string &input, const std::string &folder);
Outcome runTable(const std::string &input, const std::string &folder);
Outcome runJsonLines(const std::string &input, const std::string &folder);
Outcome runShards(const std::string &input, const std::string &folder);
Outcome runIdx(const std::string &input, const std::string &folder);
Outcome runProblem(const std::string &input, const std::string &folder);
Outcome runPacking(const std::string &input, const std::string &folder);
Outcome runProfile(const std::string &input, const std::string &folder);

std::string mutateModel(const std::string &input, const std::string &other, Random &random);
std::string mutateNpy(const std::string &input, const std::string &other, Random &random);
/// A safetensors file with checksums that are right, as somebody has it who means harm: readers stop at the first wrong
/// one. As it is where it has no header.
std::string withChecksums(const std::string &file);
std::string mutateSafetensors(const std::string &input, const std::string &other, Random &random);
std::string mutateText(const std::string &input, const std::string &other, Random &random);

} // namespace sluice::fuzz
