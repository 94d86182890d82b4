// SPDX-License-Identifier: Apache-2.0
// The library nests values no deeper than it can bear but has no such limit for the dots of keys, each of which is a
// table in a table: the size of the file is the limit.

#include "runtime/files/Toml.h"

#include "runtime/files/File.h"

#include <cctype>
#include <cstring>
#include <sstream>
#include <utility>

namespace sluice {

static constexpr uint64_t mostBytes = uint64_t{64} << 10;
static constexpr size_t mostDots = 100; ///< of all keys of one line, brackets included

/// The library asserts what only a name or a quote gives: that the name of a table begins. What is no table but a line
/// of an array may begin with a number as well.
static bool isTableWithoutName(const std::string &line) {
  size_t at = line.find_first_not_of(" \t");
  if (at == std::string::npos || line[at] != '[')
    return false;
  for (int brackets = 0; brackets < 2 && at < line.size() && line[at] == '['; ++brackets)
    at = line.find_first_not_of(" \t\r", at + 1);
  return at == std::string::npos || (!std::isalnum(static_cast<unsigned char>(line[at])) &&
                                     std::strchr("_-+\"']", line[at]) == nullptr && line[at] > 0);
}

/// Dots outside of quotes nest. Those inside are counted as well, which only long texts of many sentences would notice.
static void checkDepth(const std::string &path, const std::string &content) {
  size_t dots = 0, line = 1;
  for (const char character : content) {
    dots = character == '\n' ? 0 : dots + (character == '.');
    if (dots > mostDots)
      throw DataError(text(path, ":", line, ": more than ", mostDots, " dots in one line"));
    line += character == '\n';
  }
}

static void checkTables(const std::string &path, const std::string &content) {
  std::istringstream lines(content);
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number)
    if (isTableWithoutName(line))
      throw DataError(text(path, ":", number, ": a table has no name"));
}

namespace {

/// Where in a file a character is. Strings of one line end with it.
class TomlPlace {
public:
  /// Moves on to the end of what begins at `at`: a character, or quotes. False where such a character may not stand.
  bool allows(const std::string &content, size_t &at) {
    const char c = content[at];
    if (c == '\n')
      return endLine(), true;
    if (in == Comment || c == ' ' || c == '\t' || c == '\r')
      return true;
    const bool isFirst = std::exchange(first, false), isAscii = static_cast<unsigned char>(c) < 0x80;
    if (in == Outside)
      return begin(content, at), isAscii;
    const bool wasEscaped = std::exchange(escaped, c == '\\' && quote == '"' && !escaped);
    if (c == quote && !wasEscaped)
      end(content, at);
    return isAscii || in == String || !isFirst;
  }

private:
  enum { Outside, Comment, String, Long } in = Outside;

  void begin(const std::string &content, size_t &at) {
    quote = content[at];
    in = quote == '#' ? Comment : quote == '"' || quote == '\'' ? String : Outside;
    if (in == String && content.compare(at, 3, std::string(3, quote)) == 0)
      in = Long, at += 2;
  }
  /// A long string ends with three quotes, the last of up to five.
  void end(const std::string &content, size_t &at) {
    size_t quotes = 1;
    while (in == Long && quotes < 5 && at + quotes < content.size() && content[at + quotes] == quote)
      ++quotes;
    at += quotes - 1;
    if (in == String || quotes >= 3)
      in = Outside;
  }
  void endLine() {
    first = true;
    escaped = false;
    if (in != Long)
      in = Outside;
  }

  char quote = 0;
  bool first = true, escaped = false; ///< no character of the line but blanks so far; a backslash stands before
};

} // namespace

/// The library's answer is undefined where it asks whether a letter that is not ASCII is a blank: outside of strings,
/// and at the beginning of a line of a long one.
static void checkLetters(const std::string &path, const std::string &content) {
  TomlPlace place;
  size_t line = 1;
  const size_t begin = content.compare(0, 3, "\xef\xbb\xbf") == 0 ? 3 : 0; // a byte order mark
  for (size_t at = begin; at < content.size(); ++at) {
    line += content[at] == '\n';
    if (!place.allows(content, at))
      throw DataError(text(path, ":", line,
                           ": a character that is not ASCII; put names and values that have some in "
                           "quotes, on one line"));
  }
}

toml::table readToml(const std::string &path) {
  const InputFile file(path);
  if (file.size() > mostBytes)
    throw DataError(text(path, ": ", file.size(), " bytes are too many for a file of settings, at most ", mostBytes));
  std::string content(static_cast<size_t>(file.size()), '\0');
  file.readAt(0, content.data(), content.size());
  checkDepth(path, content);
  checkTables(path, content);
  checkLetters(path, content);
  try {
    return toml::parse(content, path);
  } catch (const toml::parse_error &error) {
    throw tomlError(path, error.source(), std::string(error.description()));
  }
}

DataError tomlError(const std::string &path, const toml::source_region &place, const std::string &what) {
  return DataError(text(path, ":", place.begin.line, ": ", what));
}

const char *tomlKind(const toml::node &node) {
  switch (node.type()) {
  case toml::node_type::string:
    return "a string";
  case toml::node_type::integer:
    return "a whole number";
  case toml::node_type::floating_point:
    return "a number";
  case toml::node_type::boolean:
    return "true or false";
  case toml::node_type::array:
    return "an array";
  case toml::node_type::table:
    return "a table";
  default:
    return "a date or a time";
  }
}

} // namespace sluice
