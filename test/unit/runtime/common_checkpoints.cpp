// SPDX-License-Identifier: Apache-2.0
// Several checkpoints of a run, damaged ones, and what is written while training goes on.
#include "test/unit/runtime/TinyProgram.h"

#include "runtime/data/Fingerprint.h"
#include "runtime/program/CheckpointWriter.h"
#include "runtime/program/KeptCheckpoints.h"

using namespace sluice;

namespace {

class Checkpoints : public TinyProgram {
protected:
  std::string stepOf(const std::string &name) const { return SafetensorsFile(folder / name).metadata().at("step"); }
  std::vector<std::string> files(const std::string &name) const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder / name))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  /// The command after "go on with: " of the last message.
  std::string offered() const {
    const std::string words = "go on with: ";
    const size_t at = err.find(words);
    return at == std::string::npos ? "false" : err.substr(at + words.size(), err.find('\n', at) - at - words.size());
  }

  const std::string common = "--data data --shuffle --lr 0.1 --seed 5 ";
};

} // namespace

TEST_F(Checkpoints, TheLastOnesAreKept) {
  ASSERT_EQ(run(common + "--steps 9 --checkpoint whole --log whole-log"), 0) << err;
  ASSERT_EQ(run(common + "--steps 9 --checkpoint c --checkpoint-every 2 --keep-checkpoints 3"), 0) << err;
  EXPECT_EQ(files("c"), (std::vector<std::string>{"checkpoint-6.safetensors", "checkpoint-8.safetensors",
                                                  "checkpoint.safetensors", "recipe.toml"}));
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), folder.read("whole/checkpoint.safetensors"));
  EXPECT_EQ(stepOf("c/checkpoint-8.safetensors"), "8");

  // Each is one to go on from. Who goes back keeps what is written from there on.
  ASSERT_EQ(run("--recipe c/recipe.toml --resume c/checkpoint-6.safetensors --log log"), 0) << err;
  EXPECT_EQ(losses("log").size(), 3u);
  for (auto [step, loss] : losses("log"))
    EXPECT_EQ(losses("whole-log")[step], loss);
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), folder.read("whole/checkpoint.safetensors"));
  ASSERT_EQ(run("--recipe c/recipe.toml --resume c/checkpoint-8.safetensors --steps 11 --checkpoint-every 1"), 0)
      << err;
  EXPECT_EQ(files("c"), (std::vector<std::string>{"checkpoint-10.safetensors", "checkpoint-9.safetensors",
                                                  "checkpoint.safetensors", "recipe.toml"}));
}

/// What the log says of the first part stays, what it says of steps that are done again goes.
TEST_F(Checkpoints, TheLogGoesOn) {
  const auto events = [&](const std::string &name) {
    std::string all;
    for (const Json &line : log(name))
      all += line["event"].get<std::string>()[0] + (line.contains("step") ? line["step"].dump() : "") + " ";
    return all;
  };
  const std::string evaluated = common + "--evaluate data --evaluate-every 3 --log log ";
  ASSERT_EQ(run(evaluated + "--steps 8 --checkpoint c --checkpoint-every 3 --keep-checkpoints 2"), 0) << err;
  EXPECT_EQ(events("log"), "s s1 s2 s3 e3 s4 s5 e5 s6 e6 s7 s8 e8 e ");
  const std::string first = folder.read("log");
  folder.write("log", first + "{\"event\":\"st"); // as a run leaves it that is killed
  // The checkpoint is from before the evaluation of its step, which is made again.
  ASSERT_EQ(run(evaluated + "--resume c/checkpoint-6.safetensors --steps 7"), 0) << err;
  EXPECT_EQ(events("log"), "s s1 s2 s3 e3 s4 s5 e5 s6 s e6 s7 e7 e ");
  EXPECT_EQ(folder.read("log").find(first.substr(0, 300)), 0u);
  folder.write("log", first);
  ASSERT_EQ(run(evaluated + "--resume c --steps 10"), 0) << err;
  EXPECT_EQ(events("log"), "s s1 s2 s3 e3 s4 s5 e5 s6 e6 s7 s8 e8 e s s9 e9 s10 e10 e ");
  // An evaluation alone takes nothing away.
  folder.write("log", first);
  ASSERT_EQ(run("--evaluate data --log log --resume c/checkpoint-6.safetensors"), 0) << err;
  EXPECT_EQ(events("log"), "s s1 s2 s3 e3 s4 s5 e5 s6 e6 s7 s8 e8 e s e6 e ");
  // The log of another run, and one that does not go that far, begins anew.
  ASSERT_EQ(run("--data data --seed 6 --steps 8 --log log"), 0) << err;
  ASSERT_EQ(run(evaluated + "--resume c --steps 9"), 0) << err;
  EXPECT_EQ(log("log")[0]["first_step"], 9);
  folder.write("log", first.substr(0, first.find('\n') + 1));
  ASSERT_EQ(run(evaluated + "--resume c --steps 9"), 0) << err;
  EXPECT_EQ(log("log")[0]["first_step"], 9);
}

