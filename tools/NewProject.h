// SPDX-License-Identifier: Apache-2.0
// `sluice new`: a folder to begin with.
#pragma once

#include <string>
#include <vector>

namespace sluice {

/// Makes the folder that `words[0]` names: a copy of the model that `words[1]` names, or a small one of ours without
/// one; recipe.toml with flags of the program; README.md with the commands that compile, train and go on. Flags of
/// sluicec among the words stand in these commands. Nothing is left of a folder whose model does not compile with them.
/// The exit status: 1 where the folder is not empty or a file cannot be used, 2 for words that make no sense.
int newProject(const std::vector<std::string> &words);

} // namespace sluice
