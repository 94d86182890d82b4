// SPDX-License-Identifier: Apache-2.0
// Which programs images with a class fit.

#include "runtime/data/LabelledImages.h"

#include "runtime/Errors.h"

#include <cstring>

namespace sluice {

static int channelsOf(const Input &input) {
  const Shape &shape = input.staging.shape;
  return shape.rank == 4 ? static_cast<int>(shape[1]) : 3;
}

LabelledImages::LabelledImages(const std::string &kind, const Program &program, bool targets)
    : program(program), targets(targets),
      wanted(program.inputs[0].staging.shape.rank == 3 ? 1 : channelsOf(program.inputs[0])) {
  const bool hasTarget = isTarget(program, program.inputCount - 1);
  const Input &image = program.inputs[0], &target = program.inputs[program.inputCount - 1];
  if (program.inputCount != (hasTarget ? 2 : 1))
    throw DataError(text(kind, " has an image and a class, this program takes ", takenBy(program), ": use .npy files"));
  if (image.staging.type != DataType::F32)
    throw DataError(text(kind, " has images, input '", image.name, "' takes integers"));
  if (wanted != 1 && wanted != 3)
    throw DataError(
        text(kind, " has images of 1 or 3 channels, input '", image.name, "' takes ", wanted, ": use arrays of bytes"));
  if (hasTarget && targets && (target.staging.type != DataType::I64 || sampleElements(target) != 1))
    throw DataError(text(kind, " has one class a sample, '", target.name, "' takes ", sampleElements(target),
                         target.staging.type == DataType::I64 ? " integers" : " floats", ": use .npy files"));
}

int64_t LabelledImages::classesOfProgram() const {
  const Input &target = program.inputs[program.inputCount - 1];
  return targets && program.inputCount == 2 && target.upperBound != INT64_MAX ? target.upperBound : 0;
}

void LabelledImages::checkClasses(const std::string &where, int64_t classes) const {
  const int64_t most = classesOfProgram();
  if (most > 0 && classes > most)
    throw DataError(text(where, " has ", classes, " classes, the model tells ", most,
                         " apart: train a model with as many outputs"));
}

void LabelledImages::read(int, int64_t sample, char *values) const {
  const int64_t value = label(sample);
  std::memcpy(values, &value, sizeof value);
}

} // namespace sluice
