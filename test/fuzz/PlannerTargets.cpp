// SPDX-License-Identifier: Apache-2.0
// What people hand to the planner: chain problems and packing problems. Those that are read are planned and packed,
// too, and every answer is checked. Profiles are in ModelTarget.cpp.
#include "test/fuzz/Target.h"

#include "passes/planner/Files.h"
#include "passes/strategies/Registry.h"

#include <algorithm>
#include <cmath>

namespace sluice::fuzz {

using namespace planner;

namespace {

/// A function of the content alone, so that an input is all that there is to know.
uint64_t hashOf(const std::string &input) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char c : input)
    hash = (hash ^ c) * 0x100000001b3ull;
  return Random(hash).next();
}

/// Any exception that gets as far as the tool's main function ends it with status 4.
template <typename Call> Outcome guarded(Call call) {
  try {
    return call();
  } catch (const std::exception &error) {
    finding(std::string("exit status 4: ") + error.what());
  }
}

Outcome refused(const std::string &error) {
  if (error.empty())
    finding("an error without a text");
  return Outcome::Refused;
}

void checkAnswer(const ChainFile &file, double memory, const std::string &name, const ChainAnswer &answer) {
  if (const auto *plan = std::get_if<ChainPlan>(&answer)) {
    if (!(plan->timeline.peakBytes <= memory + byteSlack(file.chain)) || !std::isfinite(plan->timeline.makespan))
      finding(name + ": a plan of " + std::to_string(plan->timeline.peakBytes) + " bytes and " +
              std::to_string(plan->timeline.makespan) + " s for " + std::to_string(memory) + " bytes");
  } else if (const auto *none = std::get_if<ChainInfeasible>(&answer)) {
    if (!(none->smallestMemory > memory))
      finding(name + ": infeasible with " + std::to_string(memory) + " bytes, smallest " +
              std::to_string(none->smallestMemory));
  } else {
    refused(std::get<Refused>(answer).reason);
  }
}

} // namespace

Outcome runProblem(const std::string &input, const std::string &) {
  return guarded([&] {
    const Result<ChainFile> parsed = parseChain(input);
    if (!parsed)
      return refused(parsed.error());
    const ChainFile &file = *parsed;
    const uint64_t hash = hashOf(input);
    // Planning takes a thousand times longer than reading. Long chains are the business of measurements: exact
    // strategies take minutes for them, within their limits.
    if (hash >> 40 & 3 || file.chain.last() > 12)
      return Outcome::Accepted;
    const double memory = file.memory ? *file.memory : chainPeak(file.chain) / 2;
    const std::vector<Strategy> &all = strategies();
    const std::string &name = all[hash % all.size()].name;
    const Release release = hash >> 32 & 1 ? Release::Whole : Release::Partial;
    checkAnswer(file, memory, name, runStrategy(file.chain, memory, release, name));
    strategyBound(file.chain, memory, name);
    return Outcome::Accepted;
  });
}

Outcome runPacking(const std::string &input, const std::string &) {
  return guarded([&] {
    const Result<std::vector<PackItem>> items = parseItems(input);
    if (!items)
      return refused(items.error());
    PackOptions options;
    options.nodeLimit = 300;
    if (Status packed = checkPacking(*items, pack(*items, options)); !packed)
      finding(packed.error());
    return Outcome::Accepted;
  });
}

} // namespace sluice::fuzz
