// SPDX-License-Identifier: Apache-2.0
// See HelpFormatter.h.
#include "tools/HelpFormatter.h"

#include "runtime/Printable.h"
#include "runtime/Spelling.h"
#include "runtime/program/Flags.h"
#include "runtime/program/HelpText.h"

#include <algorithm>

namespace sluice {

std::string HelpFormatter::make_help(const CLI::App *app, std::string, CLI::AppFormatMode) const {
  std::string out = "Usage: " + app->get_name() + " " + usage + "\n\n" + wrapped(app->get_description(), 0, 0);
  for (const std::string &group : app->get_groups()) {
    std::vector<HelpEntry> entries;
    for (const CLI::Option *option :
         app->get_options([&](const CLI::Option *candidate) { return candidate->get_group() == group; })) {
      const std::string value = option->get_option_text(), name = option->get_name(option->get_positional());
      const char *between = value.empty() ? "" : name.compare(0, 2, "--") == 0 ? "=" : " ";
      entries.emplace_back(name + between + value, option->get_description());
    }
    const auto example = examples.find(group);
    if (!entries.empty())
      out += helpGroup(group, entries, example == examples.end() ? "" : example->second);
  }
  return out + app->get_footer();
}

std::string valueOfSwitch(const CLI::App &app, const std::vector<std::string> &words) {
  for (const std::string &word : words) {
    const size_t at = word.find('=');
    const CLI::Option *option =
        at == std::string::npos || word.rfind("--", 0) != 0 ? nullptr : app.get_option_no_throw(word.substr(0, at));
    if (option && option->get_items_expected_max() == 0)
      return word.substr(0, at) + " takes no value, but '" + printable(word.substr(at + 1)) + "' is given";
  }
  return "";
}

std::string unknownWord(const CLI::App &app) {
  const std::vector<std::string> left = app.remaining();
  const auto isFlag = [](const std::string &word) { return word.size() > 1 && word[0] == '-'; };
  const auto flag = std::find_if(left.begin(), left.end(), isFlag);
  if (left.empty())
    return "";
  if (flag == left.end())
    return "unknown argument '" + printable(left.front()) + "' (see --help)";
  std::vector<std::string> known;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      known.push_back("--" + name);
  const std::string name = flag->substr(0, flag->find('='));
  const std::string meant = withoutHabit(name);
  const bool ofPrograms = findFlag(meant) && std::find(known.begin(), known.end(), meant) == known.end();
  return "unknown flag '" + printable(name) + "' (see --help)" +
         (ofPrograms ? "; " + meant + " is a flag of the programs that sluicec makes" : didYouMean(name, known));
}

} // namespace sluice