TEST_F(Checkpoints, OfOthersAreLeftAlone) {
  ASSERT_EQ(run("--data data --steps 1 --checkpoint other", "other-model"), 0) << err;
  ASSERT_EQ(run("--data data --steps 4 --checkpoint c --checkpoint-every 1 --keep-checkpoints 3"), 0) << err;
  ASSERT_EQ(run("--data data --steps 6 --resume c --checkpoint c"), 0) << err;
  EXPECT_TRUE(folder.has("c/checkpoint-2.safetensors") && folder.has("c/checkpoint-3.safetensors"));
  std::filesystem::copy_file(folder / "other/checkpoint.safetensors", folder / "c/checkpoint-1.safetensors");
  folder.write("c/checkpoint-mine.safetensors", "notes");
  ASSERT_EQ(run("--data data --steps 7 --resume c --checkpoint c --keep-checkpoints 2"), 0) << err;
  EXPECT_EQ(files("c"),
            (std::vector<std::string>{"checkpoint-1.safetensors", "checkpoint-6.safetensors",
                                      "checkpoint-mine.safetensors", "checkpoint.safetensors", "recipe.toml"}));
  folder.write("c/checkpoint-7.safetensors", "notes");
  expectFailure(1, "--data data --steps 8 --resume c --checkpoint c --keep-checkpoints 2",
                "cannot write c/checkpoint-7.safetensors: exists and is no checkpoint of this model");
  EXPECT_EQ(folder.read("c/checkpoint-7.safetensors"), "notes");
  EXPECT_EQ(stepOf("c/checkpoint.safetensors"), "7");
}

/// Nor are those of another run of the same model, which a forgotten --resume would cost.
TEST_F(Checkpoints, OfAFormerRunAreNotWrittenOver) {
  const std::string evaluated = "--data data --evaluate data --best loss ";
  ASSERT_EQ(run(evaluated + "--steps 4 --checkpoint c"), 0) << err;
  ASSERT_EQ(run("--data data --steps 2 --checkpoint d"), 0) << err;
  const std::string newest = folder.read("c/checkpoint.safetensors"), best = folder.read("c/best.safetensors");
  const char *ways = ", would write over: go on from there by --resume c, name another folder, or add --force";
  expectFailure(1, "--data data --steps 9 --checkpoint ./c/",
                "c/checkpoint.safetensors is from step 4 of another run of this model, which this run, from the start, "
                "would write over: go on from there by --resume ./c/, name another folder, or add --force");
  expectFailure(1, evaluated + "--steps 9 --checkpoint c", ways);
  expectFailure(1, "--data data --steps 9 --resume d --checkpoint c", "which this run, from d/checkpoint.safetensors");
  std::filesystem::rename(folder / "c/checkpoint.safetensors", folder / "c/kept");
  expectFailure(1, "--data data --steps 9 --checkpoint c",
                "go on from there by --resume c/best.safetensors, name another");
  std::filesystem::rename(folder / "c/kept", folder / "c/checkpoint.safetensors");
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), newest);
  EXPECT_EQ(folder.read("c/best.safetensors"), best);
  // Going on, also from an earlier one, leaves the best where it is.
  ASSERT_EQ(run("--data data --steps 5 --resume c/best.safetensors --checkpoint c"), 0) << err;
  EXPECT_EQ(folder.read("c/best.safetensors"), best);
  // What is written over with --force leaves none of the former run as if it were this one's.
  ASSERT_EQ(run("--data data --steps 1 --checkpoint c --force"), 0) << err;
  EXPECT_EQ(files("c"), (std::vector<std::string>{"checkpoint.safetensors", "recipe.toml"}));
  ASSERT_EQ(run(evaluated + "--steps 4 --checkpoint c --force"), 0) << err;
  EXPECT_EQ(folder.read("c/best.safetensors"), best);
  // No step is nothing to lose.
  ASSERT_EQ(run("--data data --steps 0 --checkpoint e"), 0) << err;
  ASSERT_EQ(run("--data data --steps 1 --checkpoint e"), 0) << err;
}

