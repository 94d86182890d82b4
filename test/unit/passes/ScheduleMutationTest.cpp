// SPDX-License-Identifier: Apache-2.0
// verify-schedule must notice every single thing that can go wrong in a placed program. A chain of layers whose
// activations all leave the device is scheduled and placed by the real passes; then one wait is dropped, one lifetime
// shrunk, two steps swapped or one buffer moved, and each time verification must fail.
#include "ir/Sched.h"
#include "passes/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace sluice;

namespace {

constexpr int layers = 5;

/// x -> layers of matmul -> mse, and the backward chain; every activation is offloaded behind its layer and prefetched
/// two readers early.
std::string chain() {
  const std::string type = "tensor<16x16xf32>", product = " : (" + type + ", " + type + ") -> " + type + " loc(\"",
                    host = "!train.host<" + type + ">";
  std::string text = "func.func @step(%x: " + type +
                     " {train.name = \"x\"}) -> tensor<f32> {\n  %a0 = train.matmul %x, %x" + product + "in\")\n";
  for (int i = 1; i <= layers; ++i) {
    std::string previous = std::to_string(i - 1), current = std::to_string(i);
    text += "  %h" + previous + " = train.offload %a" + previous + " : (" + type + ") -> " + host + "\n";
    text += "  %a" + current + " = train.matmul %a" + previous + ", %x" + product + "f" + current + "\")\n";
    if (i > 1)
      text += "  train.await %h" + std::to_string(i - 2) + " : (" + host + ") -> ()\n";
  }
  std::string last = std::to_string(layers);
  text += "  train.await %h" + std::to_string(layers - 1) + " : (" + host + ") -> ()\n";
  text += "  %loss = train.mse %a" + last + ", %x : (" + type + ", " + type + ") -> tensor<f32> loc(\"loss\")\n";
  text += "  %d" + last + " = train.loss_backward %a" + last + ", %x {loss = \"mse\"}" + product + "loss\")\n";
  auto prefetch = [&](int i) {
    return "  %b" + std::to_string(i) + " = train.prefetch %h" + std::to_string(i) + " : (" + host + ") -> " + type +
           "\n";
  };
  text += prefetch(layers - 1);
  for (int i = layers - 1; i >= 0; --i) {
    if (i > 0)
      text += prefetch(i - 1);
    text += "  %d" + std::to_string(i) + " = train.matmul %d" + std::to_string(i + 1) + ", %b" + std::to_string(i) +
            product + "b" + std::to_string(i) + "\")\n";
  }
  return text + "  return %loss : tensor<f32>\n}\n";
}

class ScheduleMutation : public testing::Test {
protected:
  ScheduleMutation() {
    context.loadDialect<train::TrainDialect, sched::SchedDialect, func::FuncDialect, arith::ArithDialect,
                        math::MathDialect>();
    module = parseSourceString<ModuleOp>(chain(), &context);
    PassManager pm(&context);
    pm.addPass(createScheduleStreams());
    pm.addPass(createAssignSlots());
    placed = module && succeeded(pm.run(*module));
  }

  sched::ProgramOp program(ModuleOp of) { return *of.getOps<sched::ProgramOp>().begin(); }

  /// Verifies a copy of the program with one change; the message that verification ended with, or "" when it passed.
  template <typename Change> std::string verifyWith(Change change) {
    OwningOpRef<ModuleOp> copy(module->clone());
    change(program(*copy));
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

  /// The i-th op of a kind.
  template <typename Op> static Op nth(sched::ProgramOp program, size_t i) {
    auto ops = program.getBody().getOps<Op>();
    return *std::next(ops.begin(), i);
  }
  template <typename Op> size_t count() {
    auto ops = program(*module).getBody().getOps<Op>();
    return std::distance(ops.begin(), ops.end());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  bool placed = false;
};

TEST_F(ScheduleMutation, PassesUnchanged) {
  ASSERT_TRUE(placed);
  EXPECT_EQ(verifyWith([](sched::ProgramOp) {}), "");
  EXPECT_GE(count<sched::WaitOp>(), size_t(3 * layers)); // the test would be empty otherwise
}

TEST_F(ScheduleMutation, EveryWaitIsNeeded) {
  for (size_t i = 0; i < count<sched::WaitOp>(); ++i)
    EXPECT_NE(verifyWith([&](sched::ProgramOp p) { nth<sched::WaitOp>(p, i).erase(); }), "") << "without wait " << i;
}

TEST_F(ScheduleMutation, EveryLifetimeIsTight) {
  Builder b(&context);
  for (size_t i = 0; i < count<sched::BufferOp>(); ++i) {
    sched::BufferOp buffer = nth<sched::BufferOp>(program(*module), i);
    if (!buffer.getFirst())
      continue;
    int64_t first = *buffer.getFirst(), last = *buffer.getLast();
    std::string name = buffer.getName().str();
    EXPECT_NE(
        verifyWith([&](sched::ProgramOp p) { nth<sched::BufferOp>(p, i).setLastAttr(b.getI64IntegerAttr(last - 1)); }),
        "")
        << name;
    // A copy's bytes are its own from where compute released them, which may lie before its step.
    if (llvm::is_contained(buffer.getBuffer().getUsers(), sched::steps(program(*module))[first - 1])) {
      EXPECT_NE(verifyWith([&](sched::ProgramOp p) {
                  nth<sched::BufferOp>(p, i).setFirstAttr(b.getI64IntegerAttr(first + 1));
                }),
                "")
          << name;
    }
  }
}

TEST_F(ScheduleMutation, DependentStepsKeepTheirOrder) {
  SmallVector<Operation *> steps = sched::steps(program(*module));
  for (size_t i = 0; i < steps.size(); ++i)
    for (size_t j = i + 1; j < steps.size(); ++j) {
      auto writer = dyn_cast<sched::RunOp>(steps[i]), reader = dyn_cast<sched::RunOp>(steps[j]);
      if (!writer || !reader || !llvm::is_contained(reader.getIns(), writer.getOuts()[0]) || !reader->getNextNode())
        continue;
      auto swap = [&](sched::ProgramOp p) {
        SmallVector<Operation *> own = sched::steps(p);
        Operation *behind = own[j]->getNextNode();
        own[j]->moveBefore(own[i]);
        own[i]->moveBefore(behind);
      };
      EXPECT_NE(verifyWith(swap), "") << "steps " << i + 1 << " and " << j + 1;
    }
}

TEST_F(ScheduleMutation, NoBufferMayMoveOntoAnother) {
  Builder b(&context);
  std::vector<sched::BufferOp> buffers;
  for (auto buffer : program(*module).getBody().getOps<sched::BufferOp>())
    buffers.push_back(buffer);
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < buffers.size(); ++j) {
      sched::BufferOp moved = buffers[i], onto = buffers[j];
      if (i == j || moved.getSpace() != onto.getSpace() || moved.getOffset() == onto.getOffset())
        continue;
      bool together = !moved.getFirst() || !onto.getFirst() ||
                      (*moved.getFirst() <= *onto.getLast() && *onto.getFirst() <= *moved.getLast());
      if (!together)
        continue;
      auto move = [&](sched::ProgramOp p) {
        nth<sched::BufferOp>(p, i).setOffsetAttr(b.getI64IntegerAttr(*onto.getOffset()));
      };
      EXPECT_NE(verifyWith(move), "") << moved.getName().str() << " onto " << onto.getName().str();
    }
}

} // namespace
