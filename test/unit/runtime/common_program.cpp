// SPDX-License-Identifier: Apache-2.0
// A whole program from its command line: tiny_program.cpp is run as a process of its own, in a folder of its own.
#include "test/unit/runtime/TinyProgram.h"

#include <cmath>

using namespace sluice;

namespace {

/// The same model in double precision. Returns the mean loss of a batch and its gradients.
struct Reference {
  std::vector<double> w, b, dw, db;

  double lossAndGradients(const float *x, const int64_t *t) {
    dw.assign(24, 0), db.assign(3, 0);
    double loss = 0;
    for (int n = 0; n < 4; ++n, x += 8) {
      double z[3], sum = 0;
      for (int k = 0; k < 3; ++k) {
        z[k] = b[k];
        for (int i = 0; i < 8; ++i)
          z[k] += w[k * 8 + i] * x[i];
        sum += std::exp(z[k]);
      }
      loss -= (z[t[n]] - std::log(sum)) / 4;
      for (int k = 0; k < 3; ++k) {
        double d = (std::exp(z[k]) / sum - (t[n] == k)) / 4;
        db[k] += d;
        for (int i = 0; i < 8; ++i)
          dw[k * 8 + i] += d * x[i];
      }
    }
    return loss;
  }
};

} // namespace

