// SPDX-License-Identifier: Apache-2.0
// Flags of data, from the command line to the log.
#include "test/unit/runtime/TinyProgram.h"

#include <cmath>

using DataFlags = TinyProgram;

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
  EXPECT_THAT(err, testing::HasSubstr("skipped: data/target.npy: sample 5 holds 3"));
  EXPECT_THAT(out, testing::HasSubstr("1 of 22 training samples were bad and skipped"));
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

TEST_F(DataFlags, RefusesWhatFitsNoData) {
  expectFailure(2, "--data data --augment flip", "--augment is for images of bytes, data has none");
  expectFailure(2, "--data data --mean 1,2", "--mean expects one number, three or four, got 2");
  expectFailure(2, "--data data --std 0", "--std expects numbers above 0, got '0'");
  expectFailure(2, "--data data --mean 0.5,,1", "--mean expects one number or one for each channel");
  expectFailure(2, "--data arff:data", "there are no data of the kind 'arff'");
  expectFailure(2, "--checkpoint c --augment flip", "--augment needs --data, --evaluate or --predict");
  expectFailure(1, "--data imagefolder:data", "imagefolder has images of 1 or 3 channels, input 'images' takes 2");
}
