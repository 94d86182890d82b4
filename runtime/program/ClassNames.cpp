// SPDX-License-Identifier: Apache-2.0
// Files of weights outlive the program that wrote them: names are looked for by their target's, and those that were
// the only ones go to the target that comes first here.

#include "runtime/program/ClassNames.h"

#include "runtime/Errors.h"
#include "runtime/program/Metrics.h"

#include <algorithm>

namespace sluice {

std::string classesKey(const Program &program, int target) {
  const auto isOther = [target](const Output &output) { return output.target >= 0 && output.target != target; };
  return target >= 0 && std::any_of(program.outputs, program.outputs + program.outputCount, isOther)
             ? program.inputs[target].name
             : "";
}

static bool tellsApart(const Program &program, const Output &output) {
  const std::optional<Scores> scores = scoresOf(program, output, output.target);
  return scores && (scores->classes > 0 || scores->labels > 0);
}

int namedOutput(const Program &program) {
  for (int i = 0; i < program.outputCount; ++i)
    if (tellsApart(program, program.outputs[i]))
      return i;
  return 0;
}

std::vector<int> namedTargets(const Program &program) {
  if (program.outputCount == 0)
    return {-1};
  std::vector<int> targets = {program.outputs[namedOutput(program)].target};
  for (int i = 0; i < program.outputCount; ++i)
    if (const Output &output = program.outputs[i];
        tellsApart(program, output) && std::count(targets.begin(), targets.end(), output.target) == 0)
      targets.push_back(output.target);
  return targets;
}

std::vector<std::string> namesOf(const Program &program, int target, const ClassNames &names) {
  auto found = target >= 0 ? names.find(program.inputs[target].name) : names.end();
  if (found == names.end() && target == namedTargets(program)[0])
    found = names.find("");
  return found == names.end() ? std::vector<std::string>() : found->second;
}

std::vector<std::string> namesFor(const Program &program, const std::string &label, const ClassNames &names) {
  for (int i = 0; i < program.outputCount; ++i)
    if (labelOf(program, i) == label)
      return namesOf(program, program.outputs[i].target, names);
  return namesOf(program, namedTargets(program)[0], names);
}

ClassNames ownNames(const Program &program, const ClassNames &names) {
  ClassNames own;
  for (const int target : namedTargets(program))
    if (std::vector<std::string> list = namesOf(program, target, names); !list.empty())
      own[classesKey(program, target)] = std::move(list);
  return own;
}

/// What words of --class begin with that name classes of this target.
static std::string prefixOf(const Program &program, int target) { return text(program.inputs[target].name, "="); }

ClassNames namesFrom(const std::vector<std::string> &words, const Program &program) {
  const std::vector<int> targets = namedTargets(program);
  ClassNames names;
  for (const std::string &word : words) {
    const auto isMeant = [&](int target) { return word.rfind(prefixOf(program, target), 0) == 0; };
    const auto meant = targets.size() > 1 ? std::find_if(targets.begin(), targets.end(), isMeant) : targets.end();
    const int target = meant == targets.end() ? targets[0] : *meant;
    names[classesKey(program, target)].push_back(
        meant == targets.end() ? word : word.substr(prefixOf(program, target).size()));
  }
  for (const auto &[key, list] : names)
    checkClassNames(list);
  return names;
}

std::vector<std::string> wordsOf(const Program &program, const ClassNames &names) {
  const std::vector<int> targets = namedTargets(program);
  std::vector<std::string> words;
  for (const int target : targets)
    for (const std::string &name : namesOf(program, target, names))
      words.push_back(targets.size() > 1 ? prefixOf(program, target) + name : name);
  return words;
}

void checkClassNames(const std::vector<std::string> &names) {
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    throw UsageError(text("two classes are called '", *twice, "'"));
}

} // namespace sluice
