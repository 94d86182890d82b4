// SPDX-License-Identifier: Apache-2.0
// A matrix that is transposed is read whole; all others go through in pieces.

#include "runtime/program/InitialWeights.h"

#include "runtime/Printable.h"
#include "runtime/program/TensorIO.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace sluice {

/// The shape under which the file holds a tensor.
static Shape shapeInFile(const Variable &variable, const WeightName &name) {
  Shape shape = variable.tensor.shape;
  if (name.transpose)
    std::swap(shape.dims[0], shape.dims[1]);
  return shape;
}

bool InitialWeights::fits(const Variable &variable, const WeightName &name, std::string &why) const {
  try {
    file.find(name.name, variable.tensor.type, shapeInFile(variable, name));
    return true;
  } catch (const DataError &error) {
    why = error.what();
    return false;
  }
}

InitialWeights::InitialWeights(const std::string &flag, const Program &program) : words(flag), file(words.path) {
  const WeightNames names(words.map, program);
  std::set<std::string> used;
  std::string why;
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (!isModelTensor(variable))
      continue;
    const WeightName name = names(variable);
    if (!file.contains(name.name)) {
      missing.push_back(variable.name);
      continue;
    }
    used.insert(name.name);
    std::string here;
    if (fits(variable, name, here)) {
      found.push_back({&variable, name});
      continue;
    }
    skipped.push_back(variable.name);
    if (why.empty())
      why = here;
  }
  for (const auto &[name, entry] : file.tensors())
    if (!used.count(name) && entry.type.find('F') != std::string::npos) // counters of batches say nothing
      unused.push_back(name);
  if (!skipped.empty() && !words.skipMismatched)
    throw DataError(text(why, skipped.size() > 1 ? text(" (and ", skipped.size() - 1, " more do not fit)") : "",
                         "; to start what does not fit anew, write --init=", flag,
                         ",skip-mismatched; a matrix that lies transposed needs a map, see docs/fine-tuning.md"));
  if (found.empty())
    throw DataError(text(words.path, ": no tensor has a name of this model, which are ", someOf(missing),
                         "; the file has ", someOf(unused), "; give a map: --init=", words.path, ",map=FILE.toml"));
}

void InitialWeights::load(Session &session) const {
  for (const Found &each : found) {
    const Tensor &tensor = each.variable->tensor;
    TensorReader reader(file, each.name.name, tensor.type, shapeInFile(*each.variable, each.name));
    std::vector<char> whole;
    if (each.name.transpose) {
      std::vector<char> rows(tensor.bytes());
      reader.read(0, rows.data(), rows.size());
      whole.resize(rows.size());
      transposeMatrix(rows.data(), whole.data(), tensor.shape[1], tensor.shape[0]);
    }
    writeTensor(session, tensor, [&](size_t first, void *to, size_t bytes) {
      if (each.name.transpose)
        std::memcpy(to, whole.data() + first, bytes);
      else
        reader.read(first, to, bytes);
    });
  }
  file.data().dropPages();
}

std::string InitialWeights::report() const {
  std::string out = printable(text("initial values: ", found.size(), " tensors from ", words.path)) + "\n";
  for (const auto &[what, names] : {std::pair{"  not in the file: ", &missing},
                                    {"  of another shape or type, started anew: ", &skipped},
                                    {"  in the file, not in the model: ", &unused}})
    if (!names->empty())
      out += printable(what + someOf(*names)) + "\n";
  return out;
}

std::vector<std::string> InitialWeights::paths() const {
  std::vector<std::string> paths = {words.path};
  if (words.map)
    paths.push_back(*words.map);
  return paths;
}

} // namespace sluice