TEST_F(Checkpoints, BehindADamagedOneTheFormerIsOffered) {
  const std::string keep = "--checkpoint c --checkpoint-every 2 --keep-checkpoints 2 ";
  ASSERT_EQ(run(common + "--steps 10 --checkpoint whole"), 0) << err;
  ASSERT_EQ(run(common + "--steps 6 " + keep), 0) << err;
  const std::string good = folder.read("c/checkpoint.safetensors");
  std::string flipped = good;
  flipped[good.size() - 3] ^= 1;
  const std::pair<std::string, std::string> damages[] = {
      {good.substr(0, good.size() - 1), "the file holds"},
      {flipped, "the file is damaged: the checksum of tensor 'fc.bias/momentum'"},
      {"", "not a safetensors file"}};
  std::filesystem::copy(folder / "c", folder / "saved");
  for (const auto &[content, reason] : damages) {
    folder.write("c/checkpoint.safetensors", content);
    folder.write("log", "{\"event\":\"start\"");
    expectFailure(1, common + "--steps 10 --resume c --log log " + keep, reason);
    EXPECT_THAT(err, testing::HasSubstr("; c/checkpoint-4.safetensors is whole: go on with: ./tiny "));
    EXPECT_EQ(folder.read("log"), "{\"event\":\"start\"");
    EXPECT_EQ(shell(offered()), 0) << err;
    EXPECT_EQ(folder.read("c/checkpoint.safetensors"), folder.read("whole/checkpoint.safetensors"));
    std::filesystem::remove_all(folder / "c");
    std::filesystem::copy(folder / "saved", folder / "c");
  }
  for (const char *name : {"c/checkpoint.safetensors", "c/checkpoint-4.safetensors"})
    folder.write(name, flipped);
  expectFailure(1, common + "--steps 10 --resume c", "the file is damaged");
  EXPECT_THAT(err, testing::Not(testing::HasSubstr("go on with")));
}

TEST_F(Checkpoints, OfOtherDataAreRefused) {
  ASSERT_EQ(run("--data data --steps 3 --checkpoint c"), 0) << err;
  labels.pop_back();
  images.resize(21 * 8);
  folder.write("data/input.npy", npyArray("<f4", "(21, 2, 2, 2)", images));
  folder.write("data/target.npy", npyArray("<i8", "(21,)", labels));
  expectFailure(1, "--data data --steps 6 --resume c --checkpoint c",
                "data holds 21 samples, the run in c was trained on 22");
  EXPECT_EQ(run("--data data --steps 6 --init c/checkpoint.safetensors"), 0) << err;
}

TEST_F(Checkpoints, OfChangedDataAreRefused) {
  ASSERT_EQ(run("--data data --steps 9 --checkpoint whole"), 0) << err;
  ASSERT_EQ(run("--data data --steps 3 --checkpoint c"), 0) << err;
  const std::string former = folder.read("c/checkpoint.safetensors");
  const std::vector<int64_t> before = labels;
  labels[21] = 1;
  writeData();
  expectFailure(1, "--data data --steps 9 --resume c --checkpoint c",
                "data holds 2 files of 1136 bytes with checksum ");
  EXPECT_THAT(err, testing::ContainsRegex("the run in c was trained on 2 files of 1136 bytes with checksum .*; give it "
                                          "the data that it had, or start anew with its weights: "
                                          "--init=c/checkpoint.safetensors"));
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), former);

  // Neither time nor place matter.
  labels = before;
  writeData();
  std::filesystem::rename(folder / "data", folder / "moved");
  ASSERT_EQ(run("--data ./moved --steps 9 --resume c --checkpoint c"), 0) << err;
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), folder.read("whole/checkpoint.safetensors"));
}

