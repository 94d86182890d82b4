// SPDX-License-Identifier: Apache-2.0
// How --help is laid out, a program's and the tools': groups of flags in two columns, an example each, at most 100
// columns wide. help2man makes manual pages of it, so that options begin with two spaces and are told from what they do
// by two or more.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice {

/// A flag with its value as it is typed, and what it does.
using HelpEntry = std::pair<std::string, std::string>;

/// `words` in lines of at most 100 columns, broken between words; all lines but the first begin with `indent` spaces,
/// the first is after `used` columns that stand already. Ends with a new line.
std::string wrapped(const std::string &words, size_t used, size_t indent);

/// Heading, entries, and the example (a command line, or empty), with an empty line before them.
std::string helpGroup(const std::string &heading, const std::vector<HelpEntry> &entries, const std::string &example);

/// --help of a program of this name, the flags of which are the same in all; `about` is a sentence about this one.
std::string programHelp(const std::string &name, const std::string &about);

} // namespace sluice