TEST_F(TinyProgram, TrainsLikeTheReference) {
  ASSERT_EQ(run("--steps 0 --data data --checkpoint first"), 0) << err;
  ASSERT_EQ(run("--data data --steps 7 --lr 0.1 --momentum 0.5 --weight-decay 0.01 --log log.jsonl --checkpoint last "
                "--dump-gradients g.safetensors"),
            0)
      << err;
  Reference model;
  for (float w : tensor("first/checkpoint.safetensors", "fc.weight", {3, 8}))
    model.w.push_back(w);
  for (float b : tensor("first/checkpoint.safetensors", "fc.bias", {3}))
    model.b.push_back(b);

  std::vector<double> mw(24, 0), mb(3, 0);
  std::map<int64_t, double> logged = losses("log.jsonl");
  ASSERT_EQ(logged.size(), 7u);
  for (int64_t step = 1; step <= 7; ++step) {
    int64_t sample = (step - 1) % 5 * 4;
    EXPECT_NEAR(logged[step],
                model.lossAndGradients(&images[static_cast<size_t>(sample * 8)], &labels[static_cast<size_t>(sample)]),
                1e-5);
    if (step == 1) {
      std::vector<float> dw = tensor("g.safetensors", "fc.weight", {3, 8}),
                         db = tensor("g.safetensors", "fc.bias", {3});
      for (size_t i = 0; i < 24; ++i)
        EXPECT_NEAR(dw[i], model.dw[i], 1e-6);
      for (size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(db[i], model.db[i], 1e-6);
    }
    auto update = [step](std::vector<double> &w, const std::vector<double> &dw, std::vector<double> &m) {
      for (size_t i = 0; i < w.size(); ++i) {
        double d = dw[i] + 0.01 * w[i];
        m[i] = step == 1 ? d : 0.5 * m[i] + d;
        w[i] -= 0.1 * m[i];
      }
    };
    update(model.w, model.dw, mw);
    update(model.b, model.db, mb);
  }
  std::vector<float> w = tensor("last/checkpoint.safetensors", "fc.weight", {3, 8});
  for (size_t i = 0; i < 24; ++i)
    EXPECT_NEAR(w[i], model.w[i], 1e-5);
}

TEST_F(TinyProgram, LogsWhatTheContractNames) {
  ASSERT_EQ(run("--data data --epochs 2 --evaluate data --log log.jsonl"), 0) << err;
  std::vector<Json> lines = log();
  ASSERT_EQ(lines.size(), 14u); // start, 5 steps, evaluation, 5 steps, evaluation, end
  EXPECT_EQ(lines[0]["event"], "start");
  EXPECT_EQ(lines[0]["device_bytes"], 1050112);
  EXPECT_EQ(lines[0]["host_bytes"], 256);
  EXPECT_EQ(lines[0]["lr"], 0.01);
  EXPECT_EQ(lines[1]["event"], "step");
  EXPECT_EQ(lines[1]["step"], 1);
  EXPECT_TRUE(lines[1]["loss"].is_number_float() && lines[1]["ms"].is_number_float());
  EXPECT_EQ(lines[6]["event"], "evaluate");
  EXPECT_TRUE(lines[6]["loss"].is_number_float());
  double right = lines[6]["accuracy"].get<double>() * 22; // the incomplete batch counts
  EXPECT_NEAR(right, std::round(right), 1e-9);
  EXPECT_EQ(lines[13]["event"], "end");
  EXPECT_EQ(lines[13]["device_peak_bytes"], 1050112);
  EXPECT_EQ(lines[13]["host_peak_bytes"], 160); // nothing touches the space of the offloaded logits
  EXPECT_THAT(out, testing::HasSubstr("device memory: 1050112 bytes"));
  EXPECT_THAT(out, testing::HasSubstr("2 of 22 samples are left out"));
}

TEST_F(TinyProgram, SameSeedSameBits) {
  ASSERT_EQ(run("--data data --steps 9 --shuffle --seed 3 --log a"), 0) << err;
  ASSERT_EQ(run("--data data --steps 9 --shuffle --seed 3 --log b", "offload"), 0) << err;
  ASSERT_EQ(run("--data data --steps 9 --shuffle --seed 3 --log p", "offload' SLUICE_POISON='1"), 0) << err;
  ASSERT_EQ(run("--data data --steps 9 --shuffle --seed 4 --log c"), 0) << err;
  EXPECT_EQ(losses("a"), losses("b"));
  EXPECT_EQ(losses("a"), losses("p"));
  EXPECT_NE(losses("a"), losses("c"));
}

TEST_F(TinyProgram, DelaysChangeNoBit) {
  ASSERT_EQ(run("--data data --steps 9 --shuffle --seed 3 --log a --checkpoint a-end"), 0) << err;
  for (std::string seed : {"1", "2", "3"}) {
    ASSERT_EQ(run("--data data --steps 9 --shuffle --seed 3 --log d --checkpoint d-end --force",
                  "offload' SLUICE_DELAY='" + seed),
              0)
        << err;
    EXPECT_EQ(losses("a"), losses("d"));
    EXPECT_EQ(folder.read("a-end/checkpoint.safetensors"), folder.read("d-end/checkpoint.safetensors"));
  }
}

// Whatever happens to host memory, the program says so and the last checkpoint is one to go on from.
TEST_F(TinyProgram, LostHostMemoryStopsClearly) {
  ASSERT_EQ(run("--data data --steps 4 --checkpoint c", "offload"), 0) << err;
  const std::string checkpoint = folder.read("c/checkpoint.safetensors");
  auto expectStop = [&](const std::string &script, const std::string &variant, const std::string &message) {
    EXPECT_EQ(shell(script, variant), 3) << err;
    expectError(message);
    EXPECT_EQ(folder.read("c/checkpoint.safetensors"), checkpoint);
    EXPECT_FALSE(folder.has("slots"));
  };
  const std::string go = "./tiny --data data --steps 9 --resume c --checkpoint c ", file = "--offload-to slots";
  expectStop(go + file, "offload' SLUICE_FAULT='truncate", "cut short or its disk failed");
  expectStop("ulimit -f 64 && " + go + file, "offload", "bytes in 'slots' for the host arena: File too large");
  expectStop(go, "huge", "bytes of memory, but this machine has only");
  EXPECT_EQ(shell(go + file, "offload"), 0) << err;
  EXPECT_NE(folder.read("c/checkpoint.safetensors"), checkpoint);
}

// The same of what is written to a file and read again. Evaluation and predictions need none.
TEST_F(TinyProgram, KeepsWhatItOffloadsInStorage) {
  ASSERT_EQ(run("--data data --steps 5 --log a --checkpoint c"), 0) << err;
  ASSERT_EQ(run("--data data --steps 5 --log b --offload-to slots --trace trace", "storage"), 0) << err;
  EXPECT_EQ(losses("a"), losses("b"));
  EXPECT_FALSE(folder.has("slots"));
  EXPECT_THAT(folder.read("trace"), testing::HasSubstr("copy from storage"));
  EXPECT_EQ(shell("SLUICE_POISON=1 SLUICE_DELAY=3 ./tiny --data data --steps 5 --log p --offload-to slots", "storage"),
            0)
      << err;
  EXPECT_EQ(losses("a"), losses("p"));
  expectFailure(2, "--data data", "in a file of 512 bytes: --offload-to FILE names it", "storage");
  std::filesystem::create_symlink("elsewhere", folder / "link");
  expectFailure(2, "--data data --offload-to link", "exists already", "storage");
}

TEST_F(TinyProgram, LostStorageStopsClearly) {
  ASSERT_EQ(run("--data data --steps 4 --checkpoint c"), 0) << err;
  const std::string checkpoint = folder.read("c/checkpoint.safetensors");
  const std::string go = "./tiny --data data --steps 9 --resume c --checkpoint c --offload-to slots";
  EXPECT_EQ(shell("SLUICE_FAULT=truncate " + go, "storage"), 3) << err;
  expectError(
      "the file of --offload-to lost some of its bytes: it was cut short or its disk failed; 'slots' has 0 of 512");
  EXPECT_EQ(shell("trap '' XFSZ; prlimit --fsize=256 " + go, "storage"), 3) << err;
  expectError("cannot reserve 512 bytes in 'slots' for the storage arena: File too large");
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), checkpoint);
  EXPECT_FALSE(folder.has("slots"));
}

