// SPDX-License-Identifier: Apache-2.0
// Line by line, see LineBreaks.h. A line of code is read once for the places where it may be broken, then cut from the
// left.
#include "codegen/LineBreaks.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <tuple>
#include <vector>

using namespace sluice::codegen;

namespace {

/// A place to break a line of code at: the character that would begin the next line.
struct Break {
  size_t at;
  int depth;    ///< of brackets; literals lie deeper than all of them
  bool literal; ///< inside of one, which ends and begins again
  int beyond;   ///< characters that the line before it has besides those before `at`: a quote; less a blank
};

constexpr int inLiteral = 1000, inWord = 2000;

/// Length of the character of a literal at its start, escapes taken as a whole.
size_t characterLength(llvm::StringRef text) {
  if (text.front() != '\\' || text.size() < 2)
    return 1;
  return llvm::isDigit(text[1]) ? 4 : 2; // octal escapes have three digits
}

/// What a line of code consists of.
class Code {
public:
  /// Finds the places in one pass: brackets in literals do not count, nor does what stands in the comment.
  explicit Code(llvm::StringRef line) : text(line) {
    int depth = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      const char c = text[at];
      if (text.substr(at).starts_with("//")) {
        comment = text.drop_front(at);
        text = text.take_front(at).rtrim();
        break;
      }
      if (c == '"')
        at = literal(at);
      else if (llvm::StringRef("({[").contains(c))
        ++depth;
      else if (llvm::StringRef(")}]").contains(c))
        --depth;
      else if (c == ' ' && at > 0 && at + 1 < text.size() && mayBreak(text[at - 1], text[at + 1]))
        breaks.push_back({at + 1, depth, false, -1});
      else if (c == '.' && at > 0 && text[at - 1] == ')')
        breaks.push_back({at, depth + 1, false, 0}); // before the next setter of a chain, which belongs together
    }
  }

  /// Where the line begins again so that at most `room` characters of those from `start` on stay before; the end of
  /// the text when there is no such place.
  Break next(size_t start, size_t room) const {
    const Break *best = nullptr;
    // Shorter lines than half of what is possible are worse than deeper ones, broken words worse than those.
    auto rank = [&](const Break &candidate) {
      const bool isLong = 2 * (candidate.at - start) > room, isWord = candidate.depth == inWord;
      return std::tuple(!isWord, isLong, isLong ? -candidate.depth : 0, candidate.at);
    };
    for (const Break &candidate : breaks)
      if (const size_t length = candidate.at - start + static_cast<size_t>(candidate.beyond);
          candidate.at > start && candidate.at < text.size() && length <= room &&
          (!best || rank(candidate) > rank(*best)))
        best = &candidate;
    return best ? *best : Break{text.size(), 0, false, 0};
  }

  llvm::StringRef text;    ///< without the comment after it
  llvm::StringRef comment; ///< empty: there is none

private:
  static bool mayBreak(char before, char after) {
    return llvm::StringRef(",;=+-*/<>").contains(before) || after == '?' || after == ':';
  }

  /// Returns the place of the closing quote.
  size_t literal(size_t at) {
    for (++at; at < text.size() && text[at] != '"';) {
      const bool space = text[at] == ' ';
      at += characterLength(text.substr(at));
      if (at < text.size() && text[at] != '"')
        breaks.push_back({at, space ? inLiteral : inWord, true, 1});
    }
    return at;
  }

  std::vector<Break> breaks;
};

std::string brokenComment(llvm::StringRef indent, llvm::StringRef comment, size_t width) {
  llvm::StringRef words = comment.drop_front(2);
  std::string begin = (indent + "//" + words.take_while([](char c) { return c == ' '; })).str(), out;
  if (2 * begin.size() > width) // a name may begin with any number of spaces
    begin = "// ";
  for (words = words.ltrim(); begin.size() + words.size() > width;) {
    const size_t room = std::max(width, begin.size() + 1) - begin.size(), space = words.take_front(room + 1).rfind(' ');
    const size_t end = space == llvm::StringRef::npos || space == 0 ? room : space;
    out += begin + words.take_front(end).rtrim().str() + "\n";
    words = words.drop_front(end).ltrim();
  }
  return out + begin + words.str() + "\n";
}

/// Where no place is left, the rest goes on one line that is too long: it compiles all the same.
std::string brokenCode(llvm::StringRef indent, const Code &code, size_t width) {
  const llvm::StringRef text = code.text;
  std::string out, begin = indent.str();
  for (size_t start = 0;;) {
    if (begin.size() + text.size() - start <= width)
      return out + begin + text.substr(start).str() + "\n";
    const Break next = code.next(start, std::max(width, begin.size()) - begin.size());
    out += begin + text.slice(start, next.at).rtrim(next.literal ? "" : " ").str() + (next.literal ? "\"" : "") + "\n";
    if (next.at == text.size())
      return out;
    start = next.at;
    begin = indent.str() + "    " + (next.literal ? "\"" : "");
  }
}

/// A comment behind code moves to the left where that is enough, and else goes above the line.
std::string broken(llvm::StringRef line, size_t width) {
  const llvm::StringRef text = line.ltrim(), indent = line.drop_back(text.size());
  if (line.size() <= width || text.starts_with("#"))
    return line.str() + "\n";
  if (text.starts_with("//"))
    return brokenComment(indent, text, width);
  const Code code(text);
  if (code.comment.empty())
    return brokenCode(indent, code, width);
  if (const size_t taken = indent.size() + code.text.size() + code.comment.size(); taken < width)
    return (indent + code.text).str() + std::string(width - taken, ' ') + code.comment.str() + "\n";
  return brokenComment(indent, code.comment, width) + brokenCode(indent, code, width);
}

} // namespace

std::string sluice::codegen::breakLines(llvm::StringRef text, size_t width) {
  std::string out;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    out += broken(line, width);
    text = rest;
  }
  return out;
}
