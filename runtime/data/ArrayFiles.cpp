// SPDX-License-Identifier: Apache-2.0
// Samples are read one by one at their offset. Files of smaller integers, and of booleans, serve as I64.

#include "runtime/data/ArrayFiles.h"

#include <cctype>
#include <cstring>

namespace sluice {

/// "input.npy" for the only input, else the input's name; characters that could leave the folder become '_'.
static std::string fileName(const Program &program, int input) {
  const int models = program.inputCount - (isTarget(program, program.inputCount - 1) ? 1 : 0);
  if (models == 1 && input == 0)
    return "input.npy";
  std::string name = program.inputs[input].name;
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._-", c))
      c = '_';
  return name + ".npy";
}

static bool serves(DataType file, DataType input) {
  return file == input || (input == DataType::I64 && (file == DataType::I32 || file == DataType::U8));
}

static void checkFile(const NpyFile &file, const Input &input) {
  const Tensor &expected = input.staging;
  const std::vector<int64_t> &dims = file.shape();
  bool fits = dims.size() == static_cast<size_t>(expected.shape.rank);
  for (size_t i = 1; fits && i < dims.size(); ++i)
    fits = dims[i] == expected.shape[static_cast<int>(i)];
  if (serves(file.type(), expected.type) && fits)
    return;
  std::string rest;
  for (int i = 1; i < expected.shape.rank; ++i)
    rest += text(", ", expected.shape[i]);
  throw DataError(text(file.path(), " is ", typeName(file.type()), " ", numpyShape(dims), ", input '", input.name,
                       "' takes ", typeName(expected.type), " (N", rest.empty() ? "," : rest, ")"));
}

ArrayFiles::ArrayFiles(const std::string &folder, const Program &program, bool targets) : program(program) {
  for (int i = 0; i < program.inputCount; ++i) {
    if (!targets && isTarget(program, i)) {
      files.emplace_back();
      continue;
    }
    const NpyFile &file = *files.emplace_back(joinPath(folder, fileName(program, i)));
    checkFile(file, program.inputs[i]);
    const int64_t samples = file.shape()[0];
    if (count >= 0 && samples != count)
      throw DataError(text(file.path(), " holds ", samples, " samples, ", files[0]->path(), " holds ", count));
    count = samples;
  }
}

std::vector<std::string> ArrayFiles::paths() const {
  std::vector<std::string> list;
  for (const std::optional<NpyFile> &file : files)
    if (file)
      list.push_back(file->path());
  return list;
}

/// Integers of the file as those of the staging tensor, which are wider; from the last to the first, in place.
template <typename T> static void widen(char *values, int64_t elements) {
  for (int64_t i = elements; i-- > 0;) {
    T narrow;
    std::memcpy(&narrow, values + static_cast<size_t>(i) * sizeof narrow, sizeof narrow);
    const int64_t wide = narrow;
    std::memcpy(values + static_cast<size_t>(i) * sizeof wide, &wide, sizeof wide);
  }
}

void ArrayFiles::read(int input, int64_t sample, char *values) const {
  const NpyFile &file = *files[static_cast<size_t>(input)];
  const Input &in = program.inputs[input];
  file.read(sample, 1, values);
  if (file.type() == in.staging.type)
    return;
  if (file.type() == DataType::I32)
    widen<int32_t>(values, sampleElements(in));
  else
    widen<uint8_t>(values, sampleElements(in));
}

std::string ArrayFiles::name(int input, int64_t sample) const {
  return text(files[static_cast<size_t>(input)]->path(), ": sample ", sample);
}

} // namespace sluice
