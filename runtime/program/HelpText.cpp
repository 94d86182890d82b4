// SPDX-License-Identifier: Apache-2.0
// See HelpText.h; and the whole --help of a program, from the table of its flags.
#include "runtime/program/HelpText.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"
#include "runtime/program/Flags.h"

#include <sstream>

namespace sluice {

std::string wrapped(const std::string &words, size_t used, size_t indent) {
  constexpr size_t width = 100;
  std::string out;
  bool first = true;
  std::istringstream stream(words);
  for (std::string word; stream >> word; first = false) {
    if (!first && used + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!first) {
      out += " ";
      ++used;
    }
    out += word;
    used += word.size();
  }
  return out + "\n";
}

std::string helpGroup(const std::string &heading, const std::vector<HelpEntry> &entries, const std::string &example) {
  constexpr size_t column = 30;
  std::string out = "\n" + heading + ":\n";
  for (const auto &[flag, does] : entries) {
    std::string left = "  " + flag;
    if (left.size() + 2 > column)
      left += "\n"; // too long for its column: what it does begins below
    left.append(column - (left.back() == '\n' ? 0 : left.size()), ' ');
    out += left + wrapped(does, column, column);
  }
  if (!example.empty())
    out += "\n  Example: " + example + "\n";
  return out;
}

std::string programHelp(const std::string &name, const std::string &about) {
  std::string out = text("Usage: ", name, " [FLAG VALUE | FLAG=VALUE | SWITCH]...\n\n", wrapped(about, 0, 0));
  out += "Flags without a default do nothing unless they are given; switches are off.\n";
  for (const FlagGroup &group : flagGroups()) {
    std::vector<HelpEntry> entries;
    for (const Flag &flag : group.flags)
      entries.emplace_back(flag.value ? text(flag.name, " ", flag.value) : std::string(flag.name), flag.help);
    out += helpGroup(group.heading, entries, text(name, " ", group.example));
  }
  return out + helpGroup("Exit status",
                         {{"0", "all was done"},
                          {"1", "data, a checkpoint or another file cannot be used"},
                          {"2", "the command line makes no sense"},
                          {"3", "device or host memory, or the processor, is not what the program needs"},
                          {"4", "an internal error"},
                          {"5", "the loss is not finite"},
                          {"6", "another rank has failed, of several that train together"}},
                         "");
}

std::string helpText(const std::string &name, const Program &program) {
  return programHelp(printable(name), text("Trains ", printable(program.model), ", batch ", program.batch, ", ",
                                           optimizerName(program.optimizer), ", within ", program.deviceBytes,
                                           " bytes of device memory."));
}

} // namespace sluice
