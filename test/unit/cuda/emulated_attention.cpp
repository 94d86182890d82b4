// SPDX-License-Identifier: Apache-2.0
// Which attentions cuDNN's engines run, and how many parts a workspace cuts them into.
#include "test/unit/cuda/Halves.h"

#include <cudnn_frontend.h>

namespace sluice {
namespace {

struct Passes {
  std::vector<Numbers> results;
  int forward, backward; ///< runs of engines
};

/// Eight members of 64 rows and keys: an engine takes 16 KiB for each going backward, and 256 bytes for each row of 64.
constexpr Shape shape{2, 4, 64, 8};

Passes run(size_t limit, DataType type = half, Shape mask = {}, float ratio = 0) {
  setKernelPolicy(limit, Precision::BF16);
  Harness h;
  std::vector<Tensor> t;
  for (unsigned i = 0; i < 8; ++i)
    t.push_back(h.tensor(shape, Layout::RowMajor, randomHalves(shape.elements(), i), type));
  const Tensor logs = h.tensor({2, 2, 4, 64}), masks = mask.rank ? h.tensor(mask) : none;
  auto kernel = [&](AttentionPass pass) {
    return Attention("attention", pass, shape, shape, shape, 0.3f, {mask, {}, true, ratio, 1, type});
  };
  const Attention forward = kernel(AttentionPass::Forward), backward = kernel(AttentionPass::Backward);
  Passes made{{}, -cudnn_frontend::executions, 0};
  forward.forward(h.session.compute, t[0], t[1], t[2], masks, none, t[3], logs, h.workspace(forward));
  made.forward += cudnn_frontend::executions, made.backward -= cudnn_frontend::executions;
  backward.backward(h.session.compute, t[4], t[0], t[1], t[2], masks, none, t[3], logs, t[5], t[6], t[7],
                    h.workspace(backward));
  made.backward += cudnn_frontend::executions;
  setKernelPolicy(size_t(64) << 20, Precision::FP32);
  for (int i : {3, 5, 6, 7})
    made.results.push_back(h.read(t[static_cast<size_t>(i)]));
  return made;
}

TEST(AttentionEngines, RunInAsManyPartsAsTheWorkspaceAsks) {
  const Passes whole = run(size_t(1) << 20), halved = run(size_t(150) << 10), single = run(size_t(34) << 10);
  EXPECT_EQ(whole.forward, 1);
  EXPECT_EQ(whole.backward, 1);
  EXPECT_EQ(halved.backward, 2);
  EXPECT_EQ(single.backward, 8);
  EXPECT_EQ(halved.results, whole.results);
  EXPECT_EQ(single.results, whole.results);
}

// What is kept is drawn for each part, at the places that its scores have among all.
TEST(AttentionEngines, ReadWhatDropoutKeeps) {
  const Passes whole = run(size_t(1) << 20, half, {}, 0.5f), halved = run(size_t(170) << 10, half, {}, 0.5f),
               single = run(size_t(42) << 10, half, {}, 0.5f);
  EXPECT_EQ(whole.forward, 1);
  EXPECT_EQ(whole.backward, 1);
  EXPECT_EQ(halved.backward, 2);
  EXPECT_EQ(single.forward, 2);
  EXPECT_EQ(single.backward, 8);
  EXPECT_EQ(halved.results, whole.results);
  EXPECT_EQ(single.results, whole.results);
  EXPECT_NE(whole.results, run(size_t(1) << 20).results);
}

TEST(AttentionEngines, AddMasks) {
  for (const Shape &mask : {Shape{64}, Shape{2, 1, 1, 64}, Shape{4, 64, 64}, Shape{2, 4, 64, 64}}) {
    const Passes whole = run(size_t(1) << 20, half, mask), halved = run(size_t(180) << 10, half, mask);
    EXPECT_EQ(whole.forward, 1);
    EXPECT_EQ(whole.backward, 1);
    EXPECT_EQ(halved.backward, 2);
    EXPECT_EQ(halved.results, whole.results);
  }
}

/// Rows, batch, queries keys and values, heads, depth: as run() has them, but in one tensor; the result in that order.
Passes runPacked(size_t limit) {
  setKernelPolicy(limit, Precision::BF16);
  Harness h;
  const int64_t b = shape[0], heads = shape[1], rows = shape[2], depth = shape[3], width = heads * depth;
  auto part = [&](int64_t i) { return Shape{i * width, 3 * width, depth, 3 * width * b}; };
  auto index = [&](int64_t member, int64_t row, int64_t column, int64_t parts, int64_t i) {
    return static_cast<size_t>((((row * b + member / heads) * parts + i) * heads + member % heads) * depth + column);
  };
  auto forAll = [&](auto &&body) {
    size_t at = 0;
    for (int64_t member = 0; member < b * heads; ++member)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < depth; ++column)
          body(member, row, column, at++);
  };
  Numbers all(static_cast<size_t>(3 * shape.elements())), gradient(static_cast<size_t>(shape.elements()));
  for (unsigned i = 0; i < 5; ++i) {
    const Numbers numbers = randomHalves(shape.elements(), i);
    forAll([&](int64_t member, int64_t row, int64_t column, size_t at) {
      if (i < 3)
        all[index(member, row, column, 3, i)] = numbers[at];
      else if (i == 4)
        gradient[index(member, row, column, 1, 0)] = numbers[at];
    });
  }
  const Shape whole{rows, b, 3 * width}, result{rows, b, heads, depth}, order{0, width, depth, width * b};
  const Tensor qkv = h.tensor(whole, Layout::RowMajor, all, half), dqkv = h.tensor(whole, Layout::RowMajor, all, half),
               dy = h.tensor(result, Layout::RowMajor, gradient, half),
               y = h.tensor(result, Layout::RowMajor, gradient, half), logs = h.tensor({2, 4, 64});
  auto kernel = [&](AttentionPass pass) {
    return Attention("attention", pass, shape, shape, shape, 0.3f,
                     {{}, {}, true, 0, 1, half, {}, part(0), part(1), part(2), order});
  };
  const Attention forward = kernel(AttentionPass::Forward), backward = kernel(AttentionPass::Backward);
  Passes made{{}, -cudnn_frontend::executions, 0};
  forward.forward(h.session.compute, qkv, qkv, qkv, none, none, y, logs, h.workspace(forward));
  made.forward += cudnn_frontend::executions, made.backward -= cudnn_frontend::executions;
  backward.backward(h.session.compute, dy, qkv, qkv, qkv, none, none, y, logs, dqkv, dqkv, dqkv, h.workspace(backward));
  made.backward += cudnn_frontend::executions;
  setKernelPolicy(size_t(64) << 20, Precision::FP32);
  const Numbers read = h.read(y), slopes = h.read(dqkv);
  made.results.resize(4, Numbers(static_cast<size_t>(shape.elements())));
  forAll([&](int64_t member, int64_t row, int64_t column, size_t at) {
    made.results[0][at] = read[index(member, row, column, 1, 0)];
    for (size_t i = 0; i < 3; ++i)
      made.results[i + 1][at] = slopes[index(member, row, column, 3, static_cast<int64_t>(i))];
  });
  return made;
}

TEST(AttentionEngines, ReadAndWritePartsOfOneTensor) {
  const Passes apart = run(size_t(1) << 20), whole = runPacked(size_t(1) << 20), halved = runPacked(size_t(150) << 10),
               single = runPacked(size_t(34) << 10), own = runPacked(size_t(16) << 10);
  EXPECT_EQ(whole.forward, 1);
  EXPECT_EQ(whole.backward, 1);
  EXPECT_EQ(halved.backward, 2);
  EXPECT_EQ(single.backward, 8);
  for (const Passes *made : {&whole, &halved, &single})
    EXPECT_EQ(made->results, apart.results);
  EXPECT_EQ(own.backward, 0) << "no member fits";
  EXPECT_EQ(own.results, run(size_t(16) << 10).results);
}

TEST(AttentionEngines, LeaveTheRestToKernelsOfOurOwn) {
  EXPECT_EQ(run(size_t(16) << 10).backward, 0) << "no member fits";
  EXPECT_EQ(run(size_t(1) << 20, full).forward, 0) << "floats";
}

} // namespace
} // namespace sluice
