// SPDX-License-Identifier: Apache-2.0
// Files that generated programs read: arrays, weights and checkpoints, through the functions that programs call. What
// they throw is an exit status; only that of an internal error is a defect.
#include "test/fuzz/Reader.h"

#include "runtime/files/Npy.h"
#include "runtime/files/Safetensors.h"
#include "runtime/program/Checkpoint.h"
#include "runtime/program/Dataset.h"
#include "runtime/program/Flags.h"
#include "runtime/program/Recipe.h"

#include <algorithm>
#include <memory>

namespace sluice::fuzz {

namespace {

/// A program as the compiler writes it down, with one tensor of each kind.
constexpr Variable variables[] = {
    {"w", device(0, {2, 3}), Role::Parameter, Init::File},
    {"bn.mean", device(256, {3}), Role::State, Init::Zero},
    {"w/momentum", device(512, {2, 3}), Role::Optimizer, Init::Zero},
    {"image", device(768, {1, 2, 2, 2}, Layout::NHWC), Role::Parameter, Init::File},
};
constexpr Input inputs[] = {
    {"x", {device(1024, {2, 3}), device(1280, {2, 3})}, host(0, {2, 3}), 0},
    {"target",
     {device(1536, {2}, Layout::RowMajor, DataType::I64), device(1792, {2}, Layout::RowMajor, DataType::I64)},
     host(256, {2}, Layout::RowMajor, DataType::I64),
     3},
};

constexpr Output attached[] = {{"y", {}, 1, "softmax-cross-entropy"}};

const Program &program() {
  static const Program fixed = [] {
    Program p = {};
    p.model = "fuzz.onnx";
    p.batch = 2;
    p.variables = variables;
    p.variableCount = std::size(variables);
    p.inputs = inputs;
    p.inputCount = std::size(inputs);
    p.outputs = attached;
    p.outputCount = 1;
    p.optimizer = Program::Optimizer::Sgd;
    return p;
  }();
  return fixed;
}

Session &session() {
  static Session only(4096, 4096, 1);
  return only;
}

constexpr size_t mostRead = 1 << 20;

/// The array as the data set of a program, first as images and then as labels.
void readAsData(const std::string &folder, const std::string &input) {
  static const std::string images("\x93NUMPY\x01\x00\x36\x00{'descr':'<f4','fortran_order':False,'shape':(4,3)}     \n",
                                  64);
  for (const char *name : {"x.npy", "input.npy", "target.npy"})
    writeFile(folder + "/" + name, std::string(name) == "target.npy" ? input : images + std::string(48, '\0'));
  DataOptions options;
  options.where = folder;
  options.shuffle = true;
  char x[64], target[64];
  Dataset(options, program()).gather({}, {x, target});
}

} // namespace

Outcome runNpy(const std::string &input, const std::string &folder) {
  const std::string path = folder + "/input.npy";
  writeFile(path, input);
  return guarded([&] {
    NpyFile file(path);
    int64_t samples = file.shape().empty() ? 1 : file.shape()[0];
    if (samples > 0 && file.sampleBytes() <= mostRead) {
      std::string sample(file.sampleBytes(), '\0');
      file.read(0, 1, sample.data());
      file.read(samples - 1, 1, sample.data());
    }
    if (input.size() % 8 == 0)
      readAsData(folder, input);
  });
}

Outcome runSafetensors(const std::string &input, const std::string &folder) {
  const std::string path = folder + "/weights.safetensors";
  writeFile(path, input);
  return guarded([&] {
    SafetensorsFile file(path);
    for (const Variable &variable : variables)
      if (file.contains(variable.name)) {
        std::string bytes(variable.tensor.bytes(), '\0');
        TensorReader(file, variable.name, variable.tensor.type, variable.tensor.shape)
            .read(0, bytes.data(), bytes.size());
      }
  });
}

Outcome runCheckpoint(const std::string &input, const std::string &folder) {
  writeFile(folder + "/checkpoint.safetensors", input);
  return guarded([&] {
    SavedRun saved(folder, program());
    const RunState &state = saved.state();
    if (state.step < 0 || state.position.epoch < 0 || state.position.sample < 0)
      finding("a negative position was read from a checkpoint");
    saved.load(session());
    DataOptions options;
    options.where = "synthetic";
    static const Dataset data(options, program());
    Position position = data.normalize(state.position);
    if (position.epoch < 0 || position.sample < 0 || position.sample > data.samples())
      finding("a checkpoint leads to sample " + std::to_string(position.sample));
  });
}

Outcome runRecipe(const std::string &input, const std::string &folder) {
  const std::string path = folder + "/recipe.toml";
  writeFile(path, input);
  return guarded([&] {
    Arguments arguments;
    readRecipe(path, {}, arguments);
    // What was read can be written, and is then read as the same, paths from any folder.
    arguments.checkpoint = folder;
    arguments.path = "model";
    const std::string written = recipeOf(arguments);
    writeFile(path, written);
    Arguments again;
    readRecipe(path, {}, again);
    for (const FlagGroup &group : flagGroups())
      for (const Flag &flag : group.flags) {
        const auto before = valuesOf(arguments, flag), after = valuesOf(again, flag);
        if (!isAboutOneStart(flag) && (flag.holdsPath() ? before.size() != after.size() : before != after))
          finding(std::string("another ") + flag.name + " was written than was read");
      }
    again.path = arguments.path;
    if (recipeOf(again) != written)
      finding("a recipe that was written and read is written otherwise");
  });
}

} // namespace sluice::fuzz