// Evaluation between epochs must not disturb training either: only the uninterrupted run evaluates.
TEST_F(TinyProgram, ResumesWithTheBitsOfAnUninterruptedRun) {
  const std::string common = "--data data --shuffle --lr 0.1 --weight-decay 0.001 ";
  ASSERT_EQ(run(common + "--steps 17 --seed 5 --log whole --checkpoint whole-end --evaluate data"), 0) << err;
  ASSERT_EQ(run(common + "--steps 8 --seed 5 --log part1 --checkpoint c"), 0) << err;
  ASSERT_EQ(run(common + "--steps 17 --resume c --log part2 --checkpoint c"), 0) << err;
  std::map<int64_t, double> parts = losses("part1");
  EXPECT_EQ(parts.size(), 8u);
  for (auto [step, loss] : losses("part2"))
    parts[step] = loss;
  EXPECT_EQ(parts, losses("whole"));
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), folder.read("whole-end/checkpoint.safetensors"));

  EXPECT_EQ(run(common + "--steps 17 --resume c"), 0) << err;
  EXPECT_THAT(out, testing::HasSubstr("nothing to train: step 17 is done"));
  expectFailure(2, common + "--resume c --seed 6", "--seed 6: the checkpoint in c was made with seed 5");
}

TEST_F(TinyProgram, ResumesAtEpochBoundaries) {
  ASSERT_EQ(run("--data data --epochs 3 --log whole"), 0) << err;
  ASSERT_EQ(run("--data data --epochs 1 --checkpoint c"), 0) << err;
  ASSERT_EQ(run("--data data --epochs 3 --resume c --log rest"), 0) << err;
  std::map<int64_t, double> whole = losses("whole"), rest = losses("rest");
  EXPECT_EQ(rest.size(), 10u);
  for (auto [step, loss] : rest)
    EXPECT_EQ(whole[step], loss);
}

TEST_F(TinyProgram, WritesCheckpointsEverySoManySteps) {
  ASSERT_EQ(run("--data data --steps 7 --checkpoint c --checkpoint-every 3"), 0) << err;
  EXPECT_EQ(SafetensorsFile(folder / "c/checkpoint.safetensors").metadata().at("step"), "7");
  EXPECT_FALSE(folder.has("c/checkpoint.safetensors.partial"));
}

TEST_F(TinyProgram, ExportsByPatchingTheTemplate) {
  std::string bytes(16 + 96 + 12 + 5, 'T');
  folder.write("tiny.onnx-template", bytes);
  ASSERT_EQ(run("--data data --steps 3 --checkpoint c --export out.onnx"), 0) << err;
  bytes.replace(16, 96, bytesOf(tensor("c/checkpoint.safetensors", "fc.weight", {3, 8})));
  bytes.replace(112, 12, bytesOf(tensor("c/checkpoint.safetensors", "fc.bias", {3})));
  EXPECT_EQ(folder.read("out.onnx"), bytes);

  // A checkpoint alone can be exported.
  ASSERT_EQ(run("--resume c --export again.onnx"), 0) << err;
  EXPECT_EQ(folder.read("again.onnx"), bytes);

  folder.write("tiny.onnx-template", "short");
  expectFailure(1, "--resume c --export bad.onnx", "lies at bytes 16 to 112, the file has 5");
  EXPECT_FALSE(folder.has("bad.onnx"));
  EXPECT_FALSE(folder.has("bad.onnx.partial"));
}

