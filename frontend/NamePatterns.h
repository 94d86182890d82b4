// SPDX-License-Identifier: Apache-2.0
// Regular expressions of a flag that name tensors or nodes, matched against whole names in linear time (RE2).
#ifndef SLUICE_FRONTEND_NAME_PATTERNS_H
#define SLUICE_FRONTEND_NAME_PATTERNS_H

#include "runtime/Result.h"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace sluice {

/// One regular expression as the user wrote it.
struct NamePattern {
  NamePattern(std::string text, bool ofList = false) : text(std::move(text)), ofList(ofList) {}
  NamePattern(const char *text) : text(text) {}

  std::string text;
  bool ofList = false; ///< a line of a list (@FILE), which may name what one model lacks
};

class NamePatterns {
public:
  /// No pattern, which matches nothing.
  NamePatterns();
  /// An error names the flag and the pattern that is no regular expression of RE2.
  static Result<NamePatterns> compile(const std::string &flag, const std::vector<NamePattern> &patterns);
  NamePatterns(NamePatterns &&);
  NamePatterns &operator=(NamePatterns &&);
  ~NamePatterns();

  size_t size() const;
  /// Whether one of the patterns matches the whole name.
  bool matches(std::string_view name) const;
  /// Patterns that match none of the names, in their order.
  struct Unmatched {
    std::vector<std::string> words, lines; ///< of the command line, of lists
  };
  Unmatched unmatched(const std::vector<std::string> &names) const;

private:
  struct Pattern;
  std::vector<std::unique_ptr<Pattern>> patterns;
  std::unique_ptr<re2::RE2> any; ///< all of them as alternatives
};

/// Regular expressions as words of a command line give them: `@FILE` has one a line, but empty lines and comments (#).
/// An error names the flag and what cannot be read or is no regular expression.
Result<std::vector<NamePattern>> readPatterns(const std::string &flag, const std::vector<std::string> &words);

} // namespace sluice

#endif
