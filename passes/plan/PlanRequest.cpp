// SPDX-License-Identifier: Apache-2.0
// Words of the command line, see PlanRequest.h.
#include "passes/plan/PlanRequest.h"

#include "passes/plan/Budget.h"

#include "passes/planner/Packings.h"
#include "passes/planner/Words.h"

#include "ir/RuntimeTypes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;
using namespace sluice;

/// Pool indices and dropout's counter are what the gradients read anyway, so that those encodings need nothing of a
/// target. What a codec makes of halves is each tensor's matter: as small as fp16 makes floats, they stay as they are.
static planner::Abilities executableActions(bool oneMemory, Space home) {
  planner::Abilities actions = planner::allActions();
  if (oneMemory && home == Space::Host)
    actions.remove(planner::Action::Offload);
  return actions;
}

/// The name of a codec of floats, or zvc:pool=SIZE; rates are another knob.
static Status takeCodec(StringRef value, PlanRequest &request) {
  auto [name, pool] = value.split(':');
  const std::optional<Codec> codec = parseCodec(name);
  if (!codec || !*codec || codec->mask ||
      (value.contains(':') && (codec->kind != Codec::Zvc || !pool.consume_front("pool="))))
    return sluice::Error{"codec '" + value.str() + "' in --strategy is unknown; copies can pack with " +
                         codecsOfCopies() + ", and with zvc:pool=SIZE"};
  request.codec = codec->kind;
  if (!value.contains(':'))
    return sluice::Success{};
  const std::optional<Codec> pooled = parseCodec("zvc:pool=" + std::to_string(parseSize(pool.str()).value_or(0)));
  if (!pooled)
    return sluice::Error{"pool '" + pool.str() + "' of zvc in --strategy is no size; write bytes, 600MiB or 8GiB"};
  request.pool = pooled->pool;
  return sluice::Success{};
}

/// What is said of codecs, for any strategy; the pool also without `codec=` before it.
static Status takeKnob(const std::string &key, const std::string &value, PlanRequest &request) {
  if (key == "codec" || key == "zvc:pool")
    return takeCodec(key == "codec" ? value : key + "=" + value, request);
  if (key != "rate") {
    request.options.knobs[key] = value;
    return sluice::Success{};
  }
  const std::optional<Codec> rated = parseCodec("zfp:" + value);
  if (!rated)
    return sluice::Error{"rate '" + value + "' in --strategy is none of zfp's, from 2 to 31 bits a value"};
  request.rate = rated->rate;
  return sluice::Success{};
}

Codec PlanRequest::withParameters(Codec codec) const {
  if (codec.kind == Codec::Zvc)
    codec.pool = pool;
  return planner::withRate(codec, rate);
}

const char *const sluice::secondMemoryHint =
    "; on target host the budget is of all memory, where offloading frees nothing: --host-budget=storage sends what is "
    "offloaded to a file, --host-budget=SIZE (or unlimited) to a memory of its own";

// The strategy's own knobs are not looked at here: runStrategy() does, for every caller.
Result<PlanRequest> sluice::parsePlanRequest(const std::string &strategy, const std::string &allowLossy, bool oneMemory,
                                             double errorBudget, Space home) {
  Result<planner::StrategyWords> words = planner::parseStrategy(strategy);
  if (!words)
    return words.takeError();
  PlanRequest request;
  request.name = words->name;
  for (const auto &[key, value] : words->knobs)
    if (Status taken = takeKnob(key, value, request); !taken)
      return taken.takeError();
  if (const Codec codec(request.codec, 0, request.pool); !packsFor(factsOf(home), codec))
    return sluice::Error{"--strategy packs copies with " + codecName(codec) + ", but those to " + factsOf(home).name +
                         " pack a tensor in pieces, which takes another codec; write codec=zvc, " +
                         "int8, fp16 or bf16, or give it host memory: --host-budget=SIZE"};
  Result<planner::Abilities> lossy = planner::parseLossy(allowLossy);
  if (!lossy)
    return lossy.takeError();
  request.options.allowLossy = *lossy;
  if (errorBudget > 0) {
    request.errorBudget = errorBudget;
    if ((*lossy & planner::lossyCodecs()).empty())
      request.options.allowLossy = *lossy | planner::lossyCodecs();
  }
  request.options.executable = executableActions(oneMemory, home);
  return request;
}