TEST_F(TinyProgram, ReadsWeightsBesideItself) {
  std::vector<float> w(24), b = {1, 2, 3};
  for (size_t i = 0; i < 24; ++i)
    w[i] = static_cast<float>(i);
  auto put = [](const std::vector<float> &values) {
    return [&values](const TensorToWrite::Put &to) { to(values.data(), values.size() * 4); };
  };
  writeSafetensors(folder / "tiny.safetensors", {},
                   {{"fc.weight", DataType::F32, {3, 8}, put(w)}, {"fc.bias", DataType::F32, {3}, put(b)}});
  // Run from elsewhere: the file is looked for beside the program.
  ASSERT_EQ(
      shell("cd / && " + (folder / "tiny") + " --data synthetic --steps 0 --checkpoint " + (folder / "c"), "file"), 0)
      << err;
  EXPECT_EQ(tensor("c/checkpoint.safetensors", "fc.weight", {3, 8}), w);
  EXPECT_EQ(tensor("c/checkpoint.safetensors", "fc.bias", {3}), b);

  writeSafetensors(folder / "tiny.safetensors", {}, {{"fc.weight", DataType::F32, {3, 8}, put(w)}});
  expectFailure(1, "--data data", "tiny.safetensors: there is no tensor 'fc.bias'", "file");
  std::filesystem::remove(folder / "tiny.safetensors");
  expectFailure(1, "--data data",
                "/tiny.safetensors is missing, which holds the program's first weights; so is tiny.onnx-template, the "
                "model that --export FILE.onnx fills in: move both along with the program; a whole checkpoint, by "
                "--resume, needs no first weights",
                "file");
}

TEST_F(TinyProgram, EvaluatesAlone) {
  ASSERT_EQ(run("--data data --steps 10 --checkpoint c --evaluate data --log train"), 0) << err;
  std::string saved = folder.read("c/checkpoint.safetensors");
  ASSERT_EQ(run("--resume c --evaluate data --checkpoint c --log alone"), 0) << err;
  std::vector<Json> trained = log("train"), alone = log("alone");
  EXPECT_EQ(alone[1], trained[trained.size() - 2]);
  // Parameters and state are untouched.
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), saved);
}

TEST_F(TinyProgram, PrintsItsPlanAndHelp) {
  EXPECT_EQ(run("--plan"), 0);
  EXPECT_THAT(out, testing::HasSubstr("logits"));
  EXPECT_THAT(out, testing::HasSubstr("1050112 bytes"));
  EXPECT_EQ(run("--help"), 0);
  EXPECT_THAT(out, testing::HasSubstr("--dump-gradients"));
}

TEST_F(TinyProgram, BadDataExitsWithOne) {
  expectFailure(1, "--data nowhere", "cannot open nowhere/input.npy: No such file");
  folder.write("data/target.npy", npyArray<int64_t>("<i8", "(3,)", {0, 1, 2}));
  expectFailure(1, "--data data", "data/target.npy holds 3 samples, data/input.npy holds 22");
  folder.write("data/input.npy", npyArray("<f4", "(3, 2, 2, 2)", std::vector<float>(24)));
  expectFailure(1, "--data data", "data holds 3 samples, one batch takes 4");
}

