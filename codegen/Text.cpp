// SPDX-License-Identifier: Apache-2.0
// Words of C++, see Text.h.
#include "codegen/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>

using namespace sluice::codegen;

/// The position after the string or character that begins at `at`.
static size_t endOfQuoted(llvm::StringRef text, size_t at) {
  const char quote = text[at];
  for (++at; at < text.size() && text[at] != quote; ++at)
    at += text[at] == '\\';
  return at + 1;
}

/// Whether a word after this text names a member of what stands before it.
static bool awaitsMember(llvm::StringRef text) { return text.ends_with(".") || text.ends_with("->"); }

/// A scanner of what the emitter itself writes, not of C++: there are no block comments and no raw literals.
std::set<std::string> sluice::codegen::identifiersIn(llvm::StringRef text) {
  std::set<std::string> found;
  for (size_t at = 0; at < text.size();) {
    char c = text[at];
    if (c == '"' || c == '\'') {
      at = endOfQuoted(text, at);
    } else if (text.substr(at).starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
    } else if (llvm::isAlpha(c) || c == '_') {
      llvm::StringRef word = text.substr(at).take_while([](char d) { return llvm::isAlnum(d) || d == '_'; });
      if (!awaitsMember(text.take_front(at)))
        found.insert(word.str());
      at += word.size();
    } else if (llvm::isDigit(c)) { // with its suffix and exponent
      at += text.substr(at).take_while([](char d) { return llvm::isAlnum(d) || d == '.'; }).size();
    } else {
      ++at;
    }
  }
  return found;
}

Names Names::placeholders() {
  Names names;
  names.hidden = true;
  return names;
}

/// Keywords up to C++20, for projects may be built with a later standard than they ask for.
Names::Names(const std::set<std::string> &reserved) : taken(reserved) {
  for (const char *word :
       {"alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
        "char", "class", "compl", "const", "const_cast", "constexpr", "continue", "decltype", "default", "delete", "do",
        "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend",
        "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
        "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "return", "short",
        "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
        "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using",
        "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq", "char8_t", "char16_t", "char32_t",
        "concept", "consteval", "constinit", "co_await", "co_return", "co_yield", "requires",
        // Macros of the headers and of compilers; what else headers declare, the program's own namespace hides.
        "errno", "linux", "math_errhandling", "sched_priority", "stderr", "stdin", "stdout", "unix"})
    taken.insert(word);
}

/// Underscores neither begin nor end a name nor follow one another, as such names are the implementation's. Suffixes
/// are counted for each name, so that thousands of equal ones take no quadratic time.
std::string Names::unique(llvm::StringRef wanted) {
  std::string name;
  for (char c : wanted)
    if (llvm::isAlnum(c))
      name += c;
    else if (!name.empty() && name.back() != '_') // two in a row are the compiler's
      name += '_';
  while (!name.empty() && name.back() == '_')
    name.pop_back();
  if (name.empty() || llvm::isDigit(name[0]) || llvm::StringRef(name).starts_with("cuda")) // macros of CUDA's headers
    name = "t" + name;
  if (hidden)
    return name + std::to_string(++repeated[name]) + "__";
  std::string candidate = name;
  for (int &i = repeated.try_emplace(name, 1).first->second; !taken.insert(candidate).second;)
    candidate = name + "_" + std::to_string(++i);
  return candidate;
}

std::string Names::uniqueValue(llvm::StringRef wanted) {
  std::string name = wanted.drop_until(llvm::isAlnum).str();
  if (!name.empty())
    name[0] = llvm::toLower(name[0]);
  return unique(name);
}

/// Question marks are escaped because of trigraphs, other bytes as three octal digits, since a hexadecimal escape would
/// take in the digits after it.
std::string sluice::codegen::stringLiteral(llvm::StringRef text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\' || c == '?')
      out += std::string("\\") + static_cast<char>(c);
    else if (c >= 0x20 && c < 0x7f)
      out += static_cast<char>(c);
    else
      out += llvm::formatv("\\{0}{1}{2}", c >> 6, (c >> 3) & 7, c & 7).str(); // octal ends after three digits
  }
  return out + "\"";
}

std::string sluice::codegen::commentText(llvm::StringRef text) {
  std::string out;
  for (unsigned char c : text)
    out += c >= 0x20 && c < 0x7f && c != '\\' ? static_cast<char>(c) : '?';
  return out;
}

std::string sluice::codegen::integerLiteral(int64_t value) {
  return value == std::numeric_limits<int64_t>::min()   ? "INT64_MIN"
         : value == std::numeric_limits<int64_t>::max() ? "INT64_MAX"
                                                        : std::to_string(value);
}

/// The fewest digits that give the same float32; nine always do.
std::string sluice::codegen::floatLiteral(double value) {
  if (std::isnan(value))
    return "NAN";
  if (std::isinf(value))
    return value > 0 ? "INFINITY" : "-INFINITY";
  char text[40];
  for (int digits = 1; digits <= 9; ++digits) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtof(text, nullptr) == static_cast<float>(value))
      break;
  }
  std::string out = text;
  if (out.find_first_of(".e") == std::string::npos)
    out += ".0";
  return out + "f";
}

std::string sluice::codegen::shapeText(mlir::Type type) {
  std::string out = "{";
  for (auto [i, extent] : llvm::enumerate(llvm::cast<mlir::RankedTensorType>(type).getShape()))
    out += (i ? ", " : "") + std::to_string(extent);
  return out + "}";
}

std::string sluice::codegen::hexOffset(int64_t bytes) { return llvm::formatv("{0:x+7}", bytes); }

std::string sluice::codegen::sizeText(int64_t bytes) {
  if (bytes >= int64_t(1) << 30)
    return llvm::formatv("{0:F2} GiB", bytes / 1073741824.0);
  if (bytes >= int64_t(1) << 20)
    return llvm::formatv("{0:F1} MiB", bytes / 1048576.0);
  if (bytes >= 1024)
    return llvm::formatv("{0:F1} KiB", bytes / 1024.0);
  return std::to_string(bytes) + " bytes";
}

std::string sluice::codegen::camelCase(llvm::StringRef rule) {
  std::string out;
  bool upper = true;
  for (char c : rule) {
    if (!llvm::isAlnum(c))
      upper = true;
    else {
      out += upper ? llvm::toUpper(c) : c;
      upper = false;
    }
  }
  return out;
}
