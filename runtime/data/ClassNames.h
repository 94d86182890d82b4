// SPDX-License-Identifier: Apache-2.0
// What classes are called.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sluice {

struct Program;

/// Of each target the names of its classes, by their number. Targets go by the key that classesKey() gives them.
using ClassNames = std::map<std::string, std::vector<std::string>>;

/// The name of a target (an index of the program's inputs) where losses compare with several; else "", whatever the
/// only one is called. What a file has under "" counts for the first target that tells classes apart.
std::string classesKey(const Program &program, int target);

} // namespace sluice
