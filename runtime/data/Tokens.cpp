// SPDX-License-Identifier: Apache-2.0
// Windows are read at their offset; the last token of one is the first that the next one's input has, so that every
// token but the first is a target once an epoch.

#include "runtime/data/Tokens.h"

#include "runtime/Errors.h"
#include "runtime/Numbers.h"

#include <cstring>

namespace sluice {

static constexpr char strideWord[] = ",stride=";

/// FILE of FILE,stride=N.
static std::string fileOf(const std::string &where) { return where.substr(0, where.rfind(strideWord)); }

Tokens::Tokens(const std::string &where, const Program &program, bool targets) : program(program), file(fileOf(where)) {
  const std::string path = file.path();
  if (program.inputCount > 2 || (program.inputCount == 2 && !isTarget(program, 1)))
    throw DataError(text("tokens are one input and its target, this program takes ", program.inputCount,
                         " inputs: use .npy files"));
  window = sampleElements(program.inputs[0]);
  for (int i = 0; i < (targets ? program.inputCount : 1); ++i)
    if (program.inputs[i].staging.type != DataType::I64 || sampleElements(program.inputs[i]) != window)
      throw DataError(text("tokens are whole numbers, as many of the target as of the input; '", program.inputs[i].name,
                           "' takes ", sampleElements(program.inputs[i]),
                           program.inputs[i].staging.type == DataType::I64 ? " integers" : " floats", ", '",
                           program.inputs[0].name, "' ", window));
  stride = window;
  if (const std::string said = where.substr(path.size());
      !said.empty() && (!parseNumber(said.substr(std::strlen(strideWord)), stride) || stride < 1))
    throw UsageError(text("tokens:", where, ": stride is a whole number of 1 or more: how many tokens one window ",
                          "begins behind the other"));
  if (endsWith(path, ".u32.bin") || (!endsWith(path, ".u16.bin") && program.inputs[0].upperBound > 65536))
    width = 4;
  if (file.size() % width != 0)
    throw DataError(text(path, ": ", file.size(), " bytes are no whole number of tokens of ", width, " bytes"));
  const auto tokens = static_cast<int64_t>(file.size() / width);
  count = window > 0 && tokens > window ? (tokens - 1 - window) / stride + 1 : 0;
}

void Tokens::read(int input, int64_t sample, char *values) const {
  const auto first = static_cast<uint64_t>(sample * stride + (input > 0 ? 1 : 0));
  std::vector<unsigned char> bytes(static_cast<size_t>(window) * width);
  file.readAt(first * width, bytes.data(), bytes.size());
  for (size_t i = 0; i < static_cast<size_t>(window); ++i) {
    int64_t id = 0;
    for (size_t b = width; b-- > 0;)
      id = id << 8 | bytes[i * width + b];
    std::memcpy(values + i * sizeof id, &id, sizeof id);
  }
}

std::string Tokens::name(int, int64_t sample) const {
  return text(file.path(), ": the window at token ", sample * stride);
}

} // namespace sluice
