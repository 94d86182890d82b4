// SPDX-License-Identifier: Apache-2.0
// Which of cuDNN's engines would run attention on an H200, asked without a GPU as in conv_engines.cpp; driver_stub.cpp
// stands for the driver that they are compiled for.
#include "runtime/cuda/AttentionEngine.h"
#include "runtime/cuda/Cut.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace sluice {
namespace {

struct Case {
  const char *name;
  Shape q, k, v;
  bool causal;
  int64_t parts; ///< of the members, going backward with 64 MiB
  AttentionViews views = {};
  float ratio = 0;
  int64_t forwardParts = 1, wholeParts = 1; ///< going forward with 64 MiB, and backward with 1 GiB
  Shape mask = {};
};
std::ostream &operator<<(std::ostream &out, const Case &c) { return out << c.name; }

/// A decoder and ViT-B/16 as in docs/results/transformers.md, and others.
const Case cases[] = {
    {"decoder", {8, 12, 1024, 64}, {8, 12, 1024, 64}, {8, 12, 1024, 64}, true, 4},
    {"vit_b_16", {64, 12, 197, 64}, {64, 12, 197, 64}, {64, 12, 197, 64}, false, 2},
    {"long_rows", {1, 8, 4096, 128}, {1, 8, 4096, 128}, {1, 8, 4096, 128}, true, 8},
    {"cross", {4, 8, 100, 64}, {4, 8, 77, 64}, {4, 8, 77, 64}, false, 1},
    {"vit_b_16_packed",
     {64, 12, 197, 64},
     {64, 12, 197, 64},
     {64, 12, 197, 64},
     false,
     2,
     {{0, 2304, 64, 147456}, {768, 2304, 64, 147456}, {1536, 2304, 64, 147456}, {0, 768, 64, 49152}}},
    {"decoder_packed",
     {8, 12, 1024, 64},
     {8, 12, 1024, 64},
     {8, 12, 1024, 64},
     true,
     4,
     {{0, 2359296, 64, 2304}, {768, 2359296, 64, 2304}, {1536, 2359296, 64, 2304}, {0, 786432, 64, 768}}},
    {"gpt2", {32, 12, 1024, 64}, {32, 12, 1024, 64}, {32, 12, 1024, 64}, true, 16},
    {"narrow", {2, 8, 50, 24}, {2, 8, 50, 24}, {2, 8, 50, 24}, false, 1},
    {"gpt2_dropout", {32, 12, 1024, 64}, {32, 12, 1024, 64}, {32, 12, 1024, 64}, true, 32, {}, 0.1f, 16, 2},
    {"vit_b_16_dropout", {64, 12, 197, 64}, {64, 12, 197, 64}, {64, 12, 197, 64}, false, 3, {}, 0.1f},
    {"bert", {32, 12, 384, 64}, {32, 12, 384, 64}, {32, 12, 384, 64}, false, 4, {}, 0.1f, 2, 1, {32, 1, 1, 384}},
    {"left_padded", {8, 12, 1000, 64}, {8, 12, 1000, 64}, {8, 12, 1000, 64}, false, 4, {}, 0, 1, 1, {8, 1, 1000, 1000}},
    {"biased_heads", {8, 12, 512, 64}, {8, 12, 512, 64}, {8, 12, 512, 64}, true, 1, {}, 0, 1, 1, {12, 512, 512}},
    {"masked_packed",
     {8, 12, 1024, 64},
     {8, 12, 1024, 64},
     {8, 12, 1024, 64},
     false,
     4,
     {{0, 2359296, 64, 2304}, {768, 2359296, 64, 2304}, {1536, 2359296, 64, 2304}, {0, 786432, 64, 768}},
     0,
     1,
     1,
     {8, 1, 1, 1024}}};

class AttentionEngines : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    std::ifstream file("test/unit/cuda/h200.json");
    std::stringstream text;
    text << file.rdbuf();
    device = text.str();
    ASSERT_FALSE(device.empty());
  }
  std::unique_ptr<AttentionEngine> choose(AttentionPass pass, int64_t limit, DataType type) {
    const Case &c = GetParam();
    const AttentionGeometry g("attention", c.q, c.k, c.v, c.mask, {}, c.views);
    const int64_t granted = cuda::attentionScratch(limit, pass, g, c.ratio, type);
    auto engine = AttentionEngine::choose({pass, g, 0.125f, c.causal, c.ratio, 0, type}, granted, reason, device);
    if (engine) {
      EXPECT_LE(engine->workspaceBytes(), granted);
    }
    return engine;
  }
  std::string device, reason;
};

TEST_P(AttentionEngines, AreFoundWithinTheWorkspaceThatThePlanHasForThem) {
  for (DataType type : {DataType::BF16, DataType::F16}) {
    const auto forward = choose(AttentionPass::Forward, int64_t{64} << 20, type);
    ASSERT_TRUE(forward) << reason;
    EXPECT_EQ(forward->parts(), GetParam().forwardParts);
    const auto backward = choose(AttentionPass::Backward, int64_t{64} << 20, type);
    ASSERT_TRUE(backward) << reason;
    EXPECT_EQ(backward->parts(), GetParam().parts);
    const auto whole = choose(AttentionPass::Backward, int64_t{1} << 30, type); // what plans may grant, see CudaKernels
    ASSERT_TRUE(whole) << reason;
    EXPECT_EQ(whole->parts(), GetParam().wholeParts);
    if (GetParam().views.q.rank > 0) { // less than the heads of a sample in a part
      ASSERT_TRUE(choose(AttentionPass::Backward, int64_t{8} << 20, type)) << reason;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(H200, AttentionEngines, testing::ValuesIn(cases),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace sluice
