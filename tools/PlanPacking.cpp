// SPDX-License-Identifier: Apache-2.0
// What sluice-plan does with static buffers: places them, and asks what an allocator would have needed.
#include "passes/planner/Files.h"
#include "passes/planner/Pool.h"
#include "passes/planner/Words.h"
#include "tools/PlanArguments.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>
#include <limits>

using namespace sluice::planner;
using nlohmann::ordered_json;
using sluice::Result;

namespace sluice::plan {

std::string readFile(const std::string &path) {
  const Result<std::string> text = readInput(path);
  if (!text)
    throw Failure{BadInput, path + ": cannot be read: " + text.error()};
  return *text;
}

double sizeOf(const std::string &text, const char *option) {
  if (const std::optional<double> bytes = sluice::parseBytes(text))
    return *bytes;
  throw Failure{Usage, std::string(option) + " is '" + text + "', it must be a size such as 1500000, 600MiB or 8GiB"};
}

static std::vector<PackItem> itemsOf(const std::string &path) {
  const Result<std::vector<PackItem>> parsed = parseItems(readFile(path));
  if (!parsed)
    throw Failure{BadInput, path + ": " + parsed.error()};
  return *parsed;
}

/// --capacity, or `fallback`.
static Bytes capacityOf(const Arguments &arguments, Bytes fallback) {
  if (arguments.capacity.empty())
    return fallback;
  const double capacity = sizeOf(arguments.capacity, "--capacity");
  if (capacity > 1e18)
    throw Failure{Usage, "--capacity is " + arguments.capacity + " bytes, above 1e18"};
  return static_cast<Bytes>(capacity);
}

int searchPools(const Arguments &arguments) {
  const std::vector<PackItem> items = itemsOf(arguments.pool);
  const Bytes most = capacityOf(arguments, std::numeric_limits<Bytes>::max() / 4);
  ordered_json out;
  out["load"] = poolLoad(poolRequests(items, false));
  std::optional<Bytes> smallest;
  for (bool high : {false, true}) {
    const std::optional<Bytes> pool = searchPool(poolRequests(items, high), most);
    out[high ? "high_end" : "best_fit"] = pool ? ordered_json(*pool) : ordered_json(nullptr);
    if (pool && (!smallest || *pool < *smallest))
      smallest = pool;
  }
  out["growing"] = grownPools(poolRequests(items, false));
  if (arguments.json)
    std::cout << out.dump() << "\n";
  else
    for (const auto &[key, value] : out.items())
      std::printf("%-8s %s\n", key.c_str(), value.is_null() ? "none within the capacity" : value.dump().c_str());
  return smallest ? Ok : NoPlan;
}

/// The answer is a packing in any case, the best that was found, so that one sees how far off a capacity is.
int packProblem(const Arguments &arguments) {
  const std::vector<PackItem> items = itemsOf(arguments.pack);
  PackOptions options;
  // Nodes cost time in proportion to the items; this many take some ten seconds. Whoever names a number of them has the
  // time.
  options.nodeLimit = arguments.nodes > 0 ? arguments.nodes : 400'000'000 / std::max<int64_t>(items.size(), 200);
  options.workLimit = arguments.nodes > 0 ? std::numeric_limits<int64_t>::max() : 20'000'000'000;
  const bool limited = !arguments.capacity.empty();
  options.goodEnough = capacityOf(arguments, 0);
  if (limited && options.goodEnough < packLoad(items))
    options.nodeLimit = 0; // nothing fits; best-fit shows how far off it is
  const Packing packing = pack(items, options);
  if (const Status status = checkPacking(items, packing); !status)
    throw Failure{Internal, status.error()};
  const bool fits = !limited || packing.height <= options.goodEnough;
  ordered_json out;
  if (!fits)
    out["feasible"] = false;
  out["height"] = packing.height;
  out["load"] = packing.load;
  out["offsets"] = ordered_json::object();
  for (size_t i = 0; i < items.size(); ++i)
    out["offsets"][items[i].id] = packing.offsets[i];
  if (arguments.json)
    std::cout << out.dump() << "\n";
  else
    std::printf("%sheight %lld, load %lld, ratio %.4f, by %s after %lld nodes\n",
                fits ? "" : "above capacity: ", static_cast<long long>(packing.height),
                static_cast<long long>(packing.load), packing.load > 0 ? double(packing.height) / packing.load : 1.0,
                packing.method.c_str(), static_cast<long long>(packing.nodes));
  return fits ? Ok : NoPlan;
}

} // namespace sluice::plan
