// SPDX-License-Identifier: Apache-2.0
// See HelpFormatter.h.
#include "tools/HelpFormatter.h"

#include "runtime/program/HelpText.h"

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

} // namespace sluice
