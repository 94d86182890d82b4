// SPDX-License-Identifier: Apache-2.0
// verify-schedule must notice every single thing that can go wrong in a placed program. Real models are planned,
// scheduled and placed by the real passes; then one wait is dropped, one lifetime shrunk, two dependent steps swapped
// or one buffer moved onto a live one, and each time verification must fail.
#include "frontend/OnnxImport.h"
#include "ir/Sched.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include "passes/plan/PlanAttribute.h"

#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <set>

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::CopyOp;
using sched::ProgramOp;
using sched::RunOp;
using sched::WaitOp;

namespace {

struct Case {
  const char *model, *strategy, *budget;
};
void PrintTo(const Case &c, std::ostream *os) { *os << c.model << " " << c.strategy << " " << c.budget; }

/// Mutations of one kind for one model; more are drawn evenly.
constexpr size_t mutationLimit = 2000;

class ScheduleMutation : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    context.loadDialect<train::TrainDialect, sched::SchedDialect, func::FuncDialect, arith::ArithDialect,
                        math::MathDialect>();
    Result<OnnxFile> file = OnnxFile::read(std::string("test/models/tiny/") + GetParam().model + "/model.onnx");
    ASSERT_TRUE(file) << file.error();
    TrainingSpec spec;
    spec.batch = 4;
    auto imported = importOnnx(context, *file, spec);
    ASSERT_TRUE(imported) << imported.error();
    module = std::move(*imported);
    PipelineOptions options;
    options.strategy = GetParam().strategy;
    options.budget = GetParam().budget;
    options.allowLossy = "zfp,fp16,invert";
    PlanningFailure cause;
    ASSERT_TRUE(succeeded(runPipeline(*module, Stage::Forward, Stage::Placed, options, cause)));
    SmallVector<Operation *> others; // programs are verified one by one; the step is the one with copies
    for (auto program : module->getOps<ProgramOp>())
      if (program.getSymName() != "step")
        others.push_back(program);
    for (Operation *other : others)
      other->erase();
    ASSERT_EQ(verifyWith([](ProgramOp) {}), "");
    train::PlanAttr plan = train::attr::get<train::attr::Plan>(program());
    ASSERT_TRUE(plan);
    EXPECT_LE(plan.getLowerBound().getValueAsDouble(), plan.getSeconds().getValueAsDouble()); // whatever the plan uses
  }

  ProgramOp program() { return *module->getOps<ProgramOp>().begin(); }

  /// Verifies a copy of the program with one change; the message that verification ended with, or "" when it passed.
  template <typename Change> std::string verifyWith(Change change) {
    OwningOpRef<ModuleOp> copy(module->clone());
    change(*copy->getOps<ProgramOp>().begin());
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str() + "\n";
      return success();
    });
    PassManager pm(&context);
    pm.enableVerifier(false);
    pm.addPass(createVerifySchedule());
    return succeeded(pm.run(*copy)) ? "" : message;
  }

  template <typename Op> static std::vector<Op> all(ProgramOp program) {
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
  static std::pair<std::set<Operation *>, std::set<Operation *>> accesses(Operation *step) {
    std::set<Operation *> reads, writes;
    if (auto run = dyn_cast<RunOp>(step)) {
      for (Value buffer : run.getIns())
        reads.insert(buffer.getDefiningOp());
      for (Value buffer : run.getOuts())
        writes.insert(buffer.getDefiningOp());
    } else {
      reads.insert(cast<CopyOp>(step).getFrom().getDefiningOp());
      writes.insert(cast<CopyOp>(step).getTo().getDefiningOp());
    }
    return {reads, writes};
  }

  /// Whether some buffer is used by both and written by one.
  static bool depends(Operation *first, Operation *second) {
    auto [reads, writes] = accesses(first);
    auto [readsLater, writesLater] = accesses(second);
    auto meet = [](const std::set<Operation *> &a, const std::set<Operation *> &b) {
      return llvm::any_of(a, [&](Operation *op) { return b.count(op) > 0; });
    };
    return meet(writes, readsLater) || meet(reads, writesLater) || meet(writes, writesLater);
  }

  /// The first and last step of a buffer share the program with those of another.
  static bool liveTogether(BufferOp a, BufferOp b) {
    return !a.getFirst() || !b.getFirst() || (*a.getFirst() <= *b.getLast() && *b.getFirst() <= *a.getLast());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_P(ScheduleMutation, EveryWaitIsNeeded) {
  size_t count = all<WaitOp>(program()).size();
  EXPECT_GE(count, 2u); // the test would be empty otherwise
  for (size_t i = 0; i < count; ++i)
    EXPECT_NE(verifyWith([&](ProgramOp p) { all<WaitOp>(p)[i].erase(); }), "") << "without wait " << i;
}

TEST_P(ScheduleMutation, EveryLifetimeIsTight) {
  Builder b(&context);
  std::vector<BufferOp> buffers = all<BufferOp>(program());
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].getFirst())
      continue;
    IntegerAttr later = b.getI64IntegerAttr(*buffers[i].getFirst() + 1),
                earlier = b.getI64IntegerAttr(*buffers[i].getLast() - 1);
    std::string name = buffers[i].getName().str();
    EXPECT_NE(verifyWith([&](ProgramOp p) { all<BufferOp>(p)[i].setLastAttr(earlier); }), "") << name;
    EXPECT_NE(verifyWith([&](ProgramOp p) { all<BufferOp>(p)[i].setFirstAttr(later); }), "") << name;
  }
}

