// SPDX-License-Identifier: Apache-2.0
// Folders of weights as model hubs lay them out: large models in several safetensors files and an index of them.
#pragma once

#include <string>
#include <vector>

namespace sluice {

/// The safetensors files of a folder: those that its model.safetensors.index.json names, each of them in the folder, in
/// the order of their names; without an index its one safetensors file, whatever it is called. Throws DataError where
/// the index is no such file or names others than files of the folder, and where there is nothing to go by.
std::vector<std::string> weightFilesIn(const std::string &folder);

} // namespace sluice
