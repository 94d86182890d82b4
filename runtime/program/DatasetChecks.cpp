// SPDX-License-Identifier: Apache-2.0
// What samples may hold: classes and places that there are, numbers that are some, answers between no and yes.

#include "runtime/program/Dataset.h"

#include "runtime/Errors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice {

/// Before training rather than hours into it; gather() checks again, for files may change meanwhile.
void Dataset::checkAllRanges() {
  for (int i = 0; i < program.inputCount; ++i) {
    const Input &in = program.inputs[i];
    if (in.staging.type != DataType::I64 || !in.isBounded() || (!options.targets && !isPredictedFrom(program, i)))
      continue;
    const int64_t all = in.shared ? 1 : count, checked = std::min(all, source->samplesToCheck());
    for (int64_t n = 0; n < checked; ++n) {
      const int64_t sample = memberAt(all / checked * n + all % checked * n / checked);
      try {
        checkSample(i, sample);
      } catch (const DataError &error) {
        if (in.shared)
          throw;
        handleBad(sample, error);
      }
    }
  }
}

void Dataset::checkSample(int input, int64_t sample) {
  if (source->form(input) == Form::Planes) {
    readPlanes(input, sample);
    return;
  }
  const Input &in = program.inputs[input];
  const std::optional<Shape> own = buckets.empty() ? std::nullopt : source->shapeOf(input, sample);
  const int64_t elements = own ? own->elements() : sampleElements(in);
  std::vector<char> buffer(static_cast<size_t>(elements) * byteWidth(in.staging.type));
  source->read(input, sample, buffer.data());
  checkValues(input, sample, buffer.data(), elements);
  if (program.outputCount > 0 && input == program.outputs[0].target && elements == 1)
    noteClass(buffer.data());
}

/// Whether all samples of each class lie one after the other.
void Dataset::noteClass(const char *bytes) {
  int64_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  if (!byClass || value == classBefore)
    return;
  byClass = classesSeen.insert(value).second;
  classBefore = value;
}

/// Whether a loss takes the numbers of an input for probabilities.
static bool holdsAnswers(const Program &program, int input) {
  return std::any_of(program.outputs, program.outputs + program.outputCount, [&](const Output &output) {
    return output.target == input && hasLoss(output, "bce-with-logits");
  });
}

/// Without a branch for each number: nearly all samples have none, and steps wait for who looks.
static bool anyNan(const char *values, int64_t elements) {
  constexpr int64_t lanes = 16;
  uint32_t found[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    uint32_t bits[lanes];
    std::memcpy(bits, values + i * 4, sizeof bits);
#pragma GCC unroll 16
    for (int64_t lane = 0; lane < lanes; ++lane)
      found[lane] |= 0x7f800000u - (bits[lane] & 0x7fffffffu); // negative above infinity
  }
  for (; i < elements; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i * 4, sizeof bits);
    found[0] |= 0x7f800000u - (bits & 0x7fffffffu);
  }
  return std::any_of(found, found + lanes, [](uint32_t of) { return of >> 31 != 0; });
}

/// A NaN in the data would be one in the loss, and nobody would know from where; a mask of 0 and 255 would be learnt as
/// something else.
void Dataset::checkNumbers(int input, int64_t sample, const char *values, int64_t elements) const {
  const Input &in = program.inputs[input];
  const bool answers = holdsAnswers(program, input), target = isTarget(program, input);
  constexpr float rounding = 1e-3f; // of what was resized or averaged
  if (!answers && !anyNan(values, elements))
    return;
  for (int64_t i = 0; i < elements; ++i) {
    float value;
    std::memcpy(&value, values + i * 4, sizeof value);
    if (std::isnan(value) && (!options.keepNan || target))
      throw DataError(text(source->name(input, sample), " holds NaN for '", in.name, "'",
                           source->paths().empty() ? "" : ": --on-bad-data=skip leaves such samples out",
                           source->paths().empty() || target ? "" : ", --on-bad-data=keep takes NaN"));
    if (answers && (value < -rounding || value > 1 + rounding) &&
        (in.ignoreIndex == Loss::none || value != static_cast<float>(in.ignoreIndex)))
      throw DataError(text(source->name(input, sample), " holds ", value, " for '", in.name,
                           "', whose bce-with-logits takes 0 for no, 1 for yes and what lies between: divide the ",
                           "numbers by the largest, or, where ", value,
                           " says that a number does not count, compile with --ignore-index=", value));
  }
}

/// `width`: of the planes that they are, 0 for none.
void Dataset::checkValues(int input, int64_t sample, const char *values, int64_t elements, int width) const {
  const Input &in = program.inputs[input];
  if (in.staging.type == DataType::F32)
    return checkNumbers(input, sample, values, elements);
  if (in.staging.type != DataType::I64 || !in.isBounded())
    return;
  for (int64_t i = 0; i < elements; ++i) {
    int64_t value;
    std::memcpy(&value, values + i * 8, sizeof value);
    if ((in.ignoreIndex != Loss::none && value == in.ignoreIndex) || (value >= in.lowerBound && value < in.upperBound))
      continue;
    const std::string place = width > 0 ? text(" at column ", i % width, ", row ", i / width) : "";
    const std::string range = in.lowerBound == INT64_MIN ? text("be at most ", in.upperBound - 1)
                              : in.upperBound == INT64_MAX
                                  ? text("be at least ", in.lowerBound)
                                  : text("lie between ", in.lowerBound, " and ", in.upperBound - 1);
    throw DataError(text(source->name(input, sample), " holds ", value, place, ", '", in.name, "' must ", range,
                         (value == 255 && width > 0) || (value < 0 && isTarget(program, input))
                             ? text(", or be ", value, " in a program compiled with --ignore-index=", value)
                             : ""));
  }
}

} // namespace sluice
