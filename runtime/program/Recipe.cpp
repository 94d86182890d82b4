// SPDX-License-Identifier: Apache-2.0
// Keys are the words of the table in FlagTable.cpp without their dashes; values go the way of the command line, so that
// ranges and kinds are checked in one place.

#include "runtime/program/Recipe.h"

#include "runtime/Printable.h"
#include "runtime/data/Source.h"
#include "runtime/files/File.h"
#include "runtime/files/Toml.h"
#include "runtime/program/Checkpoint.h"
#include "runtime/program/Flags.h"
#include "runtime/program/Log.h"
#include "runtime/program/WeightNames.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

namespace fs = std::filesystem;

namespace sluice {

namespace {

std::string shortestText(double value) {
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

/// What a flag takes, as a recipe says it.
struct ExpectedKind {
  const char *operator()(bool Arguments::*) const { return "true or false"; }
  const char *operator()(std::optional<std::string> Arguments::*) const { return "a string"; }
  const char *operator()(std::vector<std::string> Arguments::*) const { return "a string or an array of strings"; }
  const char *operator()(std::optional<int64_t> Arguments::*) const { return "a whole number"; }
  const char *operator()(std::optional<uint64_t> Arguments::*) const {
    return "a whole number (as a string from 2^63 on)";
  }
  const char *operator()(std::optional<double> Arguments::*) const { return "a number"; }
};

/// The words that a command line would say for a value; nothing where the value is of another kind.
struct WordsOf {
  using Words = std::optional<std::vector<std::string>>;
  const toml::node &node;
  const Flag &flag;

  Words string() const {
    const auto value = node.value_exact<std::string>();
    return value ? Words({*value}) : std::nullopt;
  }
  Words integer() const {
    const auto value = node.value_exact<int64_t>();
    return value ? Words({std::to_string(*value)}) : std::nullopt;
  }

  Words operator()(bool Arguments::*) const {
    const auto value = node.value_exact<bool>();
    return value ? Words({*value ? "true" : "false"}) : std::nullopt;
  }
  Words operator()(std::optional<std::string> Arguments::*) const {
    const auto number = flag.percent ? node.value_exact<double>() : std::nullopt;
    return number ? Words({shortestText(*number)}) : flag.percent && node.is_integer() ? integer() : string();
  }
  Words operator()(std::optional<int64_t> Arguments::*) const { return integer(); }
  Words operator()(std::optional<uint64_t> Arguments::*) const { return node.is_string() ? string() : integer(); }
  Words operator()(std::optional<double> Arguments::*) const {
    if (flag.percent && node.is_string())
      return string();
    const auto value = node.value_exact<double>();
    Words words = value ? Words({shortestText(*value)}) : integer();
    if (words && flag.percent)
      words->front() += '%';
    return words;
  }
  Words operator()(std::vector<std::string> Arguments::*) const {
    const toml::array *array = node.as_array();
    if (!array)
      return string();
    std::vector<std::string> words;
    for (const toml::node &element : *array) {
      const auto word = element.value_exact<std::string>();
      if (!word)
        return std::nullopt;
      words.push_back(*word);
    }
    return words;
  }
};

/// Whether the command line said what makes this flag of the recipe meaningless. `partial`: the recipe's checkpoints
/// lack what --init brought.
bool isOverruled(const std::string &name, const std::set<std::string> &given, bool partial) {
  static constexpr std::pair<const char *, const char *> instead[] = {{"--steps", "--epochs"},
                                                                      {"--epochs", "--steps"},
                                                                      {"--init", "--resume"},
                                                                      {"--resume", "--init"},
                                                                      {"--evaluate", "--validation-split"},
                                                                      {"--validation-split", "--evaluate"}};
  for (const auto &[flag, other] : instead)
    if (name == flag && given.count(other) && !(partial && name == "--init"))
      return true;
  return given.count(name) != 0;
}

/// --resume with --evaluate, --predict or --generate, and nothing of training on the command line.
bool onlyUses(const Arguments &arguments, const std::set<std::string> &given) {
  const auto any = [&](std::initializer_list<const char *> names) {
    return std::any_of(names.begin(), names.end(), [&](const char *name) { return given.count(name) != 0; });
  };
  return arguments.resume && any({"--evaluate", "--predict", "--generate"}) && !any({"--data", "--steps", "--epochs"});
}

/// What a recipe says of its run's training, files and output, which mean nothing to one that uses weights; nor do its
/// metrics to one that predicts and evaluates nothing.
bool isOfTraining(const std::string &name, const std::set<std::string> &given) {
  static const std::set<std::string> names = {"--data",
                                              "--shuffle",
                                              "--validation-split",
                                              "--steps",
                                              "--epochs",
                                              "--schedule",
                                              "--evaluate",
                                              "--predict",
                                              "--generate",
                                              "--output",
                                              "--init",
                                              "--evaluate-every",
                                              "--best",
                                              "--patience",
                                              "--export",
                                              "--log",
                                              "--report",
                                              "--tensorboard",
                                              "--trace",
                                              "--dump-gradients",
                                              "--profile-out",
                                              "--profile-errors",
                                              "--roofline",
                                              "--checkpoint",
                                              "--checkpoint-every",
                                              "--keep-checkpoints",
                                              "--checkpoint-trained-only",
                                              "--quiet"};
  return names.count(name) != 0 || (name == "--metrics" && !given.count("--evaluate"));
}

/// Calls `visit(flag, words)` for each flag that was given, in the order of --help, with its values.
template <typename Visit> void forEachGiven(const Arguments &arguments, Visit visit) {
  for (const FlagGroup &group : flagGroups())
    for (const Flag &flag : group.flags)
      if (isGiven(arguments, flag))
        visit(flag, valuesOf(arguments, flag));
}

/// A basic string: JSON's, but that DEL needs an escape, too.
std::string tomlString(const std::string &value) {
  std::string quoted = jsonString(value);
  for (size_t at; (at = quoted.find('\x7f')) != std::string::npos;)
    quoted.replace(at, 1, "\\u007f");
  return quoted;
}

std::string tomlValue(const Flag &flag, const std::vector<std::string> &words) {
  if (!flag.value)
    return "true";
  if (std::holds_alternative<std::vector<std::string> Arguments::*>(flag.field)) {
    std::string list;
    for (const std::string &word : words)
      list += (list.empty() ? "" : ", ") + tomlString(word);
    return "[" + list + "]";
  }
  if (flag.percent)
    return tomlString(words[0]);
  const bool number = std::holds_alternative<std::optional<int64_t> Arguments::*>(flag.field) ||
                      std::holds_alternative<std::optional<double> Arguments::*>(flag.field) ||
                      (std::holds_alternative<std::optional<uint64_t> Arguments::*>(flag.field) &&
                       std::strtoull(words[0].c_str(), nullptr, 10) <= uint64_t{INT64_MAX});
  return number ? words[0] : tomlString(words[0]);
}

/// The same file from whatever folder. Where the path goes up, it stays as it is: links may lie on the way.
std::string absolutePath(const std::string &path) {
  const fs::path absolute = fs::absolute(path);
  return std::find(absolute.begin(), absolute.end(), "..") == absolute.end() ? absolute.lexically_normal() : absolute;
}

/// A value of a flag, with absolute paths.
std::string withAbsolutePaths(const Flag &flag, const std::string &word) {
  if (!flag.holdsPath())
    return word;
  if (flag.holdsWeights()) {
    const WeightFile file(word);
    return text(absolutePath(file.path), file.map ? ",map=" + absolutePath(*file.map) : "",
                file.skipMismatched ? ",skip-mismatched" : "", file.trainedOnly ? ",trained-only" : "",
                file.merged ? ",merged" : "", file.peft ? ",peft" : "",
                !file.config           ? ""
                : file.config->empty() ? ",config"
                                       : ",config=" + absolutePath(*file.config));
  }
  if (!std::strstr(flag.value, "KIND:PATH"))
    return absolutePath(word);
  return changePaths(word, absolutePath);
}

} // namespace

std::string recipePath(const std::string &folder) { return joinPath(folder, "recipe.toml"); }

bool isAboutOneStart(const Flag &flag) {
  static const std::set<std::string> names = {"--recipe", "--resume", "--force", "--help", "--plan", "--version"};
  return names.count(flag.name) != 0;
}

void readRecipe(const std::string &path, const std::set<std::string> &given, Arguments &arguments) {
  const toml::table recipe = readToml(path);
  const bool uses = onlyUses(arguments, given),
             partial = recipe[findFlag("--checkpoint-trained-only")->name + 2].value_exact<bool>().value_or(false);
  for (const auto &[key, node] : recipe) {
    const std::string name = "--" + std::string(key.str());
    const auto fail = [&, &where = key.source()](const std::string &what) { return tomlError(path, where, what); };
    const Flag *flag = findFlag(name);
    if (node.is_table())
      throw fail(text("there are no tables in a recipe, found [", key.str(), "]: write every flag as KEY = VALUE"));
    if (!flag || name == "--recipe")
      throw fail(text("'", key.str(), "' is no flag that a recipe can hold; --help lists them", likelyFlag(name)));
    const auto words = std::visit(WordsOf{node, *flag}, flag->field);
    if (!words)
      throw fail(text(key.str(), " expects ", std::visit(ExpectedKind{}, flag->field), ", got ", tomlKind(node)));
    if (isOverruled(name, given, partial) || (uses && isOfTraining(name, given) && !(partial && name == "--init")))
      continue;
    try {
      for (const std::string &word : *words)
        setFlag(arguments, *flag, word);
    } catch (const UsageError &error) {
      throw fail(error.what());
    }
  }
}

std::string recipeOf(const Arguments &arguments, const std::vector<std::string> &classes) {
  constexpr size_t room = size_t{1} << 15; // checkpoints have them, too
  Arguments elsewhere = arguments;
  size_t bytes = 0;
  if (!classes.empty())
    elsewhere.classes = classes;
  for (const std::string &name : elsewhere.classes)
    bytes += name.size() + 4;
  if (bytes > room)
    elsewhere.classes.clear();
  if (arguments.path.find('/') != std::string::npos) // else it was found in $PATH
    elsewhere.path = absolutePath(arguments.path);
  std::string out = text(
      recipeMark, " Go on with: ", printable(commandByRecipe(elsewhere, absolutePath(*arguments.checkpoint))), "\n");
  forEachGiven(elsewhere, [&](const Flag &flag, std::vector<std::string> words) {
    if (isAboutOneStart(flag) || elsewhere.carried.count(flag.name)) // the weights say these again
      return;
    for (std::string &word : words)
      word = withAbsolutePaths(flag, word);
    out += text(flag.name + 2, " = ", tomlValue(flag, words), "\n");
  });
  return out;
}

/// What of a run decides where its training goes, besides data and length.
static std::vector<const Flag *> flagsOfTraining() {
  std::vector<const Flag *> list;
  for (const char *name : {"--shuffle", "--validation-split", "--augment", "--mean", "--std"})
    list.push_back(findFlag(name));
  for (const FlagGroup &group : flagGroups())
    if (std::any_of(group.flags.begin(), group.flags.end(),
                    [](const Flag &flag) { return flag.name == std::string("--lr"); }))
      for (const Flag &flag : group.flags)
        if (flag.name != std::string("--seed")) // which the checkpoint has
          list.push_back(&flag);
  return list;
}

std::string differencesFrom(const std::string &path, const Arguments &arguments) {
  Arguments before;
  try {
    readRecipe(path, {}, before);
  } catch (const DataError &) {
    return ""; // nothing says what the run had
  }
  std::string list;
  for (const Flag *flag : flagsOfTraining()) {
    const auto words = [&](const Arguments &of) {
      std::string all;
      for (const std::string &word : valuesOf(of, *flag))
        all += text(all.empty() ? "" : " ", flag->name, flag->value ? "=" + shellWord(word) : "");
      return all;
    };
    const std::string now = words(arguments), then = words(before);
    if (now == then || (then.empty() && arguments.carried.count(flag->name)))
      continue;
    list += text(list.empty() ? "" : ", ", now.empty() ? "no " + then : then.empty() ? now : now + " for " + then);
  }
  return list;
}

std::vector<std::pair<std::string, std::string>> givenFlags(const Arguments &arguments) {
  std::vector<std::pair<std::string, std::string>> flags;
  forEachGiven(arguments, [&](const Flag &flag, const std::vector<std::string> &words) {
    if (!arguments.carried.count(flag.name))
      for (const std::string &word : words)
        flags.push_back({flag.name, flag.value ? word : ""});
  });
  return flags;
}

static std::string withFlags(const Arguments &arguments, const std::set<std::string> &without) {
  std::string out = shellWord(arguments.path);
  for (const auto &[name, value] : givenFlags(arguments))
    if (!without.count(name))
      out += text(" ", name, findFlag(name)->value ? "=" + shellWord(value) : "");
  return out;
}

std::string commandOf(const Arguments &arguments) { return withFlags(arguments, {"--recipe"}); }

std::string commandToGoOn(const Arguments &arguments, const std::string &checkpoint) {
  // What the recipe said is among the other flags.
  return text(withFlags(arguments, {"--recipe", "--resume"}), " --resume=", shellWord(checkpoint));
}

std::string commandByRecipe(const Arguments &arguments, const std::string &folder) {
  return text(shellWord(arguments.path), " --recipe=", shellWord(recipePath(folder)), " --resume=", shellWord(folder));
}

} // namespace sluice
