// SPDX-License-Identifier: Apache-2.0
// Words of the command line, see PlanRequest.h.
#include "passes/plan/PlanRequest.h"

#include "passes/plan/Budget.h"
#include "passes/planner/Bounds.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;
using namespace sluice;

/// Pool indices and dropout's counter are what the gradients read anyway, so that those encodings need nothing of a
/// target. bf16 activations are as small as fp16 makes them, no other codec takes them, and their 8 bits are too few to
/// rebuild anything from.
static std::set<std::string> executableActions(Target target, StringRef precision) {
  std::set<std::string> actions = planner::allActions();
  if (precision == "bf16")
    for (const std::string &lossy : planner::lossyActions())
      actions.erase(lossy);
  if (!factsOf(target).packsZeros)
    actions.erase("zvc");
  return actions;
}

/// fp16, zvc or zvc:pool=SIZE.
static std::string takeCodec(StringRef value, PlanRequest &request) {
  auto [codec, pool] = value.split(':');
  const CodecFacts *facts = findCodec(codec);
  if (!facts || !facts->onCopies || (value.contains(':') && (codec != "zvc" || !pool.consume_front("pool="))))
    return "codec '" + value.str() + "' in --strategy is unknown; copies can pack with fp16, zvc or zvc:pool=SIZE";
  request.codec = codec.str();
  if (!value.contains(':'))
    return "";
  request.zvc = "zvc:pool=" + std::to_string(parseSize(pool.str()).value_or(0));
  return parseCodec(request.zvc)
             ? ""
             : "pool '" + pool.str() + "' of zvc in --strategy is no size; write bytes, 600MiB or 8GiB";
}

/// What is said of codecs, for any strategy; the pool also without `codec=` before it.
static std::string takeKnob(const std::string &key, const std::string &value, PlanRequest &request) {
  if (key == "codec" || key == "zvc:pool")
    return takeCodec(key == "codec" ? value : key + "=" + value, request);
  if (key == "rate" && !parseCodec("zfp:" + value))
    return "rate '" + value + "' in --strategy is none of zfp's, from 2 to 31 bits a value";
  if (key == "rate")
    request.zfp = "zfp:" + value;
  else
    request.options.knobs[key] = value;
  return "";
}

std::string sluice::parsePlanRequest(const std::string &strategy, const std::string &allowLossy, Target target,
                                     const std::string &precision, PlanRequest &request) {
  std::vector<std::pair<std::string, std::string>> knobs; // the last word counts
  if (std::string error = planner::parseStrategy(strategy, request.name, knobs); !error.empty())
    return error;
  for (const auto &[key, value] : knobs)
    if (std::string error = takeKnob(key, value, request); !error.empty())
      return error;
  SmallVector<StringRef> lossy;
  StringRef(allowLossy).split(lossy, ',', -1, /*KeepEmpty=*/false);
  for (StringRef name : lossy)
    request.options.allowLossy.insert(name.str());
  request.options.executable = executableActions(target, precision);
  if (!request.codec.empty() && !request.options.executable.count(request.codec))
    return "codec '" + request.codec + "' in --strategy is not available for --target=" + factsOf(target).name +
           (precision == "bf16" ? " --precision=bf16" : "");
  return "";
}
