// SPDX-License-Identifier: Apache-2.0
// --roofline: what is made of records and of the program's table, what is printed, and what the machine's peaks are.
#include "test/unit/runtime/TinyProgram.h"

#include "runtime/program/Roofline.h"

using namespace sluice;

namespace {

/// A machine that computes 100 operations a second, 200 in bf16, and moves 10 bytes a second, 40 while there are few.
Peaks slowMachine() {
  Peaks peaks;
  peaks.flops = 100, peaks.halfFlops = 200;
  peaks.memory = {{8, 40}, {1000, 10}};
  return peaks;
}

/// Steps of which every one records the same ops one after another.
class Records {
public:
  void add(const Node &node, const char *op, double seconds, StreamId stream = StreamId::Compute, size_t bytes = 0) {
    all.push_back({node, op, stream, now, now + seconds, bytes});
    now += seconds;
  }
  std::vector<OpRecord> all;

private:
  double now = 0;
};

Roofline rooflineWith(const std::vector<WorkRow> &work, const Records &records, int64_t steps, double stepSeconds) {
  Program program{};
  program.work = work.data(), program.workRows = static_cast<int>(work.size());
  return rooflineOf(program, records.all, steps, stepSeconds, slowMachine());
}

TEST(Roofline, BoundsAnOpByArithmeticOrByMemory) {
  Records records;
  for (int step = 0; step < 2; ++step) {
    records.add("conv", "conv", 10);
    records.add({"conv", OpRole::Rerun}, "conv", 10);
    records.add("relu", "fused", 3);
    records.add("small", "fused", 1);
    records.add("half", "matmul", 5);
    records.add("new", "unknown", 2);
    records.add("conv", "copy to host", 50, StreamId::ToHost, 8);
    records.add("conv", "pack", 50, StreamId::Codec);
  }
  const Roofline roofline = rooflineWith({{"conv", "conv", 1, 600, 20, Precision::FP32},
                                          {"conv (again)", "conv", 1, 300, 40, Precision::FP32},
                                          {"relu", "fused", 1, 5, 20, Precision::FP32},
                                          {"small", "fused", 1, 5, 8, Precision::FP32},
                                          {"half", "matmul", 1, 600, 20, Precision::BF16},
                                          {"never", "run", 1, 1, 1, Precision::FP32}},
                                         records, 2, 35);
  ASSERT_EQ(roofline.ops.size(), 6u);
  const double bounds[] = {6, 4, 2, 0.2, 3}, lost[] = {4, 6, 1, 0.8, 2};
  for (size_t i = 0; i < std::size(bounds); ++i) {
    ASSERT_TRUE(roofline.ops[i].times) << i;
    EXPECT_NEAR(roofline.ops[i].times->bound, bounds[i], 1e-9) << i;
    EXPECT_NEAR(roofline.ops[i].times->lost(), lost[i], 1e-9) << i;
  }
  EXPECT_EQ(roofline.ops[1].measured.node, "conv (again)");
  EXPECT_FALSE(roofline.ops[5].times);
  EXPECT_NEAR(roofline.sum().seconds, 31, 1e-9);
  EXPECT_NEAR(roofline.sum().flops, 1510, 1e-9);
  EXPECT_NEAR(roofline.sum().bound, 15.2, 1e-9);
}

/// What a table says of a batch is done in every batch of a step, but updates.
TEST(Roofline, CountsTheBatchesOfAStep) {
  Records records;
  for (int batch = 0; batch < 3; ++batch) {
    records.add("join", "insert", 1);
    records.add("join", "insert", 1);
  }
  records.add("fc", "update_sgd", 1);
  const Roofline roofline = rooflineWith(
      {{"join", "insert", 2, 8, 16, Precision::FP32}, {"fc", "update_sgd", 1, 8, 12, Precision::FP32}}, records, 1, 7);
  EXPECT_NEAR(roofline.ops[0].times->bytes, 48, 1e-9);
  EXPECT_NEAR(roofline.ops[0].times->memory, 48.0 / 40, 1e-9); // a call moves 8 bytes
  EXPECT_NEAR(roofline.ops[0].times->flops, 24, 1e-9);
  EXPECT_NEAR(roofline.ops[1].times->bytes, 12, 1e-9);
}

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

TEST(Roofline, PrintsOpsKindsTheStepAndTheTenThatLoseMost) {
  Records records;
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i)
    names.push_back("relu" + std::to_string(i));
  std::vector<WorkRow> work;
  for (int i = 0; i < 12; ++i) {
    records.add(names[static_cast<size_t>(i)].c_str(), "fused", 1 + i);
    work.push_back({names[static_cast<size_t>(i)].c_str(), "fused", 1, 1, 10, Precision::FP32});
  }
  records.add("conv", "conv", 2);
  work.push_back({"conv", "conv", 1, 400, 10, Precision::FP32}); // faster than can be: it loses nothing
  records.add("new\n", "unknown", 20);
  const std::vector<std::string> lines = linesOf(textOf(rooflineWith(work, records, 1, 125)));
  ASSERT_EQ(lines.size(), 3u + 14 + 2 + 1 + 3 + 2 + 1 + 3 + 2 + 10);
  EXPECT_THAT(lines[0], testing::StartsWith("peaks: "));
  EXPECT_THAT(lines[0], testing::HasSubstr("0.0 in bf16, 0.0 GB/s up to 0.00 MiB, 0.0 GB/s up"));
  EXPECT_THAT(lines[1], testing::EndsWith("median of 1"));
  EXPECT_THAT(lines[3], testing::EndsWith("  fused  relu0"));
  EXPECT_THAT(lines[15], testing::EndsWith("  conv  conv"));
  EXPECT_THAT(lines[15], testing::HasSubstr(" 200.0 % "));
  EXPECT_THAT(lines[16], testing::EndsWith("-  unknown  new\\x0a"));
  EXPECT_EQ(lines[18], "ops of one kind");
  EXPECT_THAT(lines[20], testing::EndsWith("  fused  of 12 nodes"));
  EXPECT_THAT(lines[21], testing::EndsWith("  unknown  of 1 node"));
  EXPECT_EQ(lines[24], "the step");
  EXPECT_THAT(lines[26], testing::EndsWith("  between ops"));
  EXPECT_EQ(std::stod(lines[26]), 125000 - 78000 - 2000 - 20000);
  EXPECT_THAT(lines[27], testing::EndsWith("  step"));
  EXPECT_EQ(std::stod(lines[27]), 125000);
  EXPECT_THAT(lines[31], testing::EndsWith("  fused  relu11"));
  EXPECT_THAT(lines[40], testing::EndsWith("  fused  relu2"));
}

