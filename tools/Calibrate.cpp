// SPDX-License-Identifier: Apache-2.0
// Every sample is the best of a few runs, and what came out slower than its like is measured once more. Operands go
// round in twice their bytes, and in an arena that no cache holds: in a step some were touched a moment ago and others
// long before.
#include "tools/Calibrate.h"

#include "runtime/program/Links.h"
#include "tools/CalibrationBench.h"

#include <iostream>
#include <stdexcept>
#include <sys/resource.h>

using namespace sluice;
using nlohmann::json;

namespace {

/// Of one type, and of repeating some of its samples.
constexpr double secondsOfConvolutions = 4.5, secondsOfRepeats = 0.8;
/// Of the cores' time that a measurement must get.
constexpr double leastShare = 0.7;

double secondsOf(const rusage &use) {
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

} // namespace

/// Puts into `busy` what other work takes of the cores beside a kernel that could use them all, if that is much; throws
/// it unless `insist`.
static void lookForWork(Bench &bench, bool insist, std::string &busy) {
  constexpr int64_t side = 1024;
  const Shape square{side, side};
  const Matmul product("calibrate", square, square, square);
  buildPrimitives();
  double best = 0;
  for (int i = 0; i < 3 && best < leastShare; ++i) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    const double seconds = bench.total(8, [&](Stream &stream) {
      product.run(stream, bench.place(square), bench.place(square), none, bench.place(square),
                  bench.space(product.workspaceBytes()));
    });
    getrusage(RUSAGE_SELF, &after);
    best = std::max(best, (secondsOf(after) - secondsOf(before)) / (seconds * threads()));
  }
  if (best >= leastShare)
    return;
  busy = "other work takes " + std::to_string(static_cast<int>(100 * (1 - best))) + " % of the " +
         std::to_string(threads()) + " cores";
  if (!insist)
    throw std::runtime_error(busy);
}

/// Of tensors of that type.
static json samplesOf(Bench &bench) {
  measureProducts(bench);
  measureAttention(bench);
  measureTraffic(bench);
  measureConvolutions(bench, secondsOfConvolutions);
  bench.repeatSlowest(secondsOfRepeats);
  return bench.samples();
}

std::string sluice::calibrate(const std::string &folder, bool halves, bool insist, const std::function<void()> &begin) {
  json profile;
  for (const auto &[name, text] : planner::shippedProfiles())
    if (name == "host")
      profile = json::parse(text);
  profile["threads"] = threads();
  {
    Bench bench(DataType::F32);
    std::string busy;
    lookForWork(bench, insist, busy);
    begin();
    profile["rates"]["launch_seconds"] = launchSeconds(bench);
    measureFunctions(bench);
    profile["samples"] = samplesOf(bench);
    if (halves) {
      Bench ofHalves(DataType::BF16);
      for (const json &sample : samplesOf(ofHalves))
        profile["samples"].push_back(sample);
    }
    lookForWork(bench, insist, busy);
    if (!busy.empty())
      std::cerr << "sluicec: warning: " << busy
                << ": times will be predicted too long; repeat --calibrate when it does not" << std::endl;
  }
  const LinkRates links = measureLinks(3);
  profile["links"].update({{"d2h", links.toHost}, {"h2d", links.toDevice}, {"duplex", links.duplex}});
  profile["links"]["contention"] = links.contention.value_or(0);
  profile["codec_contention"] = profile["packing_contention"] = links.packingContention.value_or(0);
  for (const auto &[codec, rate] : links.codecs)
    profile["codecs"][codecName(codec)] = rate;
  if (const std::optional<StorageRates> storage = measureStorage(folder))
    profile["links"]["storage"] = {
        {"d2h", storage->write}, {"h2d", storage->read}, {"latency_seconds", storage->latency}};
  else
    profile["links"].erase("storage");
  profile["provenance"] = "measured on this machine by sluicec --calibrate";
  return profile.dump(1) + "\n";
}