TEST_F(TinyProgram, BadCheckpointsExitWithOne) {
  expectFailure(1, "--data data --resume c", "cannot open c/checkpoint.safetensors");
  ASSERT_EQ(run("--data data --steps 2 --checkpoint c"), 0) << err;
  std::string good = unchecked(folder.read("c/checkpoint.safetensors"));
  folder.write("c/checkpoint.safetensors", good.substr(0, good.size() - 1));
  expectFailure(1, "--data data --resume c", "c/checkpoint.safetensors: tensor '");
  std::string other = good;
  other.replace(other.find("fc.weight"), 9, "gc.weight");
  folder.write("c/checkpoint.safetensors", other);
  expectFailure(1, "--data data --resume c", "there is no tensor 'fc.weight'");
  other = good;
  other.replace(other.find("\"step\":\"2\""), 10, "\"step\":\"x\"");
  folder.write("c/checkpoint.safetensors", other);
  expectFailure(1, "--data data --resume c", "'step' is 'x', not a whole number");
  folder.write("c/checkpoint.safetensors", safetensorsBytes("{}", ""));
  expectFailure(1, "--data data --resume c", "not a checkpoint");
  folder.write("c/checkpoint.safetensors", good);
  expectFailure(1, "--data data --resume c", "written with optimizer 'sgd', this program has 'adam'", "adam");
}

TEST_F(TinyProgram, BadUsageExitsWithTwo) {
  expectFailure(2, "--data data --stepz 4", "unknown flag '--stepz'");
  expectFailure(2, "", "nothing to do");
  expectFailure(2, "--data data --offload-to data/input.npy", "exists already");
  EXPECT_TRUE(folder.has("data/input.npy"));
}

TEST_F(TinyProgram, MissingMemoryExitsWithThree) {
  expectFailure(3, "--data data", "the plan reserved 1024", "small-workspace");
  expectFailure(3, "--data data", "70368744177", "huge");
  EXPECT_THAT(out, testing::HasSubstr("device memory: 70368744177664 bytes"));
}

TEST_F(TinyProgram, LossThatIsNotFiniteExitsWithFiveAndKeepsTheCheckpoint) {
  images[8 * 8] = std::nanf(""); // in the third batch
  writeData();
  expectFailure(5, "--data data --on-bad-data keep --checkpoint c --checkpoint-every 1 --log log.jsonl",
                "the loss is nan at step 3; the last checkpoint in c is from step 2");
  EXPECT_TRUE(log().back()["loss"].is_null());
  EXPECT_EQ(SafetensorsFile(folder / "c/checkpoint.safetensors").metadata().at("step"), "2");
  for (float w : tensor("c/checkpoint.safetensors", "fc.weight", {3, 8}))
    EXPECT_TRUE(std::isfinite(w));
}

TEST_F(TinyProgram, FullDiskIsAnErrorAndKeepsTheCheckpoint) {
  expectFailure(1, "--data data --log /dev/full", "cannot write log /dev/full: No space left on device");
  EXPECT_EQ(shell("./tiny --plan >/dev/full"), 1);
  expectError("cannot write standard output: No space left on device");
  ASSERT_EQ(run("--data data --steps 2 --checkpoint c"), 0) << err;
  std::string former = folder.read("c/checkpoint.safetensors");
  // A file size limit stands for the full disk; the shell ignores the signal that comes with it.
  EXPECT_EQ(shell("trap '' XFSZ; prlimit --fsize=512 ./tiny --data data --steps 4 --resume c --checkpoint c"), 1);
  expectError("cannot write c/checkpoint.safetensors: File too large");
  EXPECT_EQ(folder.read("c/checkpoint.safetensors"), former);
  EXPECT_FALSE(folder.has("c/checkpoint.safetensors.partial"));
}

TEST_F(TinyProgram, AnInterruptEndsAtAStepWithACheckpoint) {
  shell("./tiny --data data --epochs 100000000 --checkpoint c --checkpoint-every 1000000000 --log log & child=$!; "
        "while kill -0 $child && ! grep -qs '\"step\"' log; do :; done; kill -INT $child; wait $child");
  EXPECT_THAT(out, testing::HasSubstr("interrupted after step"));
  EXPECT_GT(std::stoll(SafetensorsFile(folder / "c/checkpoint.safetensors").metadata().at("step")), 0);
}

TEST_F(TinyProgram, KeepsTheHostArenaInAFile) {
  ASSERT_EQ(run("--data data --steps 5 --log a", "offload"), 0) << err;
  ASSERT_EQ(run("--data data --steps 5 --log b --offload-to arena", "offload"), 0) << err;
  EXPECT_EQ(losses("a"), losses("b"));
  EXPECT_FALSE(folder.has("arena"));
}
