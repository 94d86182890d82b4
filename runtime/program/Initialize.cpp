// SPDX-License-Identifier: Apache-2.0
// Draws are made here, on the CPU, for both targets, element by element in logical order: the same seed gives the same
// bits wherever a program runs.

#include "runtime/program/Initialize.h"

#include "runtime/Kernels.h"
#include "runtime/Random.h"
#include "runtime/program/Adapters.h"
#include "runtime/program/Checkpoint.h"
#include "runtime/program/SharedStates.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace sluice {

static void fillOnes(const Tensor &tensor, void *to, size_t bytes) {
  size_t count = bytes / byteWidth(tensor.type);
  switch (tensor.type) {
  case DataType::F32:
    return (void)std::fill_n(static_cast<float *>(to), count, 1.0f);
  case DataType::I64:
    return (void)std::fill_n(static_cast<int64_t *>(to), count, 1);
  case DataType::I32:
    return (void)std::fill_n(static_cast<int32_t *>(to), count, 1);
  case DataType::U8:
    return (void)std::fill_n(static_cast<uint8_t *>(to), count, 1);
  case DataType::BF16:
  case DataType::F16:
  case DataType::Bit:
    break; // no variable is an activation or a mask
  }
}

/// Kaiming: normal, std = sqrt(2 / fanIn). Xavier: uniform in +-sqrt(6 / (fanIn + fanOut)).
static void draw(const Variable &variable, uint64_t seed, size_t first, void *to, size_t bytes) {
  float *out = static_cast<float *>(to);
  uint64_t key = randomKey(seed, nameKey(variable.name), 0);
  uint64_t offset = first / sizeof(float), count = bytes / sizeof(float);
  bool kaiming = variable.init == Init::Kaiming;
  double fans = static_cast<double>(kaiming ? variable.fanIn : variable.fanIn + variable.fanOut);
  float scale = static_cast<float>(std::sqrt((kaiming ? 2.0 : 6.0) / fans));
  auto fill = [=](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i)
      out[i] = scale * (kaiming ? normal(key, offset + i) : 2 * uniform(key, offset + i) - 1);
  };
  // A hundred million weights take seconds on one core.
  uint64_t parts = count < 65536 ? 1 : static_cast<uint64_t>(threads());
  std::vector<std::thread> helpers;
  for (uint64_t part = 1; part < parts; ++part) {
    const uint64_t begin = count * part / parts, end = count * (part + 1) / parts;
    try {
      helpers.emplace_back(fill, begin, end);
    } catch (const std::system_error &) { // no thread can be had
      fill(begin, end);
    }
  }
  fill(0, count / parts);
  for (std::thread &helper : helpers)
    helper.join();
}

static void checkDraw(const Variable &variable) {
  if (variable.tensor.type != DataType::F32 || variable.fanIn <= 0 || variable.fanOut < 0)
    throw std::logic_error(text("variable '", variable.name, "' cannot be drawn: it is not F32 or has no fan-in"));
}

static void copyVariable(Session &session, const Program &program, const Variable &to) {
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &from = program.variables[i];
    if (std::strcmp(from.name, to.source) != 0)
      continue;
    std::vector<char> bytes(from.tensor.bytes());
    session.read(from.tensor, bytes.data());
    return session.write(to.tensor, bytes.data());
  }
  throw std::logic_error(text("variable '", to.name, "' begins as '", to.source, "', which is not there"));
}

static bool isMissing(const std::string &path) {
  std::error_code ignored;
  return !std::filesystem::exists(path, ignored);
}

std::string templateBeside(const Program &program) {
  const std::string path = besideProgram(program.exportTemplate);
  if (isMissing(path))
    throw DataError(text(path, " is missing, the model that --export FILE.onnx fills in: move it along with the ",
                         "program; --export FILE.safetensors needs none"));
  return path;
}

static std::string weightsBeside(const Program &program) {
  const std::string path = besideProgram(program.weightsFile);
  if (!isMissing(path))
    return path;
  const bool constants =
      std::any_of(program.variables, program.variables + program.variableCount, [](const Variable &variable) {
        return variable.init == Init::File && !isSaved(variable, /*trainedOnly=*/false);
      });
  const bool alone = program.exportTemplate && isMissing(besideProgram(program.exportTemplate));
  throw DataError(
      text(path, " is missing, which holds the program's first weights", constants ? " and constants" : "",
           alone ? text("; so is ", program.exportTemplate, ", the model that --export FILE.onnx fills in") : "",
           ": move ", alone ? "both" : "it", " along with the program",
           constants ? "" : "; a whole checkpoint, by --resume, needs no first weights"));
}

void initializeVariables(Session &session, const Program &program, uint64_t seed, const GivenLater &later) {
  const auto isGiven = [&](const Variable &variable) {
    return variable.init == Init::Copy || variable.init == Init::Norm ||
           (variable.init == Init::File && later && later(variable));
  };
  std::unique_ptr<SafetensorsFile> weights;
  if (program.weightsFile &&
      std::any_of(program.variables, program.variables + program.variableCount,
                  [&](const Variable &variable) { return variable.init == Init::File && !isGiven(variable); }))
    weights = std::make_unique<SafetensorsFile>(weightsBeside(program));
  if (weights)
    checkIdentity(*weights, program);
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (isGiven(variable))
      continue;
    std::optional<TensorReader> reader;
    if (variable.init == Init::File) {
      if (!weights)
        throw std::logic_error(text("variable '", variable.name, "' comes from a file, the program names none"));
      reader.emplace(*weights, variable.name, variable.saved().type, variable.saved().shape);
      checkForm(*weights, variable);
    } else if (variable.init == Init::Kaiming || variable.init == Init::Xavier) {
      checkDraw(variable);
    }
    const auto give = [&](size_t first, void *to, size_t bytes) {
      if (reader)
        reader->read(first, to, bytes);
      else if (variable.init == Init::Zero)
        std::memset(to, 0, bytes);
      else if (variable.init == Init::One)
        fillOnes(variable.tensor, to, bytes);
      else
        draw(variable, seed, first, to, bytes);
    };
    writeSaved(session, variable, give, /*all=*/reader.has_value());
  }
  if (weights)
    weights->data().dropPages();
}

void startDerived(Session &session, const Program &program, const GivenLater &given) {
  for (int i = 0; i < program.variableCount; ++i)
    if (const Variable &variable = program.variables[i]; variable.init == Init::Norm && !(given && given(variable))) {
      const std::vector<float> lengths = baseLengths(session, program, variable);
      session.write(variable.tensor, lengths.data());
    }
  for (int i = 0; i < program.variableCount; ++i)
    if (program.variables[i].init == Init::Copy)
      copyVariable(session, program, program.variables[i]);
}

} // namespace sluice
