// SPDX-License-Identifier: Apache-2.0
// Words of the command line, see PlanRequest.h.
#include "passes/PlanRequest.h"

#include "runtime/Codec.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;
using namespace sluice;

/// Pool indices and dropout's counter are what the gradients read anyway, so that those encodings need nothing of a target.
static std::set<std::string> executableActions(StringRef target) {
  std::set<std::string> actions = {"keep", "offload", "recompute", "argmax", "counter", "mask", "fp16", "zfp"};
  if (target == "host")
    actions.insert({"zvc", "invert"});
  return actions;
}

static std::string takeKnob(StringRef part, PlanRequest &request) {
  auto [key, value] = part.split('=');
  if (key.empty() || value.empty())
    return "'" + part.str() + "' in --strategy is no k=v";
  if (key == "codec" && value != "fp16" && value != "zvc")
    return "codec '" + value.str() + "' in --strategy is unknown; copies can pack with fp16 or zvc";
  if (key == "rate" && !parseCodec(("zfp:" + value).str()))
    return "rate '" + value.str() + "' in --strategy is none of zfp's, from 2 to 31 bits a value";
  if (key == "codec")
    request.codec = value.str();
  else if (key == "rate")
    request.zfp = ("zfp:" + value).str();
  else
    request.options.knobs[key.str()] = value.str();
  return "";
}

std::string sluice::parsePlanRequest(const std::string &strategy, const std::string &allowLossy, const std::string &target,
                                     PlanRequest &request) {
  SmallVector<StringRef> parts, lossy;
  StringRef(strategy).split(parts, ',');
  request.name = parts.empty() ? "" : parts[0].str();
  for (StringRef part : ArrayRef(parts).drop_front())
    if (std::string error = takeKnob(part, request); !error.empty())
      return error;
  StringRef(allowLossy).split(lossy, ',', -1, /*KeepEmpty=*/false);
  for (StringRef name : lossy)
    request.options.allowLossy.insert(name.str());
  request.options.executable = executableActions(target);
  if (!request.codec.empty() && !request.options.executable.count(request.codec))
    return "codec '" + request.codec + "' in --strategy is not available for --target=" + target;
  return "";
}
