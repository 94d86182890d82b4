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
static Shape shapeInFile(const Variable &variable, bool transpose) {
  Shape shape = variable.tensor.shape;
  if (transpose)
    std::swap(shape.dims[0], shape.dims[1]);
  return shape;
}

bool InitialWeights::fits(const Variable &variable, const std::string &name, bool transpose, std::string &why) const {
  try {
    file.find(name, variable.tensor.type, shapeInFile(variable, transpose));
    return true;
  } catch (const DataError &error) {
    why = error.what();
    return false;
  }
}

void InitialWeights::requireOne(const Variable &variable, const std::string &name, const std::string &other) const {
  const auto &a = file.find(name), &b = file.find(other);
  std::vector<char> left(size_t{1} << 16), right(left.size());
  bool same = a.type == b.type && a.dims == b.dims;
  for (uint64_t at = 0; same && at < a.bytes; at += left.size()) {
    const size_t bytes = static_cast<size_t>(std::min<uint64_t>(left.size(), a.bytes - at));
    file.data().readAt(a.offset + at, left.data(), bytes);
    file.data().readAt(b.offset + at, right.data(), bytes);
    same = std::memcmp(left.data(), right.data(), bytes) == 0;
  }
  if (!same)
    throw DataError(text(file.path(), ": '", name, "' and '", other, "' differ, which are one tensor in the model; a ",
                         "map with the line \"", variable.name, "\" = \"", name, "\" takes the first"));
}

InitialWeights::InitialWeights(const std::string &flag, const Program &program) : words(flag), file(words.path) {
  if (words.trainedOnly)
    throw UsageError("--init: trained-only is an option of --export");
  const WeightNames names(words.map, program);
  std::set<std::string> used;
  std::string why;
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (!isModelTensor(variable))
      continue;
    const WeightName &to = names(variable);
    std::string name, here;
    for (const std::string &each : to.names) {
      if (!file.contains(each))
        continue;
      used.insert(each);
      if (name.empty())
        name = each;
      else
        requireOne(variable, name, each);
    }
    if (name.empty()) {
      missing.push_back(variable.name);
      continue;
    }
    if (fits(variable, name, to.transpose, here)) {
      found.push_back({&variable, name, to.transpose});
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
    TensorReader reader(file, each.name, tensor.type, shapeInFile(*each.variable, each.transpose));
    std::vector<char> whole;
    if (each.transpose) {
      std::vector<char> rows(tensor.bytes());
      reader.read(0, rows.data(), rows.size());
      whole.resize(rows.size());
      transposeMatrix(rows.data(), whole.data(), tensor.shape[1], tensor.shape[0]);
    }
    writeTensor(session, tensor, [&](size_t first, void *to, size_t bytes) {
      if (each.transpose)
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
