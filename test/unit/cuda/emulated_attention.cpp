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
  const Tensor logs = h.tensor({2, 4, 64}), masks = mask.rank ? h.tensor(mask) : none;
  auto kernel = [&](AttentionPass pass) {
    return Attention("attention", pass, shape, shape, shape, mask, 0.3f, true, ratio, 1, type);
  };
  const Attention forward = kernel(AttentionPass::Forward), backward = kernel(AttentionPass::Backward);
  Passes made{{}, -cudnn_frontend::executions, 0};
  forward.forward(h.session.compute, t[0], t[1], t[2], masks, t[3], logs, h.workspace(forward));
  made.forward += cudnn_frontend::executions, made.backward -= cudnn_frontend::executions;
  backward.backward(h.session.compute, t[4], t[0], t[1], t[2], masks, t[3], logs, t[5], t[6], t[7],
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

TEST(AttentionEngines, LeaveTheRestToKernelsOfOurOwn) {
  EXPECT_EQ(run(size_t(16) << 10).backward, 0) << "no member fits";
  EXPECT_EQ(run(size_t(1) << 20, full).forward, 0) << "floats";
  EXPECT_EQ(run(size_t(1) << 20, half, {64}).forward, 0) << "a mask";
  EXPECT_EQ(run(size_t(1) << 20, half, {}, 0.5f).backward, 0) << "dropout";
}

} // namespace
} // namespace sluice
