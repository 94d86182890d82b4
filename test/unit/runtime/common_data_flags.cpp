// SPDX-License-Identifier: Apache-2.0
// Flags of data, from the command line to the log.
#include "test/unit/runtime/TinyProgram.h"

#include <algorithm>
#include <cmath>

using DataFlags = TinyProgram;

/// A resumed run is told of the flag that makes its data other data.
TEST_F(DataFlags, AForgottenValidationSplitIsNamed) {
  ASSERT_EQ(run("--data data --epochs 1 --validation-split 20% --checkpoint c"), 0) << err;
  expectFailure(
      1, "--data data --epochs 2 --resume c --checkpoint c",
      "data holds 22 samples, the run in c was trained on 18; give it the data that it had, or start anew with "
      "its weights: --init=c/checkpoint.safetensors; unlike c/recipe.toml: no --validation-split=20%; "
      "--recipe=c/recipe.toml takes what it says");
}

TEST_F(DataFlags, AWarmupBeyondTheEndIsWarnedOf) {
  ASSERT_EQ(run("--data data --steps 2 --warmup 10 --checkpoint c"), 0);
  EXPECT_EQ(err, "tiny: warning: --warmup takes 10 steps, the run ends after 2: none has the rate of --lr\n");
  ASSERT_EQ(run("--data data --steps 10 --warmup 10 --resume c"), 0);
  EXPECT_EQ(err, "");
}

TEST_F(DataFlags, ValidationSplitParts) {
  ASSERT_EQ(run("--data data --epochs 2 --shuffle --validation-split 20% --log log.jsonl"), 0) << err;
  int evaluations = 0;
  for (const Json &line : log()) {
    if (line["event"] == "start") {
      EXPECT_EQ(line["samples"], 18); // of 22
      EXPECT_EQ(line["steps_per_epoch"], 4);
    }
    if (line["event"] == "evaluate") {
      EXPECT_EQ(line["samples"], 4);
      ++evaluations;
    }
    if (line["event"] == "step") {
      EXPECT_GE(line["data_wait_ms"], 0);
    }
  }
  EXPECT_EQ(evaluations, 2);
  ASSERT_EQ(run("--data data --epochs 1 --validation-split 0.2 --log share.jsonl"), 0) << err; // the same share
  EXPECT_EQ(log("share.jsonl").front()["samples"], 18);
  // 0.2% is what it says: of 1000 samples two.
  images.assign(1000 * 8, 0.5f), labels.assign(1000, 0);
  std::filesystem::create_directory(folder / "many");
  folder.write("many/input.npy", npyArray("<f4", "(1000, 2, 2, 2)", images));
  folder.write("many/target.npy", npyArray("<i8", "(1000,)", labels));
  ASSERT_EQ(run("--data many --steps 1 --validation-split 0.2% --log tenths.jsonl"), 0) << err;
  EXPECT_EQ(log("tenths.jsonl").front()["samples"], 998);
  expectFailure(2, "--data data --validation-split 20% --evaluate data", "exclude each other");
  expectFailure(2, "--evaluate data --validation-split 20%", "--validation-split needs --data");
  expectFailure(2, "--data data --validation-split 100%", "below 100");
  EXPECT_EQ(run("--data data --validation-split 5%"), 0) << err; // one sample, which a batch is filled up with
  expectFailure(1, "--data data --validation-split 95%", "the training part holds 2 samples, one batch takes 4");
}

TEST_F(DataFlags, WorkersChangeNothing) {
  ASSERT_EQ(run("--data data --epochs 1 --shuffle --log one.jsonl"), 0) << err;
  ASSERT_EQ(run("--data data --epochs 1 --shuffle --workers 3 --log three.jsonl"), 0) << err;
  EXPECT_EQ(losses("one.jsonl"), losses("three.jsonl"));
  expectFailure(2, "--data data --workers 0", "--workers expects a whole number of 1 or more");
}

TEST_F(DataFlags, BadDataStopOrAreSkipped) {
  labels[5] = 3;
  writeData();
  expectFailure(1, "--data data --epochs 1", "target.npy: sample 5 holds 3, 'target' must lie between 0 and 2");
  expectFailure(1, "--data data --epochs 1 --on-bad-data stop", "sample 5 holds 3");
  ASSERT_EQ(run("--data data --epochs 1 --on-bad-data skip --log log.jsonl"), 0) << err;
  EXPECT_THAT(err, testing::HasSubstr("skipped: training data: data/target.npy: sample 5 holds 3"));
  EXPECT_THAT(out, testing::HasSubstr("1 of 22 training samples were bad and replaced by others"));
  EXPECT_EQ(log().back()["skipped_samples"], 1);
  expectFailure(2, "--data data --on-bad-data maybe", "--on-bad-data expects stop|skip|keep, got 'maybe'");
}

/// Found where it is read, not as a loss that is none.
TEST_F(DataFlags, NanIsBadData) {
  images[5 * 8 + 3] = std::nanf("");
  writeData();
  expectFailure(1, "--data data --epochs 1", "data/input.npy: sample 5 holds NaN for 'images': --on-bad-data=skip");
  ASSERT_EQ(run("--data data --epochs 1 --on-bad-data skip --log log.jsonl"), 0) << err;
  EXPECT_EQ(log().back()["skipped_samples"], 1);
  EXPECT_EQ(run("--data data --epochs 1 --on-bad-data keep"), 5) << err;
}