TEST_P(ScheduleMutation, DependentStepsKeepTheirOrder) {
  SmallVector<Operation *> steps = sched::steps(program());
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < steps.size(); ++i)
    for (size_t j = i + 1; j < steps.size(); ++j)
      if (depends(steps[i], steps[j]))
        pairs.push_back({i, j});
  EXPECT_GE(pairs.size(), steps.size() / 2);
  for (auto [i, j] : sample(pairs)) {
    auto swap = [&, i = i, j = j](ProgramOp p) {
      SmallVector<Operation *> own = sched::steps(p);
      OpBuilder builder(own[j]); // a placeholder, because the last step may have no successor
      auto placeholder = BufferOp::create(builder, own[j]->getLoc(), builder.getType<sched::BufferType>(), "x",
                                          sched::Space::Device, 1, {}, {}, {}, {}, {}, {}, {}, {}, {});
      own[j]->moveBefore(own[i]);
      own[i]->moveBefore(placeholder);
      placeholder.erase();
    };
    EXPECT_NE(verifyWith(swap), "") << "steps " << i + 1 << " and " << j + 1;
  }
}

TEST_P(ScheduleMutation, NoBufferMayMoveOntoAnother) {
  Builder b(&context);
  std::vector<BufferOp> buffers = all<BufferOp>(program());
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < buffers.size(); ++j)
      if (i != j && buffers[i].getSpace() == buffers[j].getSpace() &&
          buffers[i].getOffset() != buffers[j].getOffset() && liveTogether(buffers[i], buffers[j]))
        pairs.push_back({i, j});
  EXPECT_GE(pairs.size(), buffers.size());
  for (auto [i, j] : sample(pairs))
    EXPECT_NE(verifyWith([&, i = i, j = j](ProgramOp p) {
                std::vector<BufferOp> own = all<BufferOp>(p);
                own[i].setOffsetAttr(b.getI64IntegerAttr(*own[j].getOffset()));
              }),
              "")
        << buffers[i].getName().str() << " onto " << buffers[j].getName().str();
}

TEST_P(ScheduleMutation, ThePoolIsWhatCopiesSay) {
  if (!program().getPool())
    return;
  Builder b(&context);
  auto set = [&](int64_t pool, int64_t host) {
    return verifyWith([&](ProgramOp p) {
      p.setPoolAttr(b.getI64IntegerAttr(pool));
      p.setHostAttr(b.getI64IntegerAttr(host));
    });
  };
  const int64_t pool = *program().getPool(), host = *program().getHost();
  EXPECT_EQ(set(pool - 1, host - 1), "");
  EXPECT_NE(set(pool, host - 256), "") << "a staging slot ends in the pool";
  EXPECT_NE(set(pool + 1, host + 1), "") << "more than was asked for";
}

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  std::string name = std::string(info.param.model) + "_" + info.param.strategy;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, ScheduleMutation,
                         testing::Values(Case{"resnet", "vdnn-all", ""}, Case{"vgg", "superneurons", "65%act"},
                                         Case{"resnet", "chen", "90%act"}, Case{"densenet", "vdnn-conv", ""},
                                         Case{"densenet", "superneurons", "65%act"}, Case{"unet", "vdnn-all", ""},
                                         Case{"unet", "capuchin", "70%act"}, Case{"vgg", "gist", ""},
                                         Case{"vgg", "vdnn-all,codec=zvc:pool=4KiB", ""},
                                         Case{"resnet", "freelunch,buffers=2,hybrid=1", ""},
                                         Case{"leaky", "hascoet", ""}),
                         nameOf);

} // namespace