TEST(Peaks, FallWithTheBytesThatAKernelMoves) {
  const Peaks slow = slowMachine();
  EXPECT_EQ(slow.bandwidthFor(8), 40);
  EXPECT_EQ(slow.bandwidthFor(9), 10);
  EXPECT_EQ(slow.bandwidthFor(1e9), 10);
  const Peaks measured = measurePeaks(true);
  EXPECT_GT(measured.flops, 1e7);
  EXPECT_GT(measured.halfFlops, 1e6);
  ASSERT_EQ(measured.memory.size(), 5u);
  for (size_t i = 1; i < measured.memory.size(); ++i) {
    EXPECT_GT(measured.memory[i].bytes, measured.memory[i - 1].bytes);
    EXPECT_LE(measured.memory[i].rate, measured.memory[i - 1].rate);
  }
  EXPECT_GT(measured.memory.back().rate, 1e6);
}

TEST_F(TinyProgram, PrintsItsRoofline) {
  ASSERT_EQ(run("--data data --roofline"), 0) << err;
  EXPECT_THAT(out, testing::HasSubstr("\nroofline:      ops of a step, median of 4\n"));
  EXPECT_THAT(out, testing::ContainsRegex("\n[^\n]* matmul  /fc/Gemm\n"));
  EXPECT_THAT(out, testing::HasSubstr("  between ops\n"));
  expectFailure(2, "--evaluate data --roofline", "--roofline needs --data");
}

} // namespace
