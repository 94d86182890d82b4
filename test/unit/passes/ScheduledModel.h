// SPDX-License-Identifier: Apache-2.0
// Placed programs of small models, made by the real passes, of which a test changes one thing and verifies them again.
#pragma once

#include "frontend/OnnxImport.h"
#include "ir/Sched.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include "passes/plan/PlanAttribute.h"

#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <set>

namespace sluice {

struct Case {
  const char *model, *strategy, *budget;
  Space home = Space::Host, states = Space::Device;
  int64_t parts = 1; ///< of the rows of a text model's loss; 1: the loss is one of classes
  Space parameters = Space::Device;
  int64_t stepParts = 1;
  CutAlong partsAlong = CutAlong::Batch;
  int64_t weightsAbove = 0;
  bool isHalf = false; ///< a scaled loss, in fp16 on the cuda target
};
/// Gradients of weights in rows of so many bytes.
inline Case withRows(Case model, int64_t bytes) {
  model.weightsAbove = bytes;
  return model;
}
inline Case inHalves(Case model) {
  model.isHalf = true;
  return model;
}
inline void PrintTo(const Case &c, std::ostream *os) { *os << c.model << " " << c.strategy << " " << c.budget; }

/// Mutations of one kind for one model; more are drawn evenly.
constexpr size_t mutationLimit = 2000;

class ScheduledModel : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    context.loadDialect<train::TrainDialect, sched::SchedDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect,
                        mlir::math::MathDialect>();
    importModel(module);
    PipelineOptions options;
    options.strategy = GetParam().strategy;
    options.budget = GetParam().budget;
    if (GetParam().isHalf) {
      options.target = Target::Cuda;
      options.device = "v100-pcie";
    }
    options.home = GetParam().home;
    options.stateHome = GetParam().states;
    options.parameterHome = GetParam().parameters;
    options.parts = GetParam().parts;
    options.stepParts = GetParam().stepParts;
    options.partsAlong = GetParam().partsAlong;
    options.weightsAbove = GetParam().weightsAbove;
    options.allowLossy = "zfp,fp16,int8,invert";
    PlanningFailure cause;
    ASSERT_TRUE(module && mlir::succeeded(runPipeline(*module, Level::Forward, Level::Placed, options, cause)));
    mlir::SmallVector<mlir::Operation *> others; // programs are verified one by one; the step is the one with copies
    for (auto program : module->getOps<sched::ProgramOp>())
      if (program.getSymName() != "step")
        others.push_back(program);
    for (mlir::Operation *other : others)
      other->erase();
    ASSERT_EQ(verifyWith([](sched::ProgramOp) {}), "");
    train::PlanAttr plan = train::attr::get<train::attr::Plan>(program());
    ASSERT_TRUE(plan);
    EXPECT_LE(plan.getLowerBound().getValueAsDouble(), plan.getSeconds().getValueAsDouble()); // whatever the plan uses
  }

  /// The case's model, as it is imported.
  void importModel(mlir::OwningOpRef<mlir::ModuleOp> &into) {
    Result<OnnxFile> file = OnnxFile::read(std::string("test/models/tiny/") + GetParam().model + "/model.onnx");
    ASSERT_TRUE(file) << file.error();
    TrainingSpec spec;
    spec.batch = 4;
    if (GetParam().isHalf)
      spec.precision = "fp16";
    if (GetParam().parts > 1)
      spec.losses.emplace_back().kind = AttachedLoss::TokenCrossEntropy;
    auto imported = importOnnx(context, *file, spec);
    ASSERT_TRUE(imported) << imported.error();
    into = std::move(*imported);
  }

  sched::ProgramOp program() { return *module->getOps<sched::ProgramOp>().begin(); }

  /// Verifies a copy of the program with one change; the message that verification ended with, or "" when it passed.
  template <typename Change> std::string verifyWith(Change change) {
    mlir::OwningOpRef<mlir::ModuleOp> copy(module->clone());
    change(*copy->getOps<sched::ProgramOp>().begin());
    std::string message;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
      message += diagnostic.str() + "\n";
      return mlir::success();
    });
    mlir::PassManager pm(&context);
    pm.enableVerifier(false);
    pm.addPass(createVerifySchedule());
    return mlir::succeeded(pm.run(*copy)) ? "" : message;
  }

  template <typename Op> static std::vector<Op> all(sched::ProgramOp program) {
    auto ops = program.getBody().getOps<Op>();
    return {ops.begin(), ops.end()};
  }

  /// At most mutationLimit of `list`, evenly spread.
  template <typename T> static std::vector<T> sample(const std::vector<T> &list) {
    std::vector<T> chosen;
    size_t count = std::min(list.size(), mutationLimit);
    for (size_t i = 0; i < count; ++i)
      chosen.push_back(list[i * list.size() / count]);
    return chosen;
  }

  /// Buffers that the step reads and writes.
  static std::pair<std::set<mlir::Operation *>, std::set<mlir::Operation *>> accesses(mlir::Operation *step) {
    std::set<mlir::Operation *> reads, writes;
    if (auto run = mlir::dyn_cast<sched::RunOp>(step)) {
      for (mlir::Value buffer : run.getIns())
        reads.insert(buffer.getDefiningOp());
      for (mlir::Value buffer : run.getOuts())
        writes.insert(buffer.getDefiningOp());
    } else {
      reads.insert(mlir::cast<sched::CopyOp>(step).getFrom().getDefiningOp());
      writes.insert(mlir::cast<sched::CopyOp>(step).getTo().getDefiningOp());
    }
    return {reads, writes};
  }

  static bool isRunOf(mlir::Operation *step, llvm::StringRef kernel) {
    auto run = mlir::dyn_cast<sched::RunOp>(step);
    return run && run.getKernel() == kernel;
  }

  /// Whether some buffer is used by both and written by one, or one decides what the other does.
  static bool depends(mlir::Operation *first, mlir::Operation *second) {
    if (isRunOf(first, "check_gradients") && isRunOf(second, "update"))
      return true;
    auto [reads, writes] = accesses(first);
    auto [readsLater, writesLater] = accesses(second);
    auto meet = [](const std::set<mlir::Operation *> &a, const std::set<mlir::Operation *> &b) {
      return llvm::any_of(a, [&](mlir::Operation *op) { return b.count(op) > 0; });
    };
    return meet(writes, readsLater) || meet(reads, writesLater) || meet(writes, writesLater);
  }

  /// The first and last step of a buffer share the program with those of another.
  static bool liveTogether(sched::BufferOp a, sched::BufferOp b) {
    return !a.getFirst() || !b.getFirst() || (*a.getFirst() <= *b.getLast() && *b.getFirst() <= *a.getLast());
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

inline std::string nameOf(const testing::TestParamInfo<Case> &info) {
  std::string name = std::string(info.param.model) + "_" + info.param.strategy;
  if (info.param.home != Space::Host)
    name += std::string("_") + factsOf(info.param.home).name;
  if (info.param.states != Space::Device)
    name += std::string("_states_") + factsOf(info.param.states).name;
  if (info.param.parameters != Space::Device)
    name += std::string("_parameters_") + factsOf(info.param.parameters).name;
  if (info.param.parts > 1)
    name += "_parts";
  if (info.param.stepParts > 1)
    name += info.param.partsAlong == CutAlong::Batch ? "_batch_parts" : "_image_parts";
  if (info.param.weightsAbove > 0)
    name += "_rows";
  if (info.param.isHalf)
    name += "_half";
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

} // namespace sluice
