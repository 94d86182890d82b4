// SPDX-License-Identifier: Apache-2.0
// What the planner packed is what is placed: programs of real models have the plan's offsets and its arena, places that
// contradict each other are refused, and the plan says how often it was made.
#include "passes/plan/Explain.h"
#include "test/unit/passes/ScheduledModel.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;

namespace {

class PlannedPlaces : public ScheduledModel {
protected:
  /// The message that assign-slots ends with after a change of the placed program, or "".
  template <typename Change> std::string placeAfter(Change change, OwningOpRef<ModuleOp> &placed) {
    placed = module->clone();
    change(*placed->getOps<sched::ProgramOp>().begin());
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str() + "\n";
      return success();
    });
    PassManager pm(&context);
    pm.addPass(createAssignSlots());
    return succeeded(pm.run(*placed)) ? "" : message;
  }

  std::vector<BufferOp> transients(ModuleOp of) {
    std::vector<BufferOp> list = all<BufferOp>(*of.getOps<sched::ProgramOp>().begin());
    llvm::erase_if(list, [](BufferOp buffer) { return buffer.outlivesStep() || !buffer.onDevice(); });
    return list;
  }
};

TEST_P(PlannedPlaces, WhatWasPackedIsWhatIsPlaced) {
  const train::PlanAttr plan = train::attr::get<train::attr::Plan>(program());
  std::set<int64_t> planned;
  for (train::PlaceAttr place : plan.getPlaces())
    planned.insert(place.getOffset());
  EXPECT_EQ(plan.getPlaces().size(), transients(*module).size());
  for (BufferOp buffer : transients(*module))
    EXPECT_TRUE(planned.count(static_cast<int64_t>(*buffer.getOffset()))) << buffer.getName().str();
  EXPECT_EQ(program().bytesOf(sched::Space::Device), plan.getArena());
  EXPECT_EQ(plan.getRounds(), 1);
  EXPECT_NE(explain(*module).find("planned once\n"), std::string::npos);
}

TEST_P(PlannedPlaces, PlacingAgainMovesNothing) {
  OwningOpRef<ModuleOp> again;
  ASSERT_EQ(placeAfter([](sched::ProgramOp) {}, again), "");
  std::vector<BufferOp> before = transients(*module), after = transients(*again);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(before[i].getOffset(), after[i].getOffset()) << before[i].getName().str();
}

TEST_P(PlannedPlaces, PlacesThatContradictAreRefusedByName) {
  const std::vector<BufferOp> buffers = transients(*module);
  int refused = 0;
  for (size_t i = 0; i + 1 < buffers.size(); i += buffers.size() / 8 + 1)
    for (size_t j = i + 1; j < buffers.size(); ++j) {
      BufferOp one = buffers[i], other = buffers[j];
      if (!liveTogether(one, other))
        continue;
      OwningOpRef<ModuleOp> placed;
      const std::string message = placeAfter(
          [&](sched::ProgramOp p) {
            for (auto buffer : p.getBody().getOps<BufferOp>())
              if (buffer.getName() == one.getName())
                buffer.setOffsetAttr(other.getOffsetAttr());
          },
          placed);
      EXPECT_NE(message.find("where they share bytes while both live"), std::string::npos) << message;
      EXPECT_NE(message.find("'" + one.getName().str() + "' at bytes"), std::string::npos) << message;
      ++refused;
      break;
    }
  EXPECT_GE(refused, 3);
}

/// The compiler counts rounds in what it tells plan-memory.
TEST_P(PlannedPlaces, PlansSayHowOftenTheyWereMade) {
  OwningOpRef<ModuleOp> imported;
  importModel(imported);
  ASSERT_TRUE(imported);
  PlanningFailure cause;
  ASSERT_TRUE(succeeded(runPipeline(*imported, Level::Forward, Level::Linearized, {}, cause)));
  cause.rounds = 3;
  PassManager pm(&context);
  PlanMemoryOptions options;
  options.strategy = "keep";
  pm.addPass(createPlanMemory(options, &cause));
  ASSERT_TRUE(succeeded(pm.run(*imported)));
  EXPECT_NE(explain(*imported).find("planned 3 times, because placing took more than the plan had said\n"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, PlannedPlaces,
                         testing::Values(Case{"resnet", "vdnn-all", ""}, Case{"vgg", "superneurons", "65%act"},
                                         Case{"resnet", "chen", "90%act"}, Case{"unet", "capuchin", "70%act"}),
                         nameOf);

} // namespace
