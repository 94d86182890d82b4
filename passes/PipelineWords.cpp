// SPDX-License-Identifier: Apache-2.0
// The pipeline as sluice-opt --sluice-pipeline="until=planned budget=80% ..." has it.
#include "passes/Passes.h"
#include "passes/Pipeline.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

using namespace mlir;
using namespace sluice;

namespace {

/// PipelineOptions as MLIR parses them: an option is a member here, with its word, and is copied in options().
struct PipelineWords : PassPipelineOptions<PipelineWords> {
  Option<Level> until{
      *this, "until", llvm::cl::desc("the last level"), llvm::cl::init(Level::Placed),
      llvm::cl::values(clEnumValN(Level::Training, "training", ""), clEnumValN(Level::Linearized, "linearized", ""),
                       clEnumValN(Level::Planned, "planned", ""), clEnumValN(Level::Scheduled, "scheduled", ""),
                       clEnumValN(Level::Placed, "placed", ""))};
  Option<Target> target{*this, "target", llvm::cl::desc("host or cuda"), llvm::cl::init(Target::Host), TargetWords()};
  Option<std::string> device{*this, "device", llvm::cl::desc("device profile: a shipped name or a .json file"),
                             llvm::cl::init("host")};
  Option<std::string> profile{*this, "profile", llvm::cl::desc("measured times and rates, a .json file")};
  Option<std::string> strategy{*this, "strategy", llvm::cl::desc("NAME[,k=v...]"), llvm::cl::init("auto")};
  Option<std::string> budget{*this, "budget", llvm::cl::desc("bytes, 8GiB, 40% or 40%act; empty for no limit")};
  Option<std::string> allowLossy{*this, "allow-lossy", llvm::cl::desc("actions that round, separated by commas")};
  Option<double> errorBudget{*this, "error-budget",
                             llvm::cl::desc("relative error of the gradients that the plan may cause; 0: any"),
                             llvm::cl::init(0)};
  Option<int64_t> hostBudget{*this, "host-budget",
                             llvm::cl::desc("largest host arena in bytes; 0: the next batch alone; -1: no limit"),
                             llvm::cl::init(-1)};
  Option<bool> oneMemory{*this, "one-memory", llvm::cl::desc("the budget is of both arenas together"),
                         llvm::cl::init(false)};
  Option<Space> home{*this, "home", llvm::cl::desc("arena of what is offloaded"), llvm::cl::init(Space::Host),
                     HomeWords()};
  Option<Space> stateHome{*this, "state-home", llvm::cl::desc("arena of optimizer states"),
                          llvm::cl::init(Space::Device), HomeWords()};
  Option<Space> parameterHome{*this, "parameter-home", llvm::cl::desc("arena of parameters"),
                              llvm::cl::init(Space::Device), HomeWords()};
  Option<int> stateShare{*this, "state-share", llvm::cl::desc("of their bytes, in shares of 32"),
                         llvm::cl::init(allShares)};
  Option<int> parameterShare{*this, "parameter-share", llvm::cl::desc("of their bytes, in shares of 32"),
                             llvm::cl::init(allShares)};
  Option<bool> updatesAtHome{*this, "updates-at-home",
                             llvm::cl::desc("run updates in host memory where all that they change is there"),
                             llvm::cl::init(true)};
  Option<int64_t> workspaceLimit{*this, "workspace-limit",
                                 llvm::cl::desc("largest workspace in bytes; 0: follows from the step"),
                                 llvm::cl::init(0)};
  Option<int64_t> parts{*this, "parts", llvm::cl::desc("parts of the rows of the largest loss"), llvm::cl::init(1)};
  Option<CutAlong> partsAlong{*this, "parts-along", llvm::cl::desc("what the step's parts are of"),
                              llvm::cl::init(CutAlong::Batch),
                              llvm::cl::values(clEnumValN(CutAlong::Batch, "batch", "samples"),
                                               clEnumValN(CutAlong::Image, "image", "rows of images"))};
  Option<int64_t> stepParts{*this, "step-parts", llvm::cl::desc("parts of the step"), llvm::cl::init(1)};
  Option<int64_t> partsAbove{*this, "parts-above", llvm::cl::desc("bytes of an op in parts"), llvm::cl::init(0)};
  Option<int64_t> weightsAbove{*this, "weights-above", llvm::cl::desc("bytes of a weight's gradient at a time"),
                               llvm::cl::init(0)};
  Option<bool> keyCache{*this, "kv-cache", llvm::cl::desc("keys and values for a function of one token a text"),
                        llvm::cl::init(false)};
  Option<bool> groupLaunches{*this, "group-launches", llvm::cl::desc("runs of one kind in one launch"),
                             llvm::cl::init(false)};
  Option<bool> convEpilogues{*this, "conv-epilogues", llvm::cl::desc("convolutions with BatchNorm's sums"),
                             llvm::cl::init(false)};
  Option<bool> productEpilogues{*this, "product-epilogues", llvm::cl::desc("products with Gelu"),
                                llvm::cl::init(false)};
  Option<int> threads{*this, "threads", llvm::cl::desc("threads of host programs; 0: this machine's"),
                      llvm::cl::init(0)};
  Option<int> ranks{*this, "ranks", llvm::cl::desc("of a module for several: how many the plan is made for"),
                    llvm::cl::init(2)};
  Option<std::string> interconnect{*this, "interconnect",
                                   llvm::cl::desc("between them, a shipped name or a .json file")};
  Option<int> level{*this, "level", llvm::cl::desc("level of the processors of host programs; 0: this machine's"),
                    llvm::cl::init(0)};

  PipelineOptions options() const {
    PipelineOptions result;
    result.target = target;
    result.device = device;
    result.profile = profile;
    result.strategy = strategy;
    result.budget = budget;
    result.allowLossy = allowLossy;
    result.errorBudget = errorBudget;
    result.hostBudget = hostBudget;
    result.oneMemory = oneMemory;
    result.home = home;
    result.stateHome = stateHome;
    result.parameterHome = parameterHome;
    result.stateShare = stateShare;
    result.parameterShare = parameterShare;
    result.updatesAtHome = updatesAtHome;
    result.workspaceLimit = workspaceLimit;
    result.parts = parts;
    result.partsAlong = partsAlong;
    result.stepParts = stepParts;
    result.partsAbove = partsAbove;
    result.weightsAbove = weightsAbove;
    result.keyCache = keyCache;
    result.groupLaunches = groupLaunches;
    result.convEpilogues = convEpilogues;
    result.productEpilogues = productEpilogues;
    result.threads = threads;
    result.ranks = ranks;
    result.interconnect = interconnect;
    result.level = level;
    return result;
  }
};

} // namespace

void sluice::registerSluicePipeline() {
  PassPipelineRegistration<PipelineWords>("sluice-pipeline",
                                          "what sluicec runs, with one plan instead of several tries",
                                          [](OpPassManager &pm, const PipelineWords &words) {
                                            addPasses(pm, Level::Forward, words.until, words.options());
                                            if (words.until == Level::Placed)
                                              addProof(pm, 0, words.options()); // the plan kept to the budget
                                          });
}
