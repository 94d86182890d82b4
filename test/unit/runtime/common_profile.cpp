// SPDX-License-Identifier: Apache-2.0
// What --profile-out and --trace write: of a whole program, and of records.
#include "test/unit/runtime/TinyProgram.h"

#include "runtime/program/Trace.h"

using namespace sluice;

namespace {

TEST_F(TinyProgram, WritesAProfile) {
  ASSERT_EQ(run("--data data --profile-out p.json", "offload"), 0) << err;
  Json profile = Json::parse(folder.read("p.json"));
  EXPECT_EQ(profile["version"], 1);
  EXPECT_EQ(profile["threads"], 1);
  EXPECT_GE(profile["ops"].size(), 6u);
  for (const char *link : {"d2h", "h2d", "duplex"})
    EXPECT_GT(profile["links"][link].get<double>(), 1e6);
  EXPECT_GE(profile["links"]["contention"].get<double>(), 0);
}

TEST_F(TinyProgram, TracesTenStepsWithARowForEachStream) {
  ASSERT_EQ(run("--data data --steps 14 --trace trace.json", "offload"), 0) << err;
  std::map<std::string, int> rows; // by stream
  std::map<int, int> updates;      // updates of the weight, by row
  const Json trace = Json::parse(folder.read("trace.json"));
  for (const Json &event : trace["traceEvents"])
    if (event["name"] == "thread_name")
      EXPECT_TRUE(rows.emplace(event["args"]["name"], event["tid"]).second);
    else if (event["name"] == "fc.weight" && event["ph"] == "X")
      ++updates[event["tid"]];
  ASSERT_TRUE(rows.count("compute") && rows.count("to host") && rows.count("to device"));
  EXPECT_EQ(updates, (std::map<int, int>{{rows["compute"], 10}}));
}

TEST(ProfileOut, AveragesZerosOverSteps) {
  const Folder folder;
  std::vector<OpRecord> records; // two calls of one name in each of two steps, which write three tensors
  for (double zeros : {0.25, 0.75}) {
    records.push_back({"relu", "fused", StreamId::Compute, 0, 1, 0, {zeros, 0}});
    records.push_back({"relu", "fused", StreamId::Compute, 1, 2, 0, {1}});
    records.push_back({"conv", "conv", StreamId::Compute, 2, 3, 0});
  }
  writeProfile(folder / "p.json", records, 2, {1e9, 1e9, 1e9}, 2);
  const Json ops = Json::parse(folder.read("p.json"))["ops"];
  EXPECT_EQ(ops[0]["zeros"], Json({0.5, 0, 1}));
  EXPECT_FALSE(ops[1].contains("zeros"));
}

TEST(ProfileOut, TakesWhatAStepDoes) {
  const Folder folder;
  // Two calls of one name in each of three steps; what disturbs one op a step is in no median.
  std::vector<OpRecord> records;
  double now = 0;
  auto add = [&](const char *node, const char *op, double seconds, size_t bytes = 0) {
    records.push_back({node, op, StreamId::Compute, now, now + seconds, bytes});
    now += seconds;
  };
  for (int step = 0; step < 3; ++step) {
    add("join", "insert", step == 0 ? 2 : 1);
    add("conv", "conv", step == 1 ? 4 : 3);
    add("join", "insert", 1);
    add("fc", "matmul", step == 2 ? 6 : 5);
    add("x", "copy to host", 100, 8);
  }
  writeProfile(folder / "p.json", records, 3, {1e9, 1e9, 1e9}, 2);
  const Json ops = Json::parse(folder.read("p.json"))["ops"];
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[0]["op"], "insert");
  EXPECT_EQ(ops[0]["calls"], 2);
  EXPECT_EQ(ops[1]["calls"], 1);
  // Medians 2, 3 and 5; every step took 11.
  EXPECT_NEAR(ops[0]["seconds"].get<double>(), 2 * 1.1, 1e-9);
  EXPECT_NEAR(ops[1]["seconds"].get<double>(), 3 * 1.1, 1e-9);
  EXPECT_NEAR(ops[2]["seconds"].get<double>(), 5 * 1.1, 1e-9);
}

} // namespace
