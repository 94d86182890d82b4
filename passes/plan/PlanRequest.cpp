// SPDX-License-Identifier: Apache-2.0
// Words of the command line, see PlanRequest.h.
#include "passes/plan/PlanRequest.h"

#include "passes/plan/Budget.h"

#include "passes/planner/Words.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;
using namespace sluice;

/// Pool indices and dropout's counter are what the gradients read anyway, so that those encodings need nothing of a
/// target. What a codec makes of halves is each tensor's matter: as small as fp16 makes floats, they stay as they are.
static std::set<std::string> executableActions(bool oneMemory) {
  std::set<std::string> actions = planner::allActions();
  if (oneMemory)
    actions.erase("offload");
  return actions;
}

/// The name of a codec of floats, or zvc:pool=SIZE; rates are another knob.
static Status takeCodec(StringRef value, PlanRequest &request) {
  auto [codec, pool] = value.split(':');
  const CodecFacts *facts = findCodec(codec);
  if (!facts || facts->kind == Codec::None || hasMask(codec) ||
      (value.contains(':') && (codec != "zvc" || !pool.consume_front("pool="))))
    return sluice::Error{"codec '" + value.str() +
                         "' in --strategy is unknown; copies can pack with fp16, int8, zfp, zvc or zvc:pool=SIZE"};
  request.codec = codec.str();
  if (!value.contains(':'))
    return sluice::Success{};
  request.zvc = "zvc:pool=" + std::to_string(parseSize(pool.str()).value_or(0));
  if (!parseCodec(request.zvc))
    return sluice::Error{"pool '" + pool.str() + "' of zvc in --strategy is no size; write bytes, 600MiB or 8GiB"};
  return sluice::Success{};
}

/// What is said of codecs, for any strategy; the pool also without `codec=` before it.
static Status takeKnob(const std::string &key, const std::string &value, PlanRequest &request) {
  if (key == "codec" || key == "zvc:pool")
    return takeCodec(key == "codec" ? value : key + "=" + value, request);
  if (key == "rate" && !parseCodec("zfp:" + value))
    return sluice::Error{"rate '" + value + "' in --strategy is none of zfp's, from 2 to 31 bits a value"};
  if (key == "rate")
    request.zfp = "zfp:" + value;
  else
    request.options.knobs[key] = value;
  return sluice::Success{};
}

const char *const sluice::secondMemoryHint =
    "; on target host the budget is of all memory, where offloading frees nothing: --host-budget=SIZE (or unlimited) "
    "gives what is offloaded a memory of its own, which --offload-to keeps in a file";

Result<PlanRequest> sluice::parsePlanRequest(const std::string &strategy, const std::string &allowLossy, bool oneMemory,
                                             double errorBudget) {
  Result<planner::StrategyWords> words = planner::parseStrategy(strategy);
  if (!words)
    return words.takeError();
  PlanRequest request;
  request.name = words->name;
  for (const auto &[key, value] : words->knobs)
    if (Status taken = takeKnob(key, value, request); !taken)
      return taken.takeError();
  SmallVector<StringRef> lossy;
  StringRef(allowLossy).split(lossy, ',', -1, /*KeepEmpty=*/false);
  const std::vector<std::string> known = planner::lossyActions();
  for (StringRef name : lossy) {
    if (name != "algorithms" && !is_contained(known, name))
      return sluice::Error{"--allow-lossy knows no '" + name.str() + "'; there are " + join(known, ", ") +
                           " and algorithms"};
    request.options.allowLossy.insert(name.str());
  }
  if (errorBudget > 0) {
    request.errorBudget = errorBudget;
    const std::vector<std::string> codecs = planner::lossyCodecs();
    if (llvm::none_of(codecs, [&](const std::string &name) { return request.options.allowLossy.count(name); }))
      request.options.allowLossy.insert(codecs.begin(), codecs.end());
  }
  request.options.executable = executableActions(oneMemory);
  return request;
}
