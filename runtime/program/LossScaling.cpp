// SPDX-License-Identifier: Apache-2.0
// Numbers of checkpoints are untrusted: what the device's rule cannot have left is refused.

#include "runtime/program/LossScaling.h"

#include "runtime/Codec.h"
#include "runtime/LossScale.h"
#include "runtime/Numbers.h"

#include <cmath>
#include <cstring>

namespace sluice {

static const Variable *find(const Program &program, const char *name) {
  for (int i = 0; i < program.variableCount; ++i)
    if (std::strcmp(program.variables[i].name, name) == 0)
      return &program.variables[i];
  return nullptr;
}

bool belongsToLossScale(const Variable &variable) {
  for (const char *name : {lossScaleName, goodStepsName, skippedStepsName})
    if (std::strcmp(variable.name, name) == 0)
      return true;
  return false;
}

static bool isScale(float value) { return value >= leastLossScale && value <= mostLossScale; }

/// Nothing where the scale is dynamic.
static std::optional<float> fixedScale(const Arguments &arguments) {
  if (!arguments.lossScale || *arguments.lossScale == "dynamic")
    return std::nullopt;
  double parsed = 0;
  if (!parseNumber(*arguments.lossScale, parsed) || !isScale(static_cast<float>(parsed)))
    throw UsageError(
        text("--loss-scale expects dynamic or a number from 2^-32 to 2^32, got '", *arguments.lossScale, "'"));
  return static_cast<float>(parsed);
}

void checkLossScale(const Arguments &arguments, const Program &program) {
  fixedScale(arguments);
  if (arguments.lossScale && !find(program, lossScaleName))
    throw UsageError("--loss-scale is for programs that compute in fp16; compile it with sluicec --precision=fp16");
}

void checkLossScale(const SafetensorsFile &file, const Program &program, int64_t steps) {
  if (!find(program, lossScaleName) || !file.contains(lossScaleName))
    return;
  const auto check = [&](const char *name, const char *expected, auto &&isRight) {
    float value = 0;
    TensorReader(file, name, DataType::F32, {}).read(0, &value, sizeof value);
    if (!isRight(value))
      throw DataError(text(file.path(), ": '", name, "' is ", value, ", not ", expected));
  };
  const auto isCount = [](float value, double most) {
    return value >= 0 && static_cast<double>(value) <= most && value == std::floor(value);
  };
  check(lossScaleName, "a loss scale from 2^-32 to 2^32", isScale);
  check(goodStepsName, "a number of steps that leaves the loss scale as it is",
        [&](float value) { return isCount(value, goodStepsToGrow - 1); });
  check(skippedStepsName, "a part of the steps done",
        [&](float value) { return isCount(value, static_cast<double>(steps)); });
}

void startLossScale(Session &session, const Program &program, const Arguments &arguments, bool carried) {
  const Variable *variable = find(program, lossScaleName);
  const std::optional<float> fixed = fixedScale(arguments);
  if (!variable || (!fixed && carried))
    return;
  const float value = fixed.value_or(firstLossScale);
  session.write(variable->tensor, &value);
}

LossScaling::LossScaling(Session &session, const Program &program, const Arguments &arguments)
    : scale(find(program, lossScaleName)), skipped(find(program, skippedStepsName)),
      isFixed(fixedScale(arguments).has_value()) {
  if (skipped)
    session.read(skipped->tensor, &before);
}

LossScaling::Seen LossScaling::follow(float nextScale, float skippedSteps) {
  inRow = skippedSteps > before ? inRow + 1 : 0;
  before = skippedSteps;
  if (inRow < mostSkippedInRow)
    return {nextScale, skippedSteps};
  throw ValueNotStorable(text("fp16 cannot hold the gradients of ", mostSkippedInRow, " steps in a row, with a loss ",
                              "scale of ", nextScale, " at last; ",
                              isFixed ? "give a smaller --loss-scale, or none"
                                      : "lower --lr or raise --warmup, or compile with --precision=bf16 or fp32"));
}

void LossScaling::describe(const Seen &seen, LogFields &fields) const {
  if (!scale)
    return;
  fields.push_back({"loss_scale", double{seen.scale}});
  fields.push_back({"skipped_steps", static_cast<int64_t>(seen.skipped)});
}

} // namespace sluice
