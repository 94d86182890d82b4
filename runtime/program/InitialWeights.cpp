// SPDX-License-Identifier: Apache-2.0
// A matrix that is transposed is read whole; all others go through in pieces.

#include "runtime/program/InitialWeights.h"

#include "runtime/Printable.h"
#include "runtime/files/HubFolder.h"
#include "runtime/program/Peft.h"
#include "runtime/program/TensorIO.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

namespace sluice {

/// The shape under which the file holds a tensor.
static Shape shapeInFile(const Variable &variable, bool transpose) {
  Shape shape = variable.asFloats().shape;
  if (transpose)
    std::swap(shape.dims[0], shape.dims[1]);
  return shape;
}

InitialWeights::Source::Source(const std::string &flag, const Program &program)
    : flag(flag), words(flag), file(words.path), names(words.map, program) {
  if (words.isTrainedOnly() || words.merged || words.config)
    throw UsageError(text("--init: ",
                          words.config        ? "config"
                          : words.merged      ? "merged"
                          : words.trainedOnly ? "trained-only"
                                              : "peft",
                          " is an option of --export"));
  std::set<std::string> used;
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &variable = program.variables[i];
    if (!isModelTensor(variable))
      continue;
    std::string name;
    for (const std::string &each : names(variable).names) {
      if (!file.contains(each))
        continue;
      used.insert(each);
      if (name.empty())
        name = each;
      else
        requireOne(variable, name, each);
    }
    if (const std::string each = peftName(variable.name);
        name.empty() && !words.map && file.contains(each) && used.insert(each).second)
      name = each;
    if (name.empty())
      absent.push_back(variable.name);
    else
      present[&variable] = name;
  }
  for (const auto &[name, entry] : file.tensors())
    if (!used.count(name) && entry.type.find('F') != std::string::npos) // counters of batches say nothing
      unused.push_back(name);
}

bool InitialWeights::Source::fits(const Variable &variable, const std::string &name, std::string &reason) const {
  try {
    file.find(name, variable.asFloats().type, shapeInFile(variable, names(variable).transpose));
    return true;
  } catch (const DataError &error) {
    reason = error.what();
    return false;
  }
}

void InitialWeights::Source::requireOne(const Variable &variable, const std::string &name,
                                        const std::string &other) const {
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

/// The words for each file that a flag means, which may name a folder.
static std::vector<std::string> withoutFolders(const std::string &flag) {
  const std::string path = WeightFile(flag).path;
  if (std::error_code none; !std::filesystem::is_directory(path, none))
    return {flag};
  std::vector<std::string> flags;
  for (const std::string &file : weightFilesIn(path))
    flags.push_back(file + flag.substr(path.size()));
  return flags;
}

InitialWeights::InitialWeights(const std::vector<std::string> &flags, const Program &program) {
  for (const std::string &flag : flags)
    for (const std::string &file : withoutFolders(flag))
      sources.emplace_back(file, program);
  for (int i = 0; i < program.variableCount; ++i)
    if (isModelTensor(program.variables[i]))
      find(program.variables[i]);
  check();
}

/// From the last file on.
void InitialWeights::find(const Variable &variable) {
  bool isThere = false;
  for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
    const auto name = source->present.find(&variable);
    std::string reason;
    if (name == source->present.end())
      continue;
    isThere = true;
    if (source->fits(variable, name->second, reason)) {
      found.push_back({&variable, &*source, name->second});
      ++source->taken;
      break;
    }
    source->skipped.push_back(variable.name);
    source->why = source->why.empty() ? reason : source->why;
    if (!source->words.skipMismatched) // an error
      break;
  }
  if (!isThere)
    missing.push_back(variable.name);
}

/// That each file is one for this model.
void InitialWeights::check() const {
  for (const Source &source : sources)
    if (const size_t skipped = source.skipped.size(); skipped > 0 && !source.words.skipMismatched)
      throw DataError(text(source.why, skipped > 1 ? text(" (and ", skipped - 1, " more do not fit)") : "",
                           "; to start what does not fit anew, write --init=", source.flag,
                           ",skip-mismatched; a matrix that lies transposed needs a map, see docs/fine-tuning.md"));
  for (const Source &source : sources) {
    if (source.present.size() == source.skipped.size())
      throw DataError(text(source.words.path, ": no tensor has a name of this model, which are ", someOf(source.absent),
                           "; the file has ", someOf(source.unused), "; give a map: --init=", source.words.path,
                           ",map=FILE.toml"));
    if (source.taken == 0)
      throw DataError(text(source.words.path, ": files of --init after this one hold all of its tensors, which would ",
                           "count for nothing: put it after them or leave it out"));
  }
}

void InitialWeights::load(Session &session, const Found &found) {
  const Tensor tensor = found.variable->asFloats();
  const bool transpose = found.source->names(*found.variable).transpose;
  TensorReader reader(found.source->file, found.name, tensor.type, shapeInFile(*found.variable, transpose));
  std::vector<char> whole;
  if (transpose) {
    std::vector<char> rows(tensor.bytes());
    reader.read(0, rows.data(), rows.size());
    whole.resize(rows.size());
    transposeMatrix(rows.data(), whole.data(), tensor.shape[1], tensor.shape[0]);
  }
  writeWeights(session, *found.variable, [&](size_t first, void *to, size_t bytes) {
    if (transpose)
      std::memcpy(to, whole.data() + first, bytes);
    else
      reader.read(first, to, bytes);
  });
}

void InitialWeights::load(Session &session) const {
  for (const Found &each : found)
    load(session, each);
  for (const Source &source : sources)
    source.file.data().dropPages();
}

bool InitialWeights::gives(const Variable &variable) const {
  return std::any_of(found.begin(), found.end(), [&](const Found &each) { return each.variable == &variable; });
}

std::string InitialWeights::report(bool resumes) const {
  std::string out;
  const auto add = [&](const char *what, const std::vector<std::string> &names) {
    if (!names.empty())
      out += printable(what + someOf(names)) + "\n";
  };
  const bool alone = sources.size() == 1;
  const char *lacking = resumes ? "  those of the checkpoint: "
                        : alone ? "  not in the file: "
                                : "  in none of the files: ";
  for (const Source &source : sources) {
    out += printable(text("initial values: ", source.taken, " tensors from ", source.words.path)) + "\n";
    if (alone)
      add(lacking, missing);
    add(alone ? "  of another shape or type, started anew: " : "  of another shape or type, not taken: ",
        source.skipped);
    add("  in the file, not in the model: ", source.unused);
  }
  if (!alone)
    add(lacking, missing);
  return out;
}

Preparation InitialWeights::preparation() const {
  Preparation all;
  const auto take = [](auto &to, const auto &from) {
    if (from != std::decay_t<decltype(from)>())
      to = from;
  };
  for (const Source &source : sources) {
    const Preparation own = readPreparation(source.file.metadata(), source.file.path());
    take(all.mean, own.mean);
    take(all.std, own.std);
    take(all.resize, own.resize);
    take(all.inputs, own.inputs);
    take(all.classes, own.classes);
    take(all.columns, own.columns);
    take(all.maskValues, own.maskValues);
  }
  return all;
}

std::vector<std::string> InitialWeights::paths() const {
  std::vector<std::string> paths;
  for (const Source &source : sources) {
    paths.push_back(source.words.path);
    if (source.words.map)
      paths.push_back(*source.words.map);
  }
  return paths;
}

} // namespace sluice
