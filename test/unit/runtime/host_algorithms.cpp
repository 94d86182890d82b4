// SPDX-License-Identifier: Apache-2.0
// The ways in which the host computes one convolution or product: ours on every geometry, cuts of the batch, what a
// limit leaves, and that bits do not depend on the number of threads.
#include "test/unit/runtime/ConvCases.h"

#include "runtime/host/BlockedConv.h"
#include "runtime/host/BlockedMatmul.h"
#include "runtime/host/ConvEngine.h"
#include "runtime/host/ConvGather.h"
#include "runtime/host/Dnnl.h"
#include "runtime/host/MatmulEngine.h"
#include "runtime/host/Processor.h"

namespace sluice {
namespace {

constexpr ConvPass passes[] = {ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardWeight};

ConvGeometry geometryOf(const ConvCase &c, ConvPass pass, DataType type = DataType::F32) {
  return {pass, c.x, c.w, outputOf(c), windowOf(c), c.groups, type};
}

class Algorithms : public testing::TestWithParam<ConvCase> {};

TEST_P(Algorithms, OursGivesWhatTheDefinitionSays) {
  for (ConvPass pass : passes) {
    const bool bias = GetParam().bias && pass != ConvPass::BackwardData;
    for (int64_t parts : {1, 2, 3, 64})
      EXPECT_TRUE(convolutionWorks(geometryOf(GetParam(), pass), bias, {"blocked", parts}))
          << static_cast<int>(pass) << " in " << parts;
  }
}

TEST_P(Algorithms, CutsOfTheBatchGiveTheSame) {
  for (ConvPass pass : passes) {
    ConvGeometry g = geometryOf(GetParam(), pass);
    const bool bias = GetParam().bias && pass != ConvPass::BackwardData;
    g.x.dims[0] = g.y.dims[0] = 4;
    const std::vector<ConvCandidate> candidates = convCandidates(g, bias);
    const std::string first = candidates.front().name;
    for (const ConvCandidate &c : candidates)
      EXPECT_TRUE(c.name != first || convolutionWorks(g, bias, c.algorithm()))
          << c.name << " in " << c.parts << " parts";
  }
}

/// Among them those that see a part of the batch as floats, which there are on every processor.
TEST_P(Algorithms, AllOfBf16GiveWhatTheDefinitionSays) {
  for (ConvPass pass : passes) {
    ConvGeometry g = geometryOf(GetParam(), pass, DataType::BF16);
    const bool bias = GetParam().bias && pass != ConvPass::BackwardData;
    g.x.dims[0] = g.y.dims[0] = 4;
    int wide = 0;
    for (const ConvCandidate &c : convCandidates(g, bias)) {
      wide += c.name.compare(0, 5, "wide ") == 0;
      EXPECT_TRUE(convolutionWorks(g, bias, c.algorithm())) << c.name << " in " << c.parts << " parts";
    }
    EXPECT_GT(wide, 0);
  }
}

/// The first one that is neither ours nor sees floats; empty: there is none.
template <typename Candidate> std::string ofHalves(const std::vector<Candidate> &candidates) {
  for (const Candidate &c : candidates)
    if (c.name != "blocked" && c.name.compare(0, 5, "wide ") != 0)
      return c.name;
  return "";
}

TEST(Halves, AreConvolvedAsFloatsWhereThatIsFaster) {
  const Window window{{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}};
  for (ConvPass pass : passes) {
    const ConvGeometry large{pass, {16, 64, 56, 56}, {64, 64, 3, 3}, {16, 64, 56, 56}, window, 1, DataType::BF16};
    const std::vector<ConvCandidate> candidates = convCandidates(large, false);
    const std::string direct = ofHalves(candidates), &first = candidates.front().name;
    const bool slow = direct.empty() || slownessOfHalves(direct.c_str()) > 1;
    EXPECT_EQ(first.compare(0, 5, "wide ") == 0, slow) << first << " before " << direct;
    // A little memory is enough all the same.
    const auto frugal = std::min_element(candidates.begin(), candidates.end(),
                                         [](const auto &a, const auto &b) { return a.workspace < b.workspace; });
    EXPECT_LT(frugal->workspace, size_t{4} << 20);
    // Few operations, which conversions would take longer than.
    const ConvGeometry small{pass, {2, 8, 8, 8},  {8, 8, 1, 1}, {2, 8, 8, 8}, {{1, 1}, {1, 1}, {0, 0, 0, 0}},
                             1,    DataType::BF16};
    if (!direct.empty() && slownessOfHalves(direct.c_str()) < 2) {
      EXPECT_EQ(convCandidates(small, false).front().name, ofHalves(convCandidates(small, false)));
    }
  }
}

/// Gradients of pixels are products where AMX computes these.
TEST(Halves, OfPixelsAreProductsWithAmx) {
  const bool amx = instructionsInEffect() == "AVX512_CORE_AMX";
  for (int64_t stride : {1, 2})
    for (ConvPass pass : passes) {
      const Window window{{1, 1}, {stride, stride}, {0, 0, 0, 0}, {1, 1}};
      const ConvGeometry g{pass, {4, 64, 28, 28}, {128, 64, 1, 1}, {4, 128, 28 / stride, 28 / stride}, window,
                           1,    DataType::BF16};
      EXPECT_EQ(convCandidates(g, false).front().name.rfind("product ", 0) == 0, amx && pass != ConvPass::Forward);
    }
}

TEST(Halves, AreMultipliedAsFloatsWhereThatIsFaster) {
  const auto first = [](int64_t m, bool transposeA) {
    const Shape a = transposeA ? Shape{384, m} : Shape{m, 384};
    return matmulCandidates(
        {a, {384, 1536}, {m, 1536}, MatmulOptions().withTransposeA(transposeA).withFactors(DataType::BF16)});
  };
  const std::string direct = ofHalves(first(2048, false));
  if (direct.empty())
    GTEST_SKIP() << "oneDNN has no products of bf16 here";
  const bool slow = slownessOfHalves(direct.c_str()) > 1.2;
  for (bool transposed : {false, true})
    EXPECT_EQ(first(2048, transposed).front().name, slow ? "blocked" : direct);
  EXPECT_EQ(first(16, false).front().name, ofHalves(first(16, false))); // it waits for memory
}

TEST(Halves, AreFastWithTheirOwnInstructions) {
#ifdef __x86_64__
  EXPECT_GT(slownessOfHalves("jit_bf16:avx512_core"), slownessOfHalves("jit_bf16:avx512_core_bf16"));
  EXPECT_GT(slownessOfHalves("brgconv:avx512_core_bf16"), slownessOfHalves("brgconv:avx512_core_bf16_amx_bf16"));
#endif
}

/// They would take all memory of the machine where the model asks for it. Nothing is made, not even the algorithm.
TEST(ConvTrial, LargerThanAGigabyteIsLeftOut) {
  const ConvGeometry g = {ConvPass::Forward,
                          {1, 1, 40000, 40000},
                          {1, 1, 1, 1},
                          {1, 1, 40000, 40000},
                          Window{{1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
                          1};
  EXPECT_TRUE(convolutionWorks(g, false, {"unknown"}));
}

/// It would take a phase for each step of the stride, of which the image has five.
TEST(ConvTrial, StridesFarLargerThanTheImage) {
  for (ConvPass pass : passes)
    EXPECT_TRUE(convolutionWorks(
        {pass, {1, 1, 5, 5}, {1, 1, 3, 3}, {1, 1, 2, 1}, Window{{3, 3}, {3, 1000000007}, {1, 1, 1, 1}, {1, 1}}, 1},
        false, {"blocked"}));
}

/// Nor where the image has as many: a transposed convolution spreads a small one far apart.
TEST(ConvTrial, PhasesAreNoMoreThanTaps) {
  const ConvGeometry g = {ConvPass::BackwardData,
                          {1, 1, 9, 3000005},
                          {1, 1, 2, 5},
                          {1, 1, 3, 3},
                          Window{{2, 5}, {3, 1000000}, {0, 0, 0, 0}, {1, 1}},
                          1};
  EXPECT_EQ(convGathers(g.asVolume(), 1).size(), 2u * 5);
  EXPECT_TRUE(convolutionWorks(g, false, {"blocked"}));
}

/// Everything that a pass of ours writes, with so many threads.
std::vector<float> resultOfOurs(const ConvGeometry &g, int count) {
  const int before = threads();
  setThreads(count);
  const Shape &first = g.pass == ConvPass::Forward ? g.x : g.y,
              &second = g.pass == ConvPass::BackwardWeight ? g.x : g.w;
  const Shape &result = g.pass == ConvPass::Forward ? g.y : g.pass == ConvPass::BackwardData ? g.x : g.w;
  const Numbers a = randomNumbers(first.elements(), 1), b = randomNumbers(second.elements(), 2);
  std::vector<float> values(static_cast<size_t>(result.elements()));
  const auto engine = makeConvEngine(g, false, {"blocked"});
  std::vector<char> scratch(engine->workspaceBytes() + 64);
  void *aligned = scratch.data();
  size_t space = scratch.size();
  engine->run(std::vector<float>(a.begin(), a.end()).data(), std::vector<float>(b.begin(), b.end()).data(),
              values.data(), nullptr, static_cast<char *>(std::align(64, engine->workspaceBytes(), aligned, space)));
  setThreads(before);
  return values;
}

TEST_P(Algorithms, OursDoesNotDependOnThreads) {
  for (ConvPass pass : passes) {
    const ConvGeometry g = geometryOf(GetParam(), pass);
    EXPECT_EQ(resultOfOurs(g, 1), resultOfOurs(g, 3)) << static_cast<int>(pass);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Algorithms, testing::ValuesIn(convCases()),
                         [](const auto &info) { return std::string(info.param.name); });

/// 64 to 64 channels on 2x2 pixels: oneDNN's gemm would take 1.2 MB for this weight gradient where it has no better
/// one.
TEST(AlgorithmChoices, WorkspacesDoNotDependOnTheProcessor) {
  const ConvGeometry g{
      ConvPass::BackwardWeight, {64, 64, 2, 2}, {64, 64, 3, 3}, {64, 64, 2, 2}, {{3, 3}, {1, 1}, {1, 1, 1, 1}}, 1};
  size_t least = std::numeric_limits<size_t>::max();
  for (const ConvCandidate &c : convCandidates(g, false)) {
    EXPECT_EQ(c.name.find("gemm"), std::string::npos) << c.name;
    least = std::min(least, c.workspace);
  }
  EXPECT_LE(least, g.w.elements() * sizeof(float) + static_cast<size_t>(threads()) * (64 << 10));
}

TEST(AlgorithmChoices, AnUnknownOneIsRefused) {
  const ConvGeometry g = geometryOf(convCases().front(), ConvPass::Forward);
  EXPECT_THROW(makeConvEngine(g, false, {"jit:unknown"}), MemoryNotAvailable);
  for (const ConvCandidate &c : convCandidates(g, false)) {
    if (c.name != "blocked") { // 2 images cannot be cut into 3 parts
      EXPECT_THROW(makeConvEngine(g, false, {c.name.c_str(), 3}), MemoryNotAvailable) << c.name;
    }
  }
  EXPECT_THROW(Matmul("fc", {2, 3}, {3, 4}, {2, 4}, MatmulOptions().withAlgorithm({"unknown"})), MemoryNotAvailable);
}

TEST(AlgorithmChoices, OurProductsGiveTheSameAsTheOthers) {
  struct Case {
    Shape a, b, c;
    bool transposeA, transposeB;
  };
  for (const Case &p : {Case{{5, 7}, {7, 9}, {5, 9}, false, false}, Case{{300, 70}, {300, 130}, {70, 130}, true, false},
                        Case{{33, 600}, {45, 600}, {33, 45}, false, true}, Case{{64, 8}, {16, 64}, {8, 16}, true, true},
                        Case{{3, 5, 8}, {3, 8, 4}, {3, 5, 4}, false, false},
                        Case{{2, 3, 5, 8}, {3, 8, 1}, {2, 3, 5, 1}, false, false}}) {
    for (const DataType type : {DataType::F32, DataType::BF16})
      for (const DataType result : {type, DataType::F32}) {
        Harness h;
        const Tensor a = h.tensor(p.a, Layout::RowMajor, randomNumbers(p.a.elements(), 1), type),
                     b = h.tensor(p.b, Layout::RowMajor, randomNumbers(p.b.elements(), 2), type);
        const Shape row{p.c[p.c.rank - 1]};
        const Tensor bias = h.tensor(row, Layout::RowMajor, randomNumbers(row[0], 3), result);
        const Tensor c = h.tensor(p.c, Layout::RowMajor, result), d = h.tensor(p.c, Layout::RowMajor, result);
        MatmulOptions options{p.transposeA, p.transposeB, 0.5f, 1, row, {}, type, result};
        const Matmul any("any", p.a, p.b, p.c, options);
        const Matmul ours("ours", p.a, p.b, p.c, options.withAlgorithm({"blocked"}));
        any.run(h.session.compute, a, b, bias, c, h.workspace(any));
        ours.run(h.session.compute, a, b, bias, d, h.workspace(ours));
        const Numbers want = h.read(c), have = h.read(d);
        for (size_t i = 0; i < want.size(); ++i) // of halves each may round twice, before the bias is added
          EXPECT_NEAR(want[i], have[i], result == DataType::F32 ? 1e-4 : 1e-4 + 0x1p-6 * std::fabs(want[i]) + 0.1) << i;
      }
  }
}

} // namespace
} // namespace sluice
