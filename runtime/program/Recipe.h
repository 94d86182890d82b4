// SPDX-License-Identifier: Apache-2.0
// --recipe=FILE.toml: flags of a run in a file, `steps = 100` for --steps 100. FOLDER/recipe.toml says beside a
// checkpoint what its run was started with.
#pragma once

#include "runtime/program/Flags.h"

#include <set>
#include <string>

namespace sluice {

/// What recipes that programs write begin with.
inline constexpr char recipeMark[] = "# Written by a program of Sluice.";

/// FOLDER/recipe.toml.
std::string recipePath(const std::string &folder);

/// Sets what the recipe says and the command line did not: `given` are the flags that it named. A flag also wins over
/// those that exclude it (--steps over epochs, --resume over init, --evaluate over validation-split). A
/// command line with --resume and --evaluate, --predict or --generate, without --data, --steps or --epochs, uses
/// weights: it takes nothing of the recipe's training and files. Throws DataError with file and line.
void readRecipe(const std::string &path, const std::set<std::string> &given, Arguments &arguments);

/// Whether no recipe that programs write holds the flag: --resume, --recipe, --force, --help, --plan.
bool isAboutOneStart(const Flag &flag);

/// The recipe of a run with --checkpoint: all that was given, but for what is about one start only, with absolute
/// paths, and `classes` as --class has them, unless they are more than a recipe has room for.
std::string recipeOf(const Arguments &arguments, const std::vector<std::string> &classes = {});

/// How the flags of a training run differ from those of a recipe: "no --shuffle, --lr=0.1 for --lr=0.05"; paths, data,
/// length and seed are not compared. Empty: not at all, or there is no such recipe.
std::string differencesFrom(const std::string &path, const Arguments &arguments);

/// What was given, by the command line or a recipe: flag and value, which is empty for flags without one; several of a
/// flag that may be given often.
std::vector<std::pair<std::string, std::string>> givenFlags(const Arguments &arguments);

/// A command for a shell: this run with all its flags.
std::string commandOf(const Arguments &arguments);

/// A command for a shell: this run's flags, going on from `checkpoint`.
std::string commandToGoOn(const Arguments &arguments, const std::string &checkpoint);

/// The same for the run that wrote FOLDER/recipe.toml.
std::string commandByRecipe(const Arguments &arguments, const std::string &folder);

} // namespace sluice
