// SPDX-License-Identifier: Apache-2.0
// What only the emulator shows of the cuda runtime: its words on kernels that cuDNN has no engine for, and the order of
// copies around a graph.
#include "test/unit/runtime/Harness.h"

namespace sluice {
namespace {

/// The emulator takes no pads that differ from side to side, like cuDNN.
TEST(Notes, NameAConvolutionThatCudnnDoesNotTake) {
  const Window even{{3, 3}, {1, 1}, {1, 1, 1, 1}}, uneven{{2, 2}, {1, 1}, {0, 0, 1, 1}};
  const Conv taken("/taken/Conv", ConvPass::Forward, {1, 3, 5, 5}, {2, 3, 3, 3}, {1, 2, 5, 5}, even);
  buildPrimitives();
  EXPECT_EQ(memoryNotes().find("/taken/Conv"), std::string::npos);
  const Conv refused("/refused/Conv", ConvPass::Forward, {1, 3, 5, 5}, {2, 3, 2, 2}, {1, 2, 5, 5}, uneven);
  const Conv same("/same/Conv", ConvPass::Forward, {1, 3, 5, 5}, {2, 3, 2, 2}, {1, 2, 5, 5}, uneven);
  buildPrimitives();
  const std::string notes = memoryNotes();
  EXPECT_NE(notes.find("runs on a direct kernel, which is slow: cuDNN does not take it (the emulator refuses it)"),
            std::string::npos)
      << notes;
  EXPECT_EQ(notes.find("/same/Conv"), std::string::npos) << notes; // one plan for one geometry
}

/// Only the first note of a process is told whole: ctest runs each test in one of its own.
TEST(Notes, NameAnAttentionThatCudnnIsNotAskedFor) {
  const Shape shape{2, 16, 8};
  const Attention masked("/masked/Softmax", AttentionPass::Forward, shape, shape, shape, 1,
                         AttentionOptions().withMask({16}).withKept({16}).withType(DataType::BF16));
  buildPrimitives();
  const std::string notes = memoryNotes();
  EXPECT_NE(notes.find("runs on kernels of our own, which are slow: cuDNN's attention is asked where"),
            std::string::npos)
      << notes;
}

TEST(Notes, SayNothingOfAnAttentionThatCudnnRuns) {
  const Shape shape{2, 16, 8};
  const Attention plain("/plain/Softmax", AttentionPass::Forward, shape, shape, shape, 1,
                        AttentionOptions().withType(DataType::BF16));
  buildPrimitives();
  const std::string notes = memoryNotes();
  EXPECT_EQ(notes.find("/plain/Softmax"), std::string::npos) << notes;
}

/// The next batch, copied outside the graph, would take the link before the copies that the step waits for.
TEST(Graphs, CopiesOfAStepComeBeforeTheNextBatch) {
  Session session(1 << 12, 1 << 12, 1);
  session.enableGraphs(true);
  const std::function<void(Session &)> step = [](Session &s) {
    copyToDevice(s.toDevice, host(0, {4}), device(0, {4}), "g");
  };
  for (int i = 0; i < 5; ++i) {
    session.batchParity = i % 2;
    session.enqueue(step);
    EXPECT_EQ(emulator::replaysAwaited(static_cast<cudaStream_t>(session.toDevice.native())), i)
        << "the first step is no graph";
  }
}

/// Codecs beside compute go first, in a graph too.
TEST(Graphs, KeepThePrioritiesOfTheirStreams) {
  Session session(1 << 12, 1 << 12, 1);
  session.enableGraphs(true);
  const std::function<void(Session &)> step = [](Session &s) {
    copyToDevice(s.compute, host(0, {4}), device(0, {4}), "g");
  };
  for (int i = 0; i < 3; ++i) {
    session.batchParity = i % 2;
    session.enqueue(step);
  }
  EXPECT_FALSE(emulator::graphsLostPriorities());
}

/// The emulator makes calls when they are waited for, so a scalar that is read too late is the next step's.
TEST(Graphs, AStepFollowsOneWhoseResultsNobodyTook) {
  Session session(1 << 12, 1 << 12, 1);
  session.enableGraphs(true);
  const Tensor slots[2] = {host(0, {1}), host(256, {1})}, loss = device(0, {1});
  const std::function<void(Session &)> step = [&](Session &s) { copyToDevice(s.compute, s.batch(slots), loss, "g"); };
  auto enqueue = [&](int number) {
    session.batchParity = number % 2;
    *session.compute.data<float>(session.batch(slots)) = static_cast<float>(number);
    session.enqueue(step);
    session.leave({loss, none});
  };
  auto take = [&] {
    float scalars[2] = {-1, -1};
    session.take(scalars);
    EXPECT_EQ(scalars[1], 0);
    return scalars[0];
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(session.runsAhead(step)) << "a batch slot has no graph before step " << i;
    enqueue(i);
    EXPECT_EQ(take(), i);
  }
  EXPECT_TRUE(session.runsAhead(step));
  enqueue(3);
  for (int i = 4; i < 8; ++i) {
    enqueue(i);
    EXPECT_THROW(session.leave({loss}), std::logic_error);
    EXPECT_EQ(take(), i - 1);
  }
  EXPECT_EQ(take(), 7);
  EXPECT_THROW(take(), std::logic_error);
  session.enableRecording(true);
  EXPECT_FALSE(session.runsAhead(step));
}

} // namespace
} // namespace sluice
