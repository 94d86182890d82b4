// SPDX-License-Identifier: Apache-2.0
// The order of the passes: what each needs, what it leaves and what enforces that is the table at the head of
// Passes.td. Levels have the names of sluicec --emit. Replanning.cpp runs parts of it again: assign-slots alone, and
// the grouping.
#pragma once

#include "passes/Cut.h"
#include "passes/plan/PlanningFailure.h"
#include "runtime/StreamTable.h"
#include "runtime/TargetTable.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <cstdint>
#include <string>

namespace sluice {

enum class Level { Forward, Training, Linearized, Planned, Scheduled, Placed };

/// What the bytes of states, and of parameters, are counted in where a part of them leaves the device.
inline constexpr int allShares = 32;

struct PipelineOptions {
  Target target = Target::Host;
  std::string device = "host", profile; ///< profile to plan for; measured times
  std::string strategy = "auto";        ///< NAME[,k=v...]
  std::string budget;                   ///< see Budget.h; empty: no limit
  std::string allowLossy;               ///< actions that round, and algorithms, separated by commas
  double errorBudget = 0;               ///< relative error of the gradients that lossy actions may cause; 0: any
  int64_t hostBudget = -1;              ///< bytes; 0: the next batch alone; -1: no limit
  bool oneMemory = false;          ///< the budget is of both arenas together, so that nothing is offloaded to the host
  Space home = Space::Host;        ///< arena of what is offloaded
  Space stateHome = Space::Device; ///< arena of optimizer states
  Space parameterHome = Space::Device; ///< arena of parameters; where neither is the device, the same one
  /// How many of allShares of their bytes have that home, and whether the planner says how many.
  int stateShare = allShares, parameterShare = allShares;
  bool updatesAtHome = true; ///< of what is in host memory, see HomeUpdates.h
  bool choosesStates = false, choosesParameters = false;
  bool choosesHomes() const { return choosesStates || choosesParameters; }
  int64_t workspaceLimit = 0; ///< bytes; 0: follows from the model, see estimate-cost
  int threads = 0;            ///< of host programs; 0: this machine's
  bool keyCache = false;      ///< evaluations store keys and values, for a function of one token a text
  bool groupLaunches = false; ///< runs of one kind in one launch, where that takes no more memory
  int64_t parts = 1;          ///< of the rows of the largest loss (sluice-split)
  CutAlong partsAlong = CutAlong::Batch;
  int64_t stepParts = 1;     ///< of the whole step (sluice-split-step)
  int64_t partsAbove = 0;    ///< bytes of rows that an op in these parts reads and writes at least
  int64_t weightsAbove = 0;  ///< bytes of a weight's gradient that are there at a time (sluice-split-updates); 0: all
  bool choosesParts = false; ///< more parts where a budget has no plan with these
  bool hasPartsOfStep() const { return parts > 1 || stepParts > 1 || weightsAbove > 0; }
  bool hasParts() const { return hasPartsOfStep() || choosesParts; }
  bool sketch = false;           ///< plans to compare: of few trials, and no look at what a refused budget would need
  bool convEpilogues = false;    ///< what BatchNorm asks of convolutions' results is theirs to compute
  bool productEpilogues = false; ///< Gelu is its products' to compute
  int ranks = 2;                 ///< of a program for several: how many plans are made for
  std::string interconnect;      ///< between them; empty: processes of the profile's machine
  int level = 0;                 ///< that host programs are built for (runtime/CpuTable.h); 0: this machine's
};

/// The passes that take a module that has reached `from`, any level, to `until`, a later one whose passes are included.
/// plan-memory plans `shrink` bytes below the budget. Placing is not limited by the budget, and nothing is proved: the
/// caller compares the arenas, and adds the proof (addProof). `cause` outlives the passes.
void addPasses(mlir::OpPassManager &pm, Level from, Level until, const PipelineOptions &options, int64_t shrink = 0,
               PlanningFailure *cause = nullptr);

/// The passes that group the launches of a scheduled or placed module, and place it again if it was.
void addGrouping(mlir::OpPassManager &pm, Level reached);

/// The proof of a placed module, against `budget`; 0: no limit. Every pipeline that places ends with it.
void addProof(mlir::OpPassManager &pm, int64_t budget, const PipelineOptions &options);

/// Makes these passes known as --sluice-pipeline, with the options above.
void registerSluicePipeline();

/// Takes a module from one level, Linearized at most, to a later one. From Planned on, planning is repeated below the
/// budget until the placed arena fits it. Errors go to the context's diagnostics; `cause` says whose they are, and what
/// a budget that is too small needs. Where the compiler chooses the actions and may round, the exact program is planned
/// within as many bytes as well, and taken where it is faster. Where it chooses the parts of the largest loss, there
/// are some only if the budget has no plan without.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, Level from, Level until, const PipelineOptions &options,
                                PlanningFailure &cause);

} // namespace sluice
