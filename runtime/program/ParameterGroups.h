// SPDX-License-Identifier: Apache-2.0
// --group: parameters that have a rate or a weight decay of their own.
#pragma once

#include "runtime/Program.h"

#include <map>
#include <string>
#include <vector>

namespace sluice {

/// By the parameter's number, for Session::groups. A word is REGEX:lr=X,decay=Y with one of the two or
/// both; REGEX matches whole ONNX names. All groups that match a parameter count, of two that say the same the later
/// one. Throws UsageError naming a word that makes no sense or matches no parameter.
std::map<int, ParameterGroup> parameterGroups(const std::vector<std::string> &words, const Program &program);

} // namespace sluice
