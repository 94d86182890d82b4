// SPDX-License-Identifier: Apache-2.0
// The list of formats.

#include "runtime/data/Source.h"

#include "runtime/Errors.h"
#include "runtime/data/ArrayFiles.h"
#include "runtime/data/JsonLines.h"
#include "runtime/data/LabelledImages.h"
#include "runtime/data/MaskFolder.h"
#include "runtime/data/Shards.h"
#include "runtime/data/Synthetic.h"
#include "runtime/data/Table.h"
#include "runtime/data/Tokens.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

namespace sluice {

int64_t sampleElements(const Input &input) {
  Shape shape = input.staging.shape;
  if (!input.shared)
    shape.dims[0] = 1;
  return shape.elements();
}

size_t sampleBytes(const Input &input) {
  return static_cast<size_t>(sampleElements(input)) * byteWidth(input.staging.type);
}

bool isTarget(const Program &program, int input) {
  return program.inputs[input].ofLossOnly && program.outputCount > 0 && program.outputs[0].loss;
}

std::string takenBy(const Program &program) {
  std::string inputs, targets;
  for (int i = 0; i < program.inputCount; ++i) {
    std::string &list = isTarget(program, i) ? targets : inputs;
    list += text(list.empty() ? "'" : ", '", program.inputs[i].name, "'");
  }
  return targets.empty() ? inputs : text(inputs, inputs.empty() ? "" : " and, to compare with, ", targets);
}

namespace {

using Open = std::unique_ptr<SampleSource> (*)(const std::string &path, const Program &program,
                                               const SourceOptions &options);

struct Kind {
  const char *name;
  Open open;
  bool arrays = false;
  std::array<const char *, 3> options = {}; ///< PATH,option=value
};

/// For sources that are made from path, program and whether targets are wanted.
template <typename Format>
std::unique_ptr<SampleSource> open(const std::string &path, const Program &program, const SourceOptions &options) {
  return std::make_unique<Format>(path, program, options.targets);
}

template <int classes>
std::unique_ptr<SampleSource> openCifar(const std::string &path, const Program &program, const SourceOptions &options) {
  return std::make_unique<Cifar>(classes, path, program, options.targets);
}

template <ArrayFiles::Container container>
std::unique_ptr<SampleSource> openArrays(const std::string &path, const Program &program,
                                         const SourceOptions &options) {
  return std::make_unique<ArrayFiles>(container, path, program, options.targets, options.inputs);
}

template <typename Format>
std::unique_ptr<SampleSource> openSkipping(const std::string &path, const Program &program,
                                           const SourceOptions &options) {
  return std::make_unique<Format>(path, program, options.targets, options.skipBad, options.tell);
}

std::unique_ptr<SampleSource> openTable(const std::string &path, const Program &program, const SourceOptions &options) {
  return std::make_unique<Table>(path, program, options);
}

std::unique_ptr<SampleSource> openFolder(const std::string &path, const Program &program,
                                         const SourceOptions &options) {
  return std::make_unique<ImageFolder>(path, program, options);
}

std::unique_ptr<SampleSource> openMasks(const std::string &path, const Program &program, const SourceOptions &options) {
  return std::make_unique<MaskFolder>(path, program, options);
}

/// Made when compiling, so that libraries which open none leave the formats out.
constexpr Kind kinds[] = {
    {"cifar10", openCifar<10>},
    {"cifar100", openCifar<100>},
    {"csv", openTable, false, {"header"}},
    {"idx", open<Idx>},
    {"imagefolder", openFolder},
    {"jsonl", open<JsonLines>},
    {"npz", openArrays<ArrayFiles::Container::Npz>, true},
    {"safetensors", openArrays<ArrayFiles::Container::Safetensors>, true},
    {"segmentation", openMasks, false, {"masks", "suffix", "values"}},
    {"shards", openSkipping<Shards>},
    {"tokens", open<Tokens>, false, {"stride", "type"}},
};

/// An option that the kind does not have would be taken for the end of a file's name, so that the file is not found.
void refuseUnknownOptions(const Kind &kind, const std::string &where, const std::string &words) {
  std::string known;
  for (const char *option : kind.options)
    known += option ? text(known.empty() ? "" : ", ", option) : "";
  size_t begin = 0; // of the path, or of the last known option's value
  std::string unknown;
  const auto check = [&](size_t end) {
    if (!unknown.empty() && !std::filesystem::exists(words.substr(begin, end - begin)))
      throw UsageError(text(where, ": there is no option '", unknown, "' of ", kind.name,
                            known.empty() ? ", which has none" : ", but " + known));
  };
  for (size_t comma = words.find(','); comma != std::string::npos; comma = words.find(',', comma + 1)) {
    const size_t length = words.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_", comma + 1) - comma - 1;
    if (comma + 1 + length >= words.size() || words[comma + 1 + length] != '=')
      continue;
    const std::string option = words.substr(comma + 1, length);
    if (std::none_of(kind.options.begin(), kind.options.end(), [&](const char *o) { return o && option == o; })) {
      unknown = unknown.empty() ? option : unknown;
      continue;
    }
    check(comma);
    begin = comma + 1 + length + 1;
    unknown.clear();
  }
  check(words.size());
}

} // namespace

/// Where the path begins in KIND:PATH; 0 for DIR.
static size_t dataPathOf(const std::string &where) {
  const size_t colon = where.find(':');
  return colon == std::string::npos || where.find('/') < colon ? 0 : colon + 1;
}

std::string changePaths(const std::string &where, const std::function<std::string(const std::string &)> &change) {
  const size_t path = dataPathOf(where);
  if (where == syntheticData)
    return where;
  const std::string kind = where.substr(0, path);
  if (kind != "segmentation:")
    return kind + change(where.substr(path));
  MaskWords words(where.substr(path));
  words.images = change(words.images);
  if (!words.masks.empty())
    words.masks = change(words.masks);
  return kind + words.text();
}

std::unique_ptr<SampleSource> openSource(const SourceOptions &options, const Program &program) {
  const std::string &where = options.where;
  const auto refuseInputs = [&](bool arrays) {
    if (!arrays && !options.inputs.empty() && !options.carried)
      throw UsageError(text("--input says what arrays hold (a folder of .npy files, npz, safetensors), not ", where));
  };
  const auto refuseShared = [&](bool arrays) {
    for (int i = 0; i < program.inputCount && !arrays; ++i)
      if (program.inputs[i].shared)
        throw DataError(text("input '", program.inputs[i].name, "' is one that all samples have in common, which only ",
                             "arrays hold (a folder of .npy files, npz, safetensors), not ", where));
  };
  if (options.columns.any() && options.columns.known.empty() && where.compare(0, 4, "csv:") != 0)
    throw UsageError(text("--columns, --categorical and --standardize are of csv:FILE, not of ", where));
  if (where == syntheticData) {
    refuseInputs(false);
    return std::make_unique<Synthetic>(program, options.seed);
  }
  const size_t path = dataPathOf(where);
  if (path == 0)
    return openArrays<ArrayFiles::Container::Folder>(where, program, options);
  const std::string word = where.substr(0, path - 1);
  std::string known;
  for (const Kind &kind : kinds) {
    if (word == kind.name) {
      if (path == where.size())
        throw UsageError(text(where, " names no path"));
      refuseUnknownOptions(kind, where, where.substr(path));
      refuseInputs(kind.arrays);
      refuseShared(kind.arrays);
      return kind.open(where.substr(path), program, options);
    }
    known += text(known.empty() ? "" : ", ", kind.name);
  }
  const bool columnar = word == "parquet" || word == "arrow" || word == "feather";
  throw UsageError(text("'", where, "': there are no data of the kind '", word, "', but ", known,
                        columnar ? "; python -m sluice convert makes some of Parquet and Arrow" : "",
                        "; a folder of .npy files whose name has a colon is ./", where));
}

} // namespace sluice
