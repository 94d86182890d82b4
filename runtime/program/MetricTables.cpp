// SPDX-License-Identifier: Apache-2.0
// Tables of an evaluation for people: confusions, and what each class has.

#include "runtime/program/Metrics.h"

#include "runtime/Printable.h"

#include <algorithm>
#include <cstdio>

namespace sluice {

std::string className(const std::vector<std::string> &names, size_t number) {
  return number < names.size() ? names[number] : std::to_string(number);
}

/// Cut or padded on the left to so many characters.
static std::string cell(const std::string &content, size_t width) {
  const std::string shown = printable(content);
  size_t characters = 0, bytes = 0;
  for (; bytes < shown.size(); ++bytes)
    if ((static_cast<unsigned char>(shown[bytes]) & 0xc0) != 0x80 && ++characters > width)
      break;
  return std::string(width - std::min(characters, width), ' ') + shown.substr(0, bytes);
}

std::string hitsText(const std::vector<Hits> &hits, const std::vector<std::string> &names) {
  constexpr size_t most = 40, longest = 24;
  if (hits.size() < 2 || hits.size() > most)
    return "";
  size_t width = 5;
  for (size_t k = 0; k < hits.size(); ++k)
    width = std::min(longest, std::max(width, printable(className(names, k)).size()));
  std::string out = "  " + cell("class", width) + "  precision  recall      f1     iou  support\n";
  for (size_t k = 0; k < hits.size(); ++k) {
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, "  %9.4f  %6.4f  %6.4f  %6.4f  %7lld\n", hits[k].precision(),
                  hits[k].recall(), hits[k].f1(), hits[k].iou(), static_cast<long long>(hits[k].there));
    out += "  " + cell(className(names, k), width) + numbers;
  }
  return out;
}

std::string confusionText(const Confusion &counts, const std::vector<std::string> &names) {
  constexpr size_t most = 12, longest = 16;
  if (counts.empty() || counts.size() > most)
    return "";
  size_t width = 2, name = 4;
  for (size_t k = 0; k < counts.size(); ++k) {
    for (const int64_t count : counts[k])
      width = std::max(width, std::to_string(count).size());
    name = std::min(longest, std::max(name, printable(className(names, k)).size()));
  }
  width = std::max(width, names.empty() ? width : std::min<size_t>(name, 8));
  std::string out = "rows: what is right, columns: what was answered\n" + std::string(name + 2, ' ');
  for (size_t k = 0; k < counts.size(); ++k)
    out += "  " + cell(className(names, k), width);
  for (size_t k = 0; k < counts.size(); ++k) {
    out += "\n  " + cell(className(names, k), name);
    for (const int64_t count : counts[k])
      out += "  " + cell(std::to_string(count), width);
  }
  return out + "\n";
}

} // namespace sluice
