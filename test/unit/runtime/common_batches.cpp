// SPDX-License-Identifier: Apache-2.0
// Which sums of losses make steps of several batches differ from those of one large batch.
#include "runtime/program/Batches.h"

#include <gmock/gmock.h>

using namespace sluice;
using testing::HasSubstr;

namespace {

const Input inputs[] = {{"x", {}, host(0, {4, 3})},
                        {"class", {}, host(64, {4}, Layout::RowMajor, DataType::I64), 3, -1, false, true},
                        {"box", {}, host(128, {4, 2}), 0, Loss::none, false, true},
                        {"other", {}, host(192, {4}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true}};

template <size_t count> std::string doubts(const Output (&outputs)[count], const float *const *classWeights = nullptr) {
  Program program{};
  program.batch = 4;
  program.inputs = inputs;
  program.inputCount = 4;
  program.outputs = outputs;
  program.outputCount = count;
  program.classWeights = classWeights;
  return doubtsOfAccumulation(program);
}

} // namespace

TEST(Batches, SumsOfLossesThatCountOtherTargetsAreDoubted) {
  const Tensor part = device(0, {});
  const Output one[] = {{"y", {}, 1, "softmax-cross-entropy"}},
               weighted[] = {{"y", {}, 1, "softmax-cross-entropy", 0.5, part}},
               auxiliary[] = {{"y", {}, 1, "softmax-cross-entropy", 1, part},
                              {"aux", {}, 1, "softmax-cross-entropy", 0.3, part}},
               whole[] = {{"y", {}, 3, "softmax-cross-entropy", 1, part}, {"box", {}, 2, "mse", 1, part}},
               boxes[] = {{"box", {}, 2, "mse", 1, part}, {"y", {}, 1, "softmax-cross-entropy", 1, part}};
  EXPECT_EQ(doubts(one), "");
  EXPECT_EQ(doubts(weighted), "");
  EXPECT_EQ(doubts(auxiliary), "");
  EXPECT_EQ(doubts(whole), "");
  EXPECT_THAT(doubts(boxes), HasSubstr("that of 'y' leaves out targets that are ignored"));
  const float weights[] = {1, 2, 3};
  const float *const ofFirst[] = {weights, nullptr};
  EXPECT_EQ(doubts(one, ofFirst), "");
  EXPECT_THAT(doubts(auxiliary, ofFirst), HasSubstr("that of 'y' weighs its targets by class"));
  EXPECT_THAT(doubts(whole, ofFirst), HasSubstr("that of 'y' weighs its targets by class"));
  const float *const ofBoth[] = {weights, weights};
  EXPECT_THAT(doubts(auxiliary, ofBoth),
              HasSubstr("that of 'y' weighs its targets by class, that of 'aux' weighs its targets by class: where"));
}

// A thread of copies leaves its core to whoever runs, and here nothing runs that it would copy beside.
TEST(Batches, WhatAStepWaitsForIsCopiedByTheThreadThatComputes) {
  const Input one[] = {{"x", {device(0, {4, 3}), device(64, {4, 3})}, host(0, {4, 3})}};
  Program program{};
  program.batch = 4;
  program.inputs = one;
  program.inputCount = 1;
  Session session(1 << 12, 1 << 12, 0);
  DataOptions options;
  options.where = "synthetic";
  Dataset data(options, program);
  Batches batches(session, program, data);
  session.enableRecording(true);
  batches.prefetchAlone({});
  batches.prefetch({});
  session.synchronize();
  const std::vector<OpRecord> records = session.takeRecords();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].stream, StreamId::Compute);
  EXPECT_EQ(records[1].stream, StreamId::ToDevice);
}
