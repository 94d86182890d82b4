// SPDX-License-Identifier: Apache-2.0
// Programs of images and what they read, for tests of data.
#pragma once

#include "runtime/program/Dataset.h"
#include "test/unit/runtime/Folder.h"

namespace sluice {

inline const Input images[] = {
    {"x", {}, host(0, {2, 3, 4, 4}), 0},
    {"target", {}, host(0, {2}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true}};
inline const Input greys[] = {
    {"x", {}, host(0, {2, 1, 2, 3}), 0},
    {"target", {}, host(0, {2}, Layout::RowMajor, DataType::I64), 10, Loss::none, false, true}};

/// Targets are what only its loss reads.
inline const Output attached[] = {{"y", {}, 1, "softmax-cross-entropy"}};

template <size_t inputs> Program programWith(const Input (&list)[inputs]) {
  Program program{};
  program.batch = list[0].staging.shape[0];
  program.inputs = list;
  program.inputCount = inputs;
  program.outputs = attached;
  program.outputCount = 1;
  return program;
}

inline DataOptions from(const std::string &where) {
  DataOptions options;
  options.where = where;
  return options;
}

inline DataOptions augmented(DataOptions options, const std::string &words) {
  options.images.augment = words;
  options.images.random = true;
  return options;
}

/// The first batch of an epoch: the values of both inputs.
template <typename Value>
std::pair<std::vector<float>, std::vector<Value>> firstBatch(const DataOptions &options, const Program &program,
                                                             int64_t epoch = 0) {
  Dataset data(options, program);
  std::vector<float> x(static_cast<size_t>(program.inputs[0].staging.shape.elements()));
  std::vector<Value> y(static_cast<size_t>(program.inputs[1].staging.shape.elements()));
  data.gather({epoch, 0}, {x.data(), y.data()});
  return {x, y};
}

/// The epoch's batches, one after the other, as floats and ids.
inline std::pair<std::vector<float>, std::vector<int64_t>> readAll(const DataOptions &options, const Program &program) {
  Dataset data(options, program);
  std::vector<float> x;
  std::vector<int64_t> y;
  for (int64_t i = 0; i < data.batches(); ++i) {
    std::vector<char> input(program.inputs[0].staging.bytes()), target(program.inputs[1].staging.bytes());
    data.gather({0, i * program.batch}, {input.data(), target.data()});
    const auto *floats = reinterpret_cast<const float *>(input.data());
    x.insert(x.end(), floats, floats + input.size() / sizeof(float));
    const auto *ids = reinterpret_cast<const int64_t *>(target.data());
    y.insert(y.end(), ids, ids + target.size() / sizeof(int64_t));
  }
  return {x, y};
}

inline std::string picture(const std::string &name) {
  std::ifstream in(std::string(SLUICE_IMAGES "/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void makeClasses(const Folder &folder) {
  for (const char *name : {"b", "a", "c"})
    std::filesystem::create_directory(folder / name);
  folder.write("a/2.png", picture("colours.png"));
  folder.write("a/10.JPG", picture("colours.jpg"));
  folder.write("a/notes.txt", "not an image");
  folder.write("b/1.png", picture("grey.png"));
  folder.write("c/1.jpeg", picture("grey.jpg"));
}

} // namespace sluice
