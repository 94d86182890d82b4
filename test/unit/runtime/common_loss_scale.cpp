// SPDX-License-Identifier: Apache-2.0
// The scale of a loss on the command line and in checkpoints, whose numbers nobody vouches for.
#include "runtime/program/LossScaling.h"

#include "runtime/Errors.h"
#include "runtime/LossScale.h"
#include "test/unit/runtime/Folder.h"

#include <limits>

using namespace sluice;

static const Variable variables[] = {{lossScaleName, device(0, {}), Role::Optimizer, Init::Zero},
                                     {goodStepsName, device(256, {}), Role::Optimizer, Init::Zero},
                                     {skippedStepsName, device(512, {}), Role::Optimizer, Init::Zero}};

static Program programOf(int variableCount) {
  Program program{};
  program.variables = variables;
  program.variableCount = variableCount;
  return program;
}

static void checkFlag(const char *word, int variableCount = 3) {
  Arguments arguments;
  arguments.lossScale = word;
  checkLossScale(arguments, programOf(variableCount));
}

TEST(LossScaling, TakesAScaleFromTheCommandLine) {
  for (const char *word : {"dynamic", "1", "65536", "0.5", "4294967296", "1e-9"})
    EXPECT_NO_THROW(checkFlag(word)) << word;
  for (const char *word : {"0", "-2", "nan", "inf", "static", "5e9", "1e-10", "", "1x"})
    expectError<UsageError>([&] { checkFlag(word); }, "--loss-scale expects dynamic or a number from 2^-32 to 2^32");
  expectError<UsageError>([] { checkFlag("dynamic", 0); }, "compile it with sluicec --precision=fp16");
}

/// A checkpoint of 10 steps with these numbers.
static void checkNumbers(float scale, float good, float skipped) {
  Folder folder;
  const float numbers[] = {scale, good, skipped};
  std::vector<TensorToWrite> tensors;
  for (int i = 0; i < 3; ++i)
    tensors.push_back({variables[i].name, DataType::F32, {}, [number = numbers + i](const TensorToWrite::Put &put) {
                         put(number, sizeof *number);
                       }});
  writeSafetensors(folder / "saved", {}, tensors);
  checkLossScale(SafetensorsFile(folder / "saved"), programOf(3), 10);
}

TEST(LossScaling, BelievesNoCheckpoint) {
  EXPECT_NO_THROW(checkNumbers(65536, 0, 0));
  EXPECT_NO_THROW(checkNumbers(leastLossScale, goodStepsToGrow - 1, 10));
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (float bad : {nan, infinity, -1.0f, 0.0f, 2 * mostLossScale, leastLossScale / 2})
    expectError<DataError>([&] { checkNumbers(bad, 0, 0); }, "'train/loss_scale' is");
  for (float bad : {nan, infinity, -1.0f, 0.5f, float{goodStepsToGrow}})
    expectError<DataError>([&] { checkNumbers(1, bad, 0); }, "'train/good_steps' is");
  for (float bad : {nan, infinity, -1.0f, 0.5f, 11.0f})
    expectError<DataError>([&] { checkNumbers(1, 0, bad); }, "'train/skipped_steps' is");
}

TEST(LossScaling, IsNotInCheckpointsOfOtherPrecisions) {
  Folder folder;
  writeSafetensors(folder / "saved", {}, {});
  EXPECT_NO_THROW(checkLossScale(SafetensorsFile(folder / "saved"), programOf(3), 10));
  EXPECT_TRUE(belongsToLossScale(variables[2]));
  EXPECT_FALSE(belongsToLossScale({"w", device(0, {}), Role::Parameter, Init::Zero}));
}
