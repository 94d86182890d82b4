// SPDX-License-Identifier: Apache-2.0
// The table of strategies, their knobs, and what options let them do.
#include "passes/strategies/Registry.h"

#include "passes/strategies/Strategies.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

namespace sluice::planner {

const std::vector<Strategy> &strategies() {
  static const std::vector<Strategy> all = {
      {"keep", "every activation stays on the device", {}, planKeep, chainKeep},
      {"greedy", "offload the earliest-born activations (Beaumont et al. 2020)", {"min-copy"}, planGreedy, chainGreedy},
      {"dynprog",
       "offload the best set of stages (Beaumont et al. 2020)",
       {"limit", "sets"},
       planDynProg,
       chainDynProg},
      {"vdnn", "threshold on time per byte, as Beaumont et al. 2020 compare with", {}, planVdnn, chainVdnn},
      {"vdnn-all", "offload every layer's input (Rhu et al. 2016)", {"kernels"}, planVdnnAll, chainVdnnAll},
      {"vdnn-conv", "offload every convolution's input", {"kernels"}, planVdnnConv, chainVdnnConv},
      {"vdnn-aconv", "offload every second convolution's input", {"kernels"}, planVdnnAconv, chainVdnnAconv},
      {"vdnn-dyn", "the first vdnn mode that fits, fastest kernels first", {}, planVdnnDyn, chainVdnnDyn},
      {"vdnnpp",
       "vdnn with copies that outlive their layer (Shriram et al. 2019)",
       {"mode", "synchronous"},
       planVdnnpp,
       chainVdnnpp},
      {"autoswap", "swap by priority scores (Zhang et al. 2019)", {"min-size"}, planAutoSwap, nullptr},
      {"tflms", "swap by distance in the graph (Le et al. 2018)", {"threshold", "ahead"}, planTflms, nullptr},
      {"superneurons", "checkpoints to the host, cheap layers again (Wang et al. 2018)", {}, planSuperNeurons, nullptr},
      {"hascoet",
       "offload inputs of convolutions and pools in fp16, invert BatchNorm (Hascoet et al. 2019)",
       {"fp16", "invert"},
       planHascoet,
       chainHascoet},
      {"freelunch",
       "compress activations in device memory (Patel et al.)",
       {"buffers", "ahead", "hybrid"},
       planFreeLunch,
       chainFreeLunch},
      {"gist", "lossless encodings (Jain et al. 2018)", {"dpr"}, planGist, nullptr},
      {"capuchin",
       "swap by free time, then recompute by bytes per second (Peng et al. 2020)",
       {},
       planCapuchin,
       nullptr},
      {"chen", "recompute segments between kept borders (Chen et al. 2016)", {"segments"}, planChen, chainChen},
      {"rotor", "optimal rematerialization of a chain (Beaumont et al. 2019)", {"slots"}, planRotor, chainRotor},
      {"pofo",
       "recompute and offload blocks of a chain (Beaumont et al. 2021)",
       {"slots", "limit", "sets"},
       planPofo,
       nullptr},
      {"checkmate",
       "optimal recomputation of small graphs by integer programming (Jain et al. 2020)",
       {"ops", "nodes"},
       planCheckmate,
       chainCheckmate},
      {"mixed",
       "encode, recompute and offload together; invert, compress and halve where allowed",
       {"trials", "recompute", "offload", "encode", "zvc", "takeover"},
       planMixed,
       chainMixed},
      {"auto", "mixed", {"trials", "recompute", "offload", "encode", "zvc", "takeover"}, planMixed, chainMixed},
  };
  return all;
}

static constexpr const char *lossyActions[] = {"fp16", "zfp", "invert"};

std::vector<std::string> strategyNames() {
  std::vector<std::string> names;
  for (const Strategy &s : strategies())
    names.push_back(s.name);
  return names;
}

static std::string listed(const std::vector<std::string> &names) {
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + name;
  return list;
}

double numberKnob(const Options &options, const std::string &knob, double fallback) {
  const auto found = options.knobs.find(knob);
  return found == options.knobs.end() ? fallback : std::strtod(found->second.c_str(), nullptr);
}

/// What knobs may be at most: those that counts, tables and integer programs grow with, by name; others only have to be
/// numbers.
static double largest(const std::string &knob) {
  static const std::map<std::string, double> limits = {
      {"slots", 1e4}, {"limit", 1e5},   {"sets", 1e5}, {"segments", 1e6}, {"threshold", 1e6},
      {"ahead", 1e6}, {"buffers", 1e6}, {"ops", 1e3},  {"nodes", 1e9},    {"trials", 1e7}};
  const auto found = limits.find(knob);
  return found == limits.end() ? 1e15 : found->second;
}

static bool isNumber(const std::string &text, double most) {
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0 && std::isfinite(value) && value >= 0 && value <= most;
}

static std::string knobError(const Strategy &strategy, const Options &options) {
  for (const auto &[knob, value] : options.knobs)
    if (std::find(strategy.knobs.begin(), strategy.knobs.end(), knob) == strategy.knobs.end())
      return "strategy '" + strategy.name + "' has no knob '" + knob + "'" +
             (strategy.knobs.empty() ? "" : ", it has " + listed(strategy.knobs));
    else if (const double most = largest(knob); !isNumber(value, most))
      return "knob '" + knob + "' of strategy '" + strategy.name + "' is '" + value +
             "', it must be a number from 0 to " + std::to_string(static_cast<int64_t>(most));
  return "";
}

const Strategy *findStrategy(const std::string &name, const Options &options, std::string &error) {
  for (const Strategy &strategy : strategies())
    if (strategy.name == name) {
      error = knobError(strategy, options);
      return error.empty() ? &strategy : nullptr;
    }
  error = "no strategy '" + name + "', there are " + listed(strategyNames());
  return nullptr;
}

std::set<std::string> allowedActions(const Options &options) {
  std::set<std::string> actions = options.executable;
  for (const char *lossy : lossyActions)
    if (!options.allowLossy.count(lossy))
      actions.erase(lossy);
  return actions;
}

Options withoutUnnamed(Options options) {
  options.executable = allowedActions(options);
  return options;
}

std::string missingAction(const Options &options, const std::string &strategy, const std::string &action) {
  if (options.executable.count(action))
    return "";
  for (const char *lossy : lossyActions)
    if (action == lossy && !options.allowLossy.count(action))
      return "strategy '" + strategy + "' needs '" + action +
             "', which is lossy and must be named: --allow-lossy=" + action;
  return "strategy '" + strategy + "' needs '" + action + "', which the target does not execute";
}

} // namespace sluice::planner