/// Evaluation and predictions are those of the other samples, of which none counts twice.
TEST_F(DataFlags, BadSamplesAreLeftOutOfEvaluationAndPredictions) {
  ASSERT_EQ(run("--data data --steps 1 --checkpoint c"), 0) << err;
  const auto allImages = images;
  const auto allLabels = labels;
  images.erase(images.begin() + 21 * 8, images.begin() + 22 * 8);
  images.erase(images.begin() + 5 * 8, images.begin() + 7 * 8);
  labels.erase(labels.begin() + 21);
  labels.erase(labels.begin() + 5, labels.begin() + 7);
  folder.write("data/input.npy", npyArray("<f4", "(19, 2, 2, 2)", images));
  folder.write("data/target.npy", npyArray("<i8", "(19,)", labels));
  const std::string what = "--resume c --evaluate data --metrics accuracy,mean_iou,f1,auc,confusion --predict data ";
  ASSERT_EQ(run(what + "--log good.jsonl --output good.csv"), 0) << err;

  images = allImages, labels = allLabels;
  images[5 * 8] = images[21 * 8 + 7] = std::nanf(""); // found when they are read
  labels[6] = 3;                                      // found before
  writeData();
  ASSERT_EQ(run(what + "--on-bad-data skip --log bad.jsonl --output bad.csv"), 0) << err;
  EXPECT_THAT(out, testing::HasSubstr(" on 19 samples, 3 bad ones left out\n"));
  EXPECT_THAT(err, testing::HasSubstr("skipped: evaluation data: data/target.npy: sample 6 holds 3"));
  EXPECT_THAT(err, testing::HasSubstr("skipped: data to predict: data/input.npy: sample 5 holds NaN"));
  EXPECT_THAT(out, testing::HasSubstr("3 of 22 evaluation samples were bad and left out"));
  // The targets are not read for predictions.
  EXPECT_THAT(out, testing::HasSubstr("predictions:   20 samples in bad.csv, 2 bad ones left out"));
  Json good = log("good.jsonl")[1], bad = log("bad.jsonl")[1];
  EXPECT_EQ(bad["skipped_samples"], 3);
  bad.erase("skipped_samples");
  EXPECT_NEAR(bad["loss"], good["loss"], 1e-6);
  bad.erase("loss"), good.erase("loss");
  EXPECT_EQ(bad, good);
  const std::string rows = folder.read("bad.csv");
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 21);
  EXPECT_THAT(rows, testing::Not(testing::HasSubstr("sample 5,")));
  EXPECT_THAT(rows, testing::HasSubstr("sample 6,"));
  expectFailure(1, "--resume c --predict data --output bad.npy --on-bad-data skip",
                "--on-bad-data=skip leaves none out of bad.npy, whose rows have no names: write .csv, .json or .npz");
  EXPECT_FALSE(folder.has("bad.npy"));
}

TEST_F(DataFlags, WarnsAlsoWhenItIsQuiet) {
  std::sort(labels.begin(), labels.end());
  writeData();
  ASSERT_EQ(run("--data data --epochs 1 --quiet"), 0) << err;
  EXPECT_EQ(out, "");
  EXPECT_THAT(err, testing::StartsWith("tiny: warning: data holds its samples class by class"));
}

TEST_F(DataFlags, SaysWhatOtherKindItMayBe) {
  std::filesystem::create_directories(folder / "photos/cats");
  folder.write("photos/cats/1.jpg", "");
  folder.write("t.csv", "");
  expectFailure(1, "--data photos",
                "cannot open photos/input.npy: No such file or directory; a folder of images is "
                "imagefolder:photos, with a subfolder for each class, or segmentation:photos,masks=");
  expectFailure(1, "--evaluate t.csv", "cannot open t.csv/input.npy: Not a directory; a file is csv:t.csv");
  expectFailure(1, "--predict photos/cats/1.jpg --output scores.csv",
                "cannot open photos/cats/1.jpg/input.npy: Not a directory; images are read by the folder: "
                "imagefolder:photos/cats");
  expectFailure(1, "--data nowhere", "cannot open nowhere/input.npy: No such file or directory\n");
  labels[3] = -100;
  writeData();
  expectFailure(1, "--data data",
                "must lie between 0 and 2, or be -100 in a program compiled with --ignore-index=-100");
}

/// Of one class there is no curve.
TEST_F(DataFlags, SaysWhichMetricHasNoValue) {
  labels.assign(labels.size(), 1);
  writeData();
  ASSERT_EQ(run("--data data --evaluate data --epochs 2 --metrics auc,accuracy,mean_iou --log log.jsonl"), 0) << err;
  EXPECT_EQ(err,
            "tiny: warning: auc cannot be computed on these data: no class or label has samples with it and samples "
            "without; this is told once\n");
  for (const Json &line : log())
    if (line["event"] == "evaluate") {
      EXPECT_EQ(line["iou_by_class"].size(), 3u);
      EXPECT_EQ(line["iou_by_class"][0], 0);
    }
}

TEST_F(DataFlags, RefusesWhatFitsNoData) {
  expectFailure(2, "--data data --augment flip", "--augment is for images of bytes, data has none");
  expectFailure(2, "--data data --mean 1,2", "--mean expects one number, three or four, got 2");
  expectFailure(2, "--data data --std 0", "--std expects numbers above 0, got '0'");
  expectFailure(2, "--data data --mean 0.5,,1", "--mean expects one number or one for each channel");
  expectFailure(2, "--data arff:data", "there are no data of the kind 'arff'");
  expectFailure(2, "--checkpoint c --augment flip", "--augment needs --data, --evaluate or --predict");
  expectFailure(1, "--data imagefolder:data", "imagefolder has images of 1 or 3 channels, input 'images' takes 2");
}