TEST(Fingerprint, OfFilesTellsThemApart) {
  Folder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 300; ++i) {
    folder.write(text("f", i), i == 0 ? std::string(3 << 20, 'x') : text("content ", i));
    paths.push_back(folder / text("f", i));
  }
  const std::vector<std::string> few(paths.begin(), paths.begin() + 3);
  const std::string all = fingerprintOf(paths), some = fingerprintOf(few), one = fingerprintOf({paths[0]});
  EXPECT_THAT(some, testing::StartsWith(text("3 files of ", (3 << 20) + 18, " bytes with checksum ")));
  EXPECT_THAT(one, testing::StartsWith("1 file of "));
  EXPECT_EQ(fingerprintOf({}), "");
  folder.write("f2", "Content 2");
  EXPECT_NE(fingerprintOf(few), some);
  EXPECT_EQ(fingerprintOf(paths), all); // of so many, names and sizes
  folder.write("f2", "content 22");
  EXPECT_NE(fingerprintOf(paths), all);
  for (size_t at : {size_t{0}, (size_t{3} << 20) - 1}) {
    std::string large(3 << 20, 'x');
    large[at] = 'y';
    folder.write("f0", large);
    EXPECT_NE(fingerprintOf({paths[0]}), one) << at;
  }
  const std::string there = fingerprintOf({paths[3], paths[4]});
  EXPECT_NE(fingerprintOf({paths[4], paths[3]}), there);
  std::filesystem::create_directory(folder / "sub");
  for (const char *name : {"f3", "f4"})
    std::filesystem::copy_file(folder / name, folder / text("sub/", name));
  EXPECT_EQ(fingerprintOf({folder / "sub/f3", folder / "sub/f4"}), there);
  expectError<DataError>([&] { fingerprintOf({folder / "nowhere"}); }, "nowhere: No such file");
}

// --patience counts on, and what is the best stays the best, wherever a run was cut: also between a checkpoint and the
// evaluation of its step.
TEST_F(Checkpoints, KnowWhereEarlyStoppingStands) {
  const std::string flags = "--data data --evaluate data --lr 0.7 --momentum 0.95 --evaluate-every 1 --patience 6 "
                            "--steps 40 --checkpoint-every 1 --keep-checkpoints 99 ";
  ASSERT_EQ(run(flags + "--checkpoint whole --log whole-log"), 0) << err;
  EXPECT_THAT(out, testing::HasSubstr("did not get better than"));
  EXPECT_TRUE(folder.has("whole/best.safetensors")); // unasked
  const size_t steps = losses("whole-log").size();
  ASSERT_LT(steps, 40u);
  for (size_t cut = steps - 6; cut < steps; ++cut) {
    const std::string from = text("whole/checkpoint-", cut, ".safetensors");
    EXPECT_EQ(SafetensorsFile(folder / from).metadata().count("evaluation"), 1u);
    ASSERT_EQ(run(flags + "--checkpoint c --force --resume " + from), 0) << err;
    EXPECT_EQ(folder.read("c/checkpoint.safetensors"), folder.read("whole/checkpoint.safetensors")) << cut;
  }
  // What has ended ends again, however often it is taken up, and its last evaluation counts once.
  const std::string ended = folder.read("whole/checkpoint.safetensors");
  for (int again = 0; again < 2; ++again)
    ASSERT_EQ(run(flags + "--checkpoint whole --resume whole"), 0) << err;
  EXPECT_EQ(folder.read("whole/checkpoint.safetensors"), ended);
  ASSERT_EQ(run(flags + "--best loss --checkpoint best"), 0) << err;
  const std::string best = "--best loss --checkpoint parts ";
  const std::string some = flags.substr(0, flags.find("--steps 40")) + best;
  ASSERT_EQ(run(some + "--steps 5"), 0) << err;
  ASSERT_EQ(run(some + "--steps 40 --resume parts"), 0) << err;
  for (const char *name : {"/checkpoint.safetensors", "/best.safetensors"})
    EXPECT_EQ(folder.read(std::string("best") + name), folder.read(std::string("parts") + name)) << name;
}

