// SPDX-License-Identifier: Apache-2.0
// What belongs to weights besides their numbers: how images became the inputs that they were trained on, what the
// classes are called and which numbers masks have for them. Checkpoints and exported models carry it; runs that start
// from them use it, unless flags say something else.
#pragma once

#include "runtime/files/Safetensors.h"
#include "runtime/program/Arguments.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice {

struct Preparation {
  /// As the flags of these names have them; resize: those operations of --augment that draw nothing.
  std::optional<std::string> mean, std, resize;
  std::vector<std::string> inputs; ///< --input
  ClassNames classes;
  std::string columns = {};    ///< of tables, see TableColumns::known()
  std::string maskValues = {}; ///< of the classes in masks, see MaskWords; empty: theirs, or not known

  bool isEmpty() const {
    return !mean && !std && !resize && inputs.empty() && classes.empty() && columns.empty() && maskValues.empty();
  }
};

/// What a run with these flags trains its weights for; `classes` as its data call them.
Preparation preparationOf(const Arguments &arguments, const ClassNames &classes);

/// Keys and values for a file's metadata; names of classes as a JSON array for each target.
Metadata metadataOf(const Preparation &preparation);
/// What a file's metadata say. Throws DataError naming `path` for what no flag could have said.
Preparation readPreparation(const Metadata &metadata, const std::string &path);

/// Both in one line, for programs whose model's file says it.
std::string textOf(const Preparation &preparation);
Preparation readPreparation(const char *text);

/// What is doubtful in --mean and --std as they were given: unlike those of the weights, which `preparation` says, or
/// in units of bytes. Asked before adopt(); a sentence each.
std::vector<std::string> doubtsOf(const Preparation &preparation, const Arguments &arguments);

/// Sets the flags that were not given, and says which, as the flags are written; empty: none. Names of classes are
/// those of the run where `classes` says so, else offered to its data.
std::string adopt(const Preparation &preparation, Arguments &arguments, bool classes);

} // namespace sluice
