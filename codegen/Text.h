// SPDX-License-Identifier: Apache-2.0
// Words of C++: identifiers, literals and comments made from what a model contains. Everything that comes from a model
// passes through here.
#pragma once

#include "mlir/IR/BuiltinTypes.h"

#include <map>
#include <set>
#include <string>

namespace sluice::codegen {

/// Identifiers in C++ text outside literals and comments, without those after . and ->, which name members.
std::set<std::string> identifiersIn(llvm::StringRef text);

/// Hands out C++ identifiers, each once. Other characters than letters, digits and _ become _; keywords, macros and
/// what else is taken get a suffix, as do repetitions.
class Names {
public:
  /// `reserved`: what the text uses for itself.
  explicit Names(const std::set<std::string> &reserved = {});
  /// Hands out names that no text uses for itself and isPlaceholder() knows.
  static Names placeholders();
  static bool isPlaceholder(llvm::StringRef name) { return name.ends_with("__"); }
  /// Names of an inner scope that refers to none of this one's: it may hand out the same names again.
  Names inner(const std::set<std::string> &reserved) const { return hidden ? placeholders() : Names(reserved); }
  std::string unique(llvm::StringRef wanted);
  /// The same with a small first letter: types and macros begin with capitals, so that no value hides one.
  std::string uniqueValue(llvm::StringRef wanted);

private:
  std::set<std::string> taken;
  std::map<std::string, int> repeated; ///< suffixes that are taken, by name
  bool hidden = false;
};

/// "text" with every byte that is not printable ASCII, and quotes, backslashes and trigraphs, escaped.
std::string stringLiteral(llvm::StringRef text);
/// The text in a // comment: one line, no control characters, no backslash at the end.
std::string commentText(llvm::StringRef text);
/// A float literal that reads back as the same bits.
std::string floatLiteral(double value);
/// The least number, which has no literal, and the largest are named.
std::string integerLiteral(int64_t value);

std::string shapeText(mlir::Type type); ///< {16, 64, 32, 32}
std::string hexOffset(int64_t bytes);   ///< 0x0040000
std::string sizeText(int64_t bytes);    ///< 4.0 MiB
/// "normalize+relu" -> "NormalizeRelu"
std::string camelCase(llvm::StringRef rule);

} // namespace sluice::codegen
