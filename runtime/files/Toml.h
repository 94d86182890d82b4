// SPDX-License-Identifier: Apache-2.0
// TOML files that users write: recipes and name maps. The library's headers take seconds to compile, so this one is for
// the few sources that read such files.
#pragma once

#include "runtime/Errors.h"

#include <string>
#include <toml++/toml.h>

namespace sluice {

/// Throws DataError where the file cannot be read or is no TOML, with the line.
toml::table readToml(const std::string &path);

/// An error about the entry at `place`: "PATH:LINE: WHAT".
DataError tomlError(const std::string &path, const toml::source_region &place, const std::string &what);

/// "a string", "a whole number", ... for messages.
const char *tomlKind(const toml::node &node);

} // namespace sluice
