// SPDX-License-Identifier: Apache-2.0
// What the tools say by the declarations of their flags: --help, laid out as a program's is
// (runtime/program/HelpText.h), and which flag a misspelt one may have meant.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace sluice {

/// Give each option its group (App::option_defaults()->group), what its value is called (Option::option_text, empty for
/// switches) and its default in its description.
class HelpFormatter : public CLI::Formatter {
public:
  /// `usage`: what stands after the name; `examples`: a command line for each group.
  HelpFormatter(std::string usage, std::map<std::string, std::string> examples)
      : usage(std::move(usage)), examples(std::move(examples)) {}

  std::string make_help(const CLI::App *app, std::string name, CLI::AppFormatMode mode) const override;

private:
  std::string usage;
  std::map<std::string, std::string> examples;
};

/// What is wrong with a word `--switch=VALUE`, whose flag takes none: the parser would read some as no and pass over
/// others. "" where there is no such word.
std::string valueOfSwitch(const CLI::App &app, const std::vector<std::string> &words);

/// The message about what `app` knows no flag or place for, flags first; empty where it has taken every word.
std::string unknownWord(const CLI::App &app);

} // namespace sluice