TEST_F(Checkpoints, TheirCopyIsAnnouncedAndKeepsToTheHostBudget) {
  ASSERT_EQ(run(common + "--steps 7 --checkpoint a --checkpoint-every 1 --log log"), 0) << err;
  EXPECT_THAT(out, testing::HasSubstr("checkpoints:   216 bytes more of host memory"));
  EXPECT_EQ(log("log")[0]["checkpoint_bytes"], 216);
  ASSERT_EQ(run(common + "--steps 7 --checkpoint b --checkpoint-every 1 --log log", "host-budget"), 0) << err;
  EXPECT_THAT(out, testing::HasSubstr(
                       "a copy of 216 bytes beside 256 is more than the 471 that the budget leaves for host memory"));
  EXPECT_EQ(log("log")[0]["checkpoint_bytes"], 0);
  EXPECT_EQ(folder.read("a/checkpoint.safetensors"), folder.read("b/checkpoint.safetensors"));
}

TEST_F(Checkpoints, AFolderThatVanishesEndsTheRun) {
  EXPECT_EQ(shell("mkfifo log; ./tiny --data data --epochs 100000000 --checkpoint c --log log & { read line; rm -rf c; "
                  "cat >/dev/null; } <log; wait $!"),
            1);
  expectError("cannot write c/");
  EXPECT_THAT(err, testing::HasSubstr("No such file or directory"));
}

namespace {

class Writer : public testing::Test {
protected:
  Writer() {
    program.model = "two.onnx";
    program.variables = variables;
    program.variableCount = 3;
    fill(1);
  }
  void fill(float value) {
    const std::vector<float> values(6, value);
    session.write(variables[0].tensor, values.data());
  }
  float saved(const std::string &name) const {
    const SafetensorsFile file(folder / name);
    float values[6];
    TensorReader(file, "w", DataType::F32, {2, 3}).read(0, values, sizeof values);
    return values[5];
  }
  static RunState at(int64_t step) {
    RunState state;
    state.step = step;
    return state;
  }

  Folder folder;
  const Variable variables[3] = {{"w", device(0, {2, 3}), Role::Parameter, Init::Zero},
                                 {"c", device(64, {1}), Role::Constant, Init::Zero},
                                 {"frozen", device(128, {1}), Role::Constant, Init::Zero, 0, 0, 0}};
  Program program{};
  Session session{4096, 4096, 1};
};

} // namespace

TEST_F(Writer, SavesTheStateOfTheMoment) {
  CheckpointWriter writer(session, program, folder.path, 2, "steps = 1\n", false, false);
  for (int step = 1; step <= 5; ++step) {
    fill(static_cast<float>(step));
    writer.save(at(step));
    if (step == 3)
      writer.saveBest(at(step));
    fill(-1); // steps go on meanwhile
  }
  writer.finish();
  EXPECT_EQ(writer.lastWritten(), 5);
  EXPECT_EQ(saved("checkpoint.safetensors"), 5);
  EXPECT_EQ(saved("checkpoint-4.safetensors"), 4);
  EXPECT_EQ(saved("best.safetensors"), 3);
  EXPECT_EQ(folder.read("recipe.toml"), "steps = 1\n");
  EXPECT_EQ(SavedRun(bestPath(folder.path), program).state().step, 3);
}

TEST_F(Writer, SavesFrozenWeightsButNoOtherConstants) {
  const float given = 7, none = 0;
  session.write(variables[2].tensor, &given); // as --init does
  CheckpointWriter writer(session, program, folder.path, 1, "", false, false);
  writer.save(at(1));
  writer.finish();
  EXPECT_FALSE(SafetensorsFile(folder / "checkpoint.safetensors").contains("c"));
  session.write(variables[2].tensor, &none);
  SavedRun(folder.path, program).load(session);
  float read = 0;
  session.read(variables[2].tensor, &read);
  EXPECT_EQ(read, 7);
}

TEST_F(Writer, SaysWhatFailedAndGoesOn) {
  CheckpointWriter writer(session, program, folder / "c", 1, "", false, false);
  writer.save(at(1));
  EXPECT_EQ(writer.lastWritten(), -1);
  expectError<DataError>([&] { writer.check(); }, "c/checkpoint.safetensors: No such file or directory");
  std::filesystem::create_directory(folder / "c");
  writer.save(at(2));
  writer.finish();
  EXPECT_EQ(writer.lastWritten(), 2);
}
