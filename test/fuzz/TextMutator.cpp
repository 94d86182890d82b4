// SPDX-License-Identifier: Apache-2.0
// Changes of text and bytes; .npy and safetensors keep their frame (magic and length of the header) most of the time,
// for else nearly every input would be refused at the same line.
#include "test/fuzz/Target.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <sstream>

namespace sluice::fuzz {

namespace {

/// What a quoted word stands for.
std::string unescaped(const std::string &line) {
  std::string word;
  for (size_t i = 1; i + 1 < line.size(); ++i) {
    bool escape = line[i] == '\\';
    bool number = escape && line[i + 1] == 'x';
    word += number ? static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16)) : line[i + escape];
    i += number ? 3 : escape;
  }
  return word;
}

/// The words of dictionary.txt: a quoted one a line, with \\, \" and \xNN.
const std::vector<std::string> &tokens() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> words;
    std::istringstream lines(readFile(SLUICE_FUZZ_DICTIONARY));
    for (std::string line; std::getline(lines, line);)
      if (line.size() >= 2 && line[0] == '"')
        words.push_back(unescaped(line));
    if (words.empty())
      finding("no dictionary at " SLUICE_FUZZ_DICTIONARY);
    return words;
  }();
  return all;
}

/// Begin and length of a number's digits at or after a place of the text; length 0: there is none.
std::pair<size_t, size_t> numberAfter(const std::string &text, size_t at) {
  auto digit = [&](size_t i) {
    return std::isdigit(static_cast<unsigned char>(text[i])) || (text[i] && std::strchr("+-.eE", text[i]));
  };
  while (at < text.size() && !std::isdigit(static_cast<unsigned char>(text[at])))
    ++at;
  size_t end = at;
  while (end < text.size() && digit(end))
    ++end;
  return {at, end - at};
}

std::string numberText(Random &random) {
  static constexpr const char *reals[] = {"0.0",  "-0.0", "1e-300", "5e-324", "1e308", "1e18",
                                          "1e60", "0.5",  "1e999",  "1.5",    "1e-9",  "4e9"};
  return random.oneIn(4) ? random.pick(reals) : std::to_string(random.number());
}

/// A part of the text; short ones most of the time.
std::pair<size_t, size_t> part(const std::string &text, Random &random) {
  size_t at = random.below(text.size() + 1), left = text.size() - at;
  return {at, std::min(left, random.oneIn(4) ? random.below(left + 1) : random.below(12))};
}

/// One word as often as no person writes it.
void flood(std::string &text, size_t at, Random &random) {
  std::string token = random.pick(tokens()), all;
  for (size_t count = size_t{1} << random.below(17); count > 0 && all.size() < 200'000; --count)
    all += token;
  text.insert(at, all);
}

/// A number deep in brackets that match.
void nest(std::string &text, size_t at, Random &random) {
  auto [first, size] = numberAfter(text, at);
  const bool object = random.oneIn(2);
  std::string before, after;
  for (size_t depth = size_t{1} << random.below(18); depth > 0 && before.size() < 120'000; --depth) {
    before += object ? "{\"a\":" : "[";
    after += object ? '}' : ']';
  }
  text.insert(first + size, after);
  text.insert(first, before);
}

void changeOnce(std::string &text, const std::string &other, Random &random) {
  auto [at, count] = part(text, random);
  switch (random.below(12)) {
  case 0:
    if (!text.empty())
      text[at % text.size()] ^= static_cast<char>(1 << random.below(8));
    return;
  case 1:
    if (!text.empty())
      text[at % text.size()] = static_cast<char>(random.next());
    return;
  case 2:
    text.erase(at, count);
    return;
  case 3:
    text.insert(at, text.substr(at, count));
    return;
  case 4: {
    auto [from, size] = part(other, random);
    text.replace(at, random.oneIn(2) ? count : 0, other, from, size);
    return;
  }
  case 5:
    if (random.oneIn(12))
      random.oneIn(2) ? flood(text, at, random) : nest(text, at, random);
    else if (random.oneIn(8))
      text.resize(at);
    return;
  case 6:
  case 7:
    text.replace(at, random.oneIn(2) ? count : 0, random.pick(tokens()));
    return;
  default: {
    auto [first, size] = numberAfter(text, at);
    if (size)
      text.replace(first, size, numberText(random));
  }
  }
}

constexpr size_t mostBytes = 1 << 18;

void change(std::string &text, const std::string &other, Random &random) {
  do
    changeOnce(text, other, random);
  while (!random.oneIn(2));
  if (text.size() > mostBytes)
    text.resize(mostBytes);
}

/// A file in a frame: what precedes the header, the header, the data.
struct Framed {
  std::string before, header, data;
};

Framed unframe(const std::string &input, size_t prefix, size_t length) {
  if (input.size() < prefix || length > input.size() - prefix)
    return {input.substr(0, std::min(prefix, input.size())), input.substr(std::min(prefix, input.size())), ""};
  return {input.substr(0, prefix), input.substr(prefix, length), input.substr(prefix + length)};
}

uint64_t lengthAt(const std::string &input, size_t at, size_t width) {
  uint64_t length = 0;
  for (size_t i = width; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(at + i < input.size() ? input[at + i] : 0);
  return length;
}

void setLength(std::string &before, size_t at, size_t width, uint64_t length) {
  for (size_t i = 0; i < width && at + i < before.size(); ++i)
    before[at + i] = static_cast<char>(length >> (8 * i));
}

/// Changes header or data and puts the right length before the header, whose bytes begin at `at`.
std::string mutateFramed(Framed file, const std::string &otherHeader, size_t at, size_t width, Random &random) {
  if (random.oneIn(16))
    change(file.before, otherHeader, random);
  if (!random.oneIn(8))
    change(file.header, otherHeader, random);
  if (random.oneIn(8))
    change(file.data, otherHeader, random);
  if (random.oneIn(2)) { // as many data as some number of the header says
    auto [first, size] = numberAfter(file.header, random.below(file.header.size() + 1));
    if (size && size < 6)
      file.data.resize(std::min<size_t>(
          std::strtoul(file.header.substr(first, size).c_str(), nullptr, 10) * (random.oneIn(2) ? 4 : 1), mostBytes));
  }
  if (!random.oneIn(16))
    setLength(file.before, at, width, file.header.size());
  return file.before + file.header + file.data;
}

} // namespace

std::string mutateText(const std::string &input, const std::string &other, Random &random) {
  std::string text = input;
  change(text, other, random);
  return text;
}

std::string mutateNpy(const std::string &input, const std::string &other, Random &random) {
  auto open = [](const std::string &file) {
    bool wide = file.size() > 6 && file[6] > 1;
    return unframe(file, wide ? 12 : 10, lengthAt(file, 8, wide ? 4 : 2));
  };
  Framed file = open(input);
  return mutateFramed(file, open(other).header, 8, file.before.size() > 10 ? 4 : 2, random);
}

std::string mutateSafetensors(const std::string &input, const std::string &other, Random &random) {
  const std::string changed = mutateFramed(unframe(input, 8, lengthAt(input, 0, 8)),
                                           unframe(other, 8, lengthAt(other, 0, 8)).header, 0, 8, random);
  return random.oneIn(2) ? changed : withChecksums(changed);
}

} // namespace sluice::fuzz
