// SPDX-License-Identifier: Apache-2.0
// Flags are parsed and checked as a program's command line is.
#include "runtime/library/FileData.h"

#include "runtime/program/Flags.h"
#include "runtime/program/Predict.h"

#include <algorithm>
#include <set>

namespace sluice {

/// The group of --data, but for the file of --predict, and what draws and measures.
static bool isOfData(const std::string &name) {
  static const std::set<std::string> others = {"--metrics", "--mixup", "--seed"};
  const std::vector<Flag> &group = flagGroups().front().flags;
  return others.count(name) > 0 ||
         (name != "--output" &&
          std::any_of(group.begin(), group.end(), [&](const Flag &flag) { return name == flag.name; }));
}

static Arguments parseFlags(const std::vector<std::string> &flags, const Program &program) {
  std::vector<const char *> words = {program.model};
  bool predicts = false;
  for (const std::string &word : flags) {
    const std::string name = word.substr(0, word.find('='));
    if (name.compare(0, 2, "--") == 0 && findFlag(name) && !isOfData(name))
      throw UsageError(text(name, " is not about data: sluice_set() sets hyperparameters, other calls do the rest"));
    predicts |= name == "--predict";
    words.push_back(word.c_str());
  }
  if (flags.empty())
    throw UsageError("no data are named: give --data, --evaluate or --predict");
  if (predicts) // predictions go into the caller's arrays, whose rows have no names
    words.insert(words.end(), {"--output", "predictions.npy"});
  return parseArguments(static_cast<int>(words.size()), words.data(), program);
}

std::unique_ptr<FileData> openFileData(const std::vector<std::string> &flags, const OpenedFor &how, const Tell &tell) {
  Arguments arguments = parseFlags(flags, how.program);
  for (const std::string &doubt : doubtsOf(how.preparation, arguments))
    tell("warning: " + doubt);
  const std::string adopted = adopt(how.preparation, arguments, how.goesOn || !arguments.data);
  if ((arguments.evaluate || arguments.validationSplit || arguments.predict) && !how.entry.evaluate)
    throw UsageError("this model was compiled without an evaluation function");
  if (arguments.predict)
    requireOutput(how.program, how.entry, *arguments.output);
  DataSets sets(arguments, how.program, arguments.seed.value_or(how.seed), tell);
  if (!adopted.empty())
    tell("images are prepared as for the weights: " + adopted);
  sets.tellNotes([&](const std::string &line, bool warns) { tell((warns ? "warning: " : "") + line); });
  Preparation preparation = sets.preparation(arguments);
  return std::make_unique<FileData>(FileData{std::move(sets), std::move(preparation), {}, std::nullopt});
}

} // namespace sluice
