// SPDX-License-Identifier: Apache-2.0
// Numbers in words of users and files.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace sluice {

/// Sets `number` where all of `word` is one that it can hold, in decimal unless `base` (of whole numbers) says
/// otherwise, without signs or spaces before it but a minus; false for anything else. Floating-point numbers may be
/// "inf" and "nan".
template <typename Number, typename... Base> bool parseNumber(std::string_view word, Number &number, Base... base) {
  const char *end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number, base...);
  return error == std::errc() && stop == end;
}

} // namespace sluice
