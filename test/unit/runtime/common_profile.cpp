// SPDX-License-Identifier: Apache-2.0
// What --profile-out and --trace write: of a whole program, and of records.
#include "test/unit/runtime/TinyProgram.h"

#include "runtime/program/Report.h"
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
  for (const char *codec : {"zvc", "bf16", "fp16", "int8"})
    EXPECT_GT(profile["codecs"][codec].get<double>(), 1e6) << codec;
  for (const char *key : {"codec_contention", "packing_contention"})
    EXPECT_TRUE(profile[key].get<double>() >= 0 && profile[key].get<double>() <= 1) << key << " " << profile[key];
  EXPECT_FALSE(profile["links"].contains("storage"));
}

// Of the disk that has the file; the measurement leaves nothing there.
TEST_F(TinyProgram, WritesWhatItsDiskReaches) {
  std::filesystem::create_directory(folder / "disk");
  ASSERT_EQ(run("--data data --steps 2 --profile-out p.json --offload-to disk/slots", "storage"), 0) << err;
  const Json storage = Json::parse(folder.read("p.json"))["links"]["storage"];
  for (const char *rate : {"d2h", "h2d"})
    EXPECT_GT(storage[rate].get<double>(), 1e5);
  EXPECT_GT(storage["latency_seconds"].get<double>(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "disk"));
  EXPECT_FALSE(measureStorage(folder / "none"));
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

/// The ops of an evaluation between two recorded steps are none of a step.
TEST_F(TinyProgram, RecordsNoEvaluation) {
  ASSERT_EQ(run("--data data --epochs 2 --evaluate data --profile-out p.json --trace trace.json"), 0) << err;
  for (const char *file : {"p.json", "trace.json"})
    EXPECT_THAT(folder.read(file), testing::Not(testing::HasSubstr("count"))) << file;
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

/// Ops are told apart by their roles and codecs, whatever nodes and ops are called.
TEST(MeasuredActions, AreThoseOfTheirRoles) {
  const ActionRow rows[] = {{"offload", OpRole::Offload, {}, 1, 8, 0.25},
                            {"offload fp16", OpRole::Offload, {Codec::Fp16}, 1, 8, 0},
                            {"compress mask+zfp", OpRole::Encode, {Codec::Zfp, 8, 0, true}, 1, 8, 0},
                            {"encode mask", OpRole::Encode, {}, 1, 8, 0},
                            {"encode argmax", OpRole::Compute, {}, 1, 8, 0},
                            {"recompute", OpRole::Rerun, {}, 1, 8, 0},
                            {"invert", OpRole::Rebuild, {}, 1, 8, 0}};
  Program program{};
  program.actions = rows, program.actionRows = std::size(rows);
  const Codec half{Codec::Fp16}, plainZfp{Codec::Zfp}, zfp{Codec::Zfp, 12, 0, true};
  double now = 0;
  std::vector<OpRecord> records;
  const auto add = [&](const Node &node, double seconds, size_t bytes = 0) {
    records.push_back({node, "op", StreamId::Compute, now, now + seconds, bytes});
    now += seconds;
  };
  add({"x", OpRole::Batch}, 100, 1000); // no part of the plan
  add({"copy to host (again)"}, 100);
  add({"a", OpRole::Offload}, 1, 10);
  add({"a", OpRole::Prefetch}, 2, 20);
  add({"a", OpRole::Offload, half}, 3, 30);
  add({"a", OpRole::Encode, zfp}, 4, 40);
  add({"a", OpRole::Decode, zfp}, 5, 50);
  add({"a", OpRole::Encode, plainZfp}, 100, 1000);
  add({"a", OpRole::Encode}, 6);
  add({"a", OpRole::Rerun}, 7);
  add({"a", OpRole::Rebuild}, 8);
  add({"a", OpRole::Update}, 100);
  const std::vector<MeasuredAction> actions = measureActions(program, records, 2, 3);
  ASSERT_EQ(actions.size(), std::size(rows));
  EXPECT_EQ(actions[0].predictedSeconds, 0.75); // of three batches
  const double seconds[] = {1.5, 1.5, 4.5, 3, 0, 3.5, 4};
  const size_t bytes[] = {15, 15, 45, 0, 0, 0, 0};
  for (size_t i = 0; i < actions.size(); ++i) {
    EXPECT_EQ(actions[i].row, &rows[i]);
    EXPECT_EQ(actions[i].seconds, seconds[i]) << rows[i].action;
    EXPECT_EQ(actions[i].movedBytes, bytes[i]) << rows[i].action;
  }
}

/// A node that runs again is another line of a profile than the node itself; codecs of copies have their own names.
TEST(ProfileOut, TellsRolesAndCodecs) {
  const Folder folder;
  std::vector<OpRecord> records = {{"conv", "conv", StreamId::Compute, 0, 1, 0},
                                   {{"conv", OpRole::Rerun}, "conv", StreamId::Compute, 1, 3, 0},
                                   {{"conv", OpRole::Rebuild}, "conv", StreamId::Compute, 3, 6, 0},
                                   {{"x", OpRole::Encode, {Codec::Zfp, 8, 0, true}}, "pack", StreamId::Codec, 6, 7, 8}};
  writeProfile(folder / "p.json", records, 1, {1e9, 1e9, 1e9}, 2);
  const Json profile = Json::parse(folder.read("p.json"));
  ASSERT_EQ(profile["ops"].size(), 3u);
  EXPECT_EQ(profile["ops"][0]["node"], "conv");
  EXPECT_EQ(profile["ops"][1]["node"], "conv (again)");
  EXPECT_EQ(profile["ops"][2]["node"], "conv (inverse)");
  EXPECT_EQ(profile["codecs"], Json({{"mask+zfp", 8.0}}));
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
