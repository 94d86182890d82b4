// SPDX-License-Identifier: Apache-2.0
// The library nests values no deeper than it can bear but has no such limit for the dots of keys, each of which is a
// table in a table: the size of the file is the limit.

#include "runtime/files/Toml.h"

#include "runtime/Printable.h"
#include "runtime/files/File.h"

#include <cctype>
#include <cstring>
#include <utility>

namespace sluice {

static constexpr uint64_t mostBytes = uint64_t{64} << 10;
static constexpr size_t mostDots = 100; ///< of all keys of one line, brackets included

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

namespace {

/// A file's characters that are not ASCII as words that are: a mark, which the file does not have, and two digits a
/// byte. The library's answer is undefined where it asks whether a letter that is not ASCII is a blank.
class AsciiWords {
public:
  explicit AsciiWords(const std::string &content) {
    for (int number = 0; content.find(mark = text("u_", number, "_")) != std::string::npos;)
      ++number;
  }

  /// Throws DataError at what is no UTF-8, or may not be shown.
  std::string of(const std::string &path, const std::string &content) const {
    std::string words;
    size_t line = 1;
    for (size_t at = 0; at < content.size(); ++at) {
      line += content[at] == '\n';
      if (static_cast<unsigned char>(content[at]) < 0x80) {
        words += content[at];
        continue;
      }
      size_t bytes = detail::shownBytes(content, at);
      if (bytes == 0)
        throw DataError(text(path, ":", line, ": a character that is no UTF-8, or turns the direction of text around"));
      for (; bytes > 0; --bytes, ++at)
        words += mark + digits[static_cast<unsigned char>(content[at]) >> 4] + digits[content[at] & 15];
      --at;
    }
    return words;
  }

  std::string restored(const std::string &words) const {
    std::string content;
    size_t from = 0;
    for (size_t at; (at = words.find(mark, from)) != std::string::npos;) {
      content.append(words, from, at - from);
      from = at + mark.size() + 2;
      if (from <= words.size()) // the library may cut a word in a message
        content += static_cast<char>(valueOf(words[from - 2]) * 16 + valueOf(words[from - 1]));
    }
    return content + (from < words.size() ? words.substr(from) : "");
  }

  void restore(toml::node &node) const {
    if (toml::table *table = node.as_table())
      restore(*table);
    else if (toml::array *array = node.as_array())
      for (toml::node &element : *array)
        restore(element);
    else if (auto *value = node.as_string())
      value->get() = restored(value->get());
  }

  void restore(toml::table &table) const {
    toml::table whole;
    for (auto &&[key, node] : table) {
      restore(node);
      toml::key own(restored(std::string(key.str())), key.source());
      node.visit([&](auto &value) { whole.insert_or_assign(std::move(own), std::move(value)); });
    }
    table = std::move(whole);
  }

private:
  static constexpr char digits[] = "0123456789abcdef";
  /// 0 of what is no digit.
  static int valueOf(char digit) {
    const char *at = std::strchr(digits, digit);
    return at ? static_cast<int>(at - digits) : 0;
  }

  std::string mark;
};

/// Where in a file of ASCII characters one is. Strings of one line end with it.
class TomlPlace {
public:
  /// Moves on to the end of what begins at `at`: a character, or quotes. Why such a character may not stand there; null
  /// where it may, or where the library says so itself.
  const char *refusal(const std::string &content, size_t &at) {
    const char c = content[at];
    if (c == '\n')
      return endLine() ? nullptr : noName;
    if (c == '\t' || (c == '\r' && at + 1 < content.size() && content[at + 1] == '\n'))
      return nullptr;
    if (c < ' ' || c == 0x7f)
      return "a control character";
    if (in == Comment || c == ' ')
      return nullptr;
    const bool isFirst = std::exchange(first, false);
    if (in == Outside)
      return outside(content, at, isFirst);
    const bool wasEscaped = std::exchange(escaped, c == '\\' && quote == '"' && !escaped);
    if (c == quote && !wasEscaped)
      end(content, at);
    return nullptr;
  }

private:
  enum { Outside, Comment, String, Long } in = Outside;
  static constexpr char noName[] = "a table has no name";

  /// Of what is neither in quotes nor in a comment.
  const char *outside(const std::string &content, size_t &at, bool isFirst) {
    const char c = content[at];
    const bool begins = isFirst && c == '[' && opened.empty(), again = awaitsName && c == '[' && opened == "[";
    if (awaitsName && !again && !std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("_-\"']", c))
      return noName;
    awaitsName = begins || again;
    begin(content, at);
    return nest(c) ? nullptr : "a closing brace in an array";
  }
  void begin(const std::string &content, size_t &at) {
    quote = content[at];
    in = quote == '#' ? Comment : quote == '"' || quote == '\'' ? String : Outside;
    if (in == String && content.compare(at, 3, std::string(3, quote)) == 0)
      in = Long, at += 2;
  }
  /// False for a brace that would close a bracket.
  bool nest(char c) {
    if (c == '[' || c == '{')
      opened += c;
    else if (c == '}' && !opened.empty() && opened.back() == '[')
      return false;
    else if ((c == ']' || c == '}') && !opened.empty())
      opened.pop_back();
    return true;
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
  /// False where a table would have had a name.
  bool endLine() {
    first = true;
    escaped = false;
    if (in != Long)
      in = Outside;
    return !std::exchange(awaitsName, false);
  }

  char quote = 0;
  std::string opened;                 ///< brackets and braces that nothing has closed
  bool first = true, escaped = false; ///< no character of the line but blanks so far; a backslash stands before
  bool awaitsName = false;            ///< one or two brackets that begin a table stand before
};

} // namespace

/// The library asserts that no value of an array begins with a closing brace, and that the name of a table begins as
/// one. Control characters, which TOML has not, would get past other rules.
static void checkCharacters(const std::string &path, const std::string &content) {
  TomlPlace place;
  size_t line = 1;
  for (size_t at = 0; at < content.size(); ++at) {
    const bool endsLine = content[at] == '\n';
    if (const char *refused = place.refusal(content, at))
      throw DataError(text(path, ":", line, ": ", refused));
    line += endsLine;
  }
}

toml::table readToml(const std::string &path) {
  const InputFile file(path);
  if (file.size() > mostBytes)
    throw DataError(text(path, ": ", file.size(), " bytes are too many for a file of settings, at most ", mostBytes));
  std::string content(static_cast<size_t>(file.size()), '\0');
  file.readAt(0, content.data(), content.size());
  if (content.compare(0, 3, "\xef\xbb\xbf") == 0) // a byte order mark
    content.erase(0, 3);
  const AsciiWords ascii(content);
  const std::string words = ascii.of(path, content);
  checkDepth(path, words);
  checkCharacters(path, words);
  try {
    toml::table table = toml::parse(words, path);
    ascii.restore(table);
    return table;
  } catch (const toml::parse_error &error) {
    throw tomlError(path, error.source(), ascii.restored(std::string(error.description())));
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
