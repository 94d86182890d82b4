// SPDX-License-Identifier: Apache-2.0
// All patterns of a flag are matched at once, as the alternatives of one expression: lists that tools write have
// thousands of lines.
#include "frontend/NamePatterns.h"

#include <re2/re2.h>

#include <fstream>

namespace sluice {
namespace {

/// Of the automata of one expression.
constexpr int64_t mostBytes = int64_t(1) << 28;

re2::RE2::Options options() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(mostBytes);
  options.set_never_capture(true);
  return options;
}

} // namespace

/// One expression of RE2, whose matching takes time linear in the name: patterns come from whoever starts the compiler.
struct NamePatterns::Pattern {
  Pattern(const std::string &words, bool ofList) : expression(words, options()), ofList(ofList) {}

  re2::RE2 expression;
  bool ofList; ///< a line of a list
};

NamePatterns::NamePatterns() = default;
NamePatterns::NamePatterns(NamePatterns &&) = default;
NamePatterns &NamePatterns::operator=(NamePatterns &&) = default;
NamePatterns::~NamePatterns() = default;

/// Besides each pattern all of them are compiled as one expression, so that matching a name takes time of its length
/// and not of their number; the single ones tell which of them match nothing.
Result<NamePatterns> NamePatterns::compile(const std::string &flag, const std::vector<NamePattern> &patterns) {
  NamePatterns compiled;
  std::string all;
  for (const auto &[pattern, ofList] : patterns) {
    auto added = std::make_unique<Pattern>(pattern, ofList);
    const re2::RE2 &expression = added->expression;
    if (!expression.ok()) {
      const bool looksAround = expression.error_code() == re2::RE2::ErrorBadPerlOp;
      return Error{flag + "=" + pattern + " is not a regular expression: " + expression.error() +
                   (looksAround ? "; there is no look-ahead or look-behind, name the exceptions by another flag" : "")};
    }
    all += (all.empty() ? "(?:" : "|(?:") + pattern + ")";
    compiled.patterns.push_back(std::move(added));
  }
  if (patterns.empty())
    return compiled;
  compiled.any = std::make_unique<re2::RE2>(all, options());
  if (!compiled.any->ok())
    return Error{flag + ": its " + std::to_string(patterns.size()) +
                 " regular expressions are together too large; give fewer or shorter ones"};
  return compiled;
}

size_t NamePatterns::size() const { return patterns.size(); }

bool NamePatterns::matches(std::string_view name) const {
  return any && re2::RE2::FullMatch(re2::StringPiece(name.data(), name.size()), *any);
}

NamePatterns::Unmatched NamePatterns::unmatched(const std::vector<std::string> &names) const {
  Unmatched none;
  for (const auto &pattern : patterns) {
    bool found = false;
    for (size_t i = 0; !found && i < names.size(); ++i)
      found = re2::RE2::FullMatch(names[i], pattern->expression);
    if (!found)
      (pattern->ofList ? none.lines : none.words).push_back(pattern->expression.pattern());
  }
  return none;
}

/// Adds the lines of a file; errors are the end of a sentence that begins with it.
static Status addLines(const std::string &path, std::vector<NamePattern> &patterns) {
  constexpr size_t mostBytesOfFile = 1 << 24;
  std::ifstream file(path, std::ios::binary);
  const size_t before = patterns.size();
  size_t bytes = 0;
  for (std::string line; bytes <= mostBytesOfFile && std::getline(file, line);) {
    bytes += line.size() + 1;
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    if (!line.empty() && line.front() != '#')
      patterns.emplace_back(line, true);
  }
  if (bytes > mostBytesOfFile)
    return Error{"has more than " + std::to_string(mostBytesOfFile) + " bytes"};
  if (!file.eof())
    return Error{"cannot be read"};
  return patterns.size() == before ? Status(Error{"holds no regular expression"}) : Success{};
}

Result<std::vector<NamePattern>> readPatterns(const std::string &flag, const std::vector<std::string> &words) {
  std::vector<NamePattern> patterns;
  for (const std::string &word : words)
    if (word.empty() || word.front() != '@')
      patterns.push_back(word);
    else if (const Status added = addLines(word.substr(1), patterns); !added)
      return Error{flag + "=" + word + ": the file " + added.error()};
  auto compiled = NamePatterns::compile(flag, patterns);
  return compiled ? Result<std::vector<NamePattern>>(std::move(patterns)) : compiled.takeError();
}

} // namespace sluice
