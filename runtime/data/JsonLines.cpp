// SPDX-License-Identifier: Apache-2.0
// Lines are found, checked and measured when the file is opened, and read again one by one.

#include "runtime/data/JsonLines.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice {

using Json = nlohmann::json;

static constexpr uint32_t scalar = UINT32_MAX;
static constexpr size_t mostLineBytes = size_t{16} << 20;

/// Whether a number of a line is finite as a float, too.
static bool fitsFloat(const Json &number) { return std::isfinite(number.get<float>()); }

/// What a line has for an input; null: it has nothing, or no list of numbers that the input takes.
static const Json *valueOf(const Json &line, const Program &program, int input) {
  const auto found = line.find(program.inputs[input].name);
  if (found == line.end())
    return nullptr;
  const bool whole = program.inputs[input].staging.type == DataType::I64;
  const auto isOne = [&](const Json &value) {
    return whole ? value.is_number_integer() &&
                       (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX))
                 : value.is_number() && fitsFloat(value);
  };
  const bool fits = found->is_array() ? std::all_of(found->begin(), found->end(), isOne) : isOne(*found);
  return fits ? &*found : nullptr;
}

JsonLines::JsonLines(const std::string &path, const Program &program, bool targets)
    : program(program), targets(targets), file(path) {
  std::string text, piece;
  uint32_t number = 1;
  uint64_t begin = 0;
  const auto end = [&] {
    addLine(begin, text, number++);
    begin += text.size() + 1;
    text.clear();
  };
  for (uint64_t at = 0; at < file.size(); at += piece.size()) {
    piece.resize(static_cast<size_t>(std::min<uint64_t>(file.size() - at, 1 << 20)));
    file.readAt(at, piece.data(), piece.size());
    for (size_t first = 0; first < piece.size();) {
      const size_t newline = std::min(piece.find('\n', first), piece.size());
      text.append(piece, first, newline - first);
      if (text.size() > mostLineBytes)
        throw DataError(sluice::text(where(number), " has more than ", mostLineBytes, " bytes"));
      if (newline < piece.size())
        end();
      first = newline + 1;
    }
  }
  if (!text.empty())
    end();
}

std::string JsonLines::where(uint32_t line) const { return text(file.path(), ": line ", line); }

/// Empty lines are none.
void JsonLines::addLine(uint64_t begin, const std::string &text, uint32_t number) {
  if (text.find_first_not_of(" \t\r") == std::string::npos)
    return;
  if (number == UINT32_MAX)
    throw DataError(sluice::text(file.path(), " has more lines than can be counted"));
  const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object())
    throw DataError(
        sluice::text(where(number), " is no JSON object, as {\"", program.inputs[0].name, "\": [1, 2, 3]}"));
  lines.push_back({begin, static_cast<uint32_t>(text.size()), number});
  for (int i = 0; i < program.inputCount; ++i) {
    if (!isRead(i)) {
      lengths.push_back(scalar);
      continue;
    }
    const Json *value = valueOf(line, program, i);
    if (!value)
      throw DataError(sluice::text(
          where(number), line.contains(program.inputs[i].name) ? " has for '" : " has nothing for '",
          program.inputs[i].name, line.contains(program.inputs[i].name) ? "' something else than " : "', which takes ",
          program.inputs[i].staging.type == DataType::I64 ? "whole numbers" : "numbers within a float's range",
          ", one or a list of them"));
    lengths.push_back(value->is_array() ? static_cast<uint32_t>(value->size()) : scalar);
  }
}

std::optional<Shape> JsonLines::shapeOf(int input, int64_t sample) const {
  const size_t at = static_cast<size_t>(sample) * static_cast<size_t>(program.inputCount) + static_cast<size_t>(input);
  if (lengths[at] == scalar)
    return Shape{};
  return Shape{static_cast<int64_t>(lengths[at])};
}

/// The file may have changed since it was opened.
void JsonLines::read(int input, int64_t sample, char *values) const {
  const Line &line = lines[static_cast<size_t>(sample)];
  std::string text(line.bytes, '\0');
  file.readAt(line.begin, text.data(), text.size());
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json *value = parsed.is_object() ? valueOf(parsed, program, input) : nullptr;
  const std::optional<Shape> shape = shapeOf(input, sample);
  const bool isArray = value && value->is_array();
  if (!value || isArray != (shape->rank == 1) || (isArray && static_cast<int64_t>(value->size()) != (*shape)[0]))
    throw DataError(sluice::text(where(line.number), " has changed since the file was opened"));
  const bool whole = program.inputs[input].staging.type == DataType::I64;
  const auto put = [&](const Json &one) {
    const int64_t integer = whole ? one.get<int64_t>() : 0;
    const float real = whole ? 0 : one.get<float>();
    const size_t width = whole ? sizeof integer : sizeof real;
    std::memcpy(values, whole ? static_cast<const void *>(&integer) : &real, width);
    values += width;
  };
  if (!isArray)
    return put(*value);
  for (const Json &one : *value)
    put(one);
}

std::string JsonLines::name(int, int64_t sample) const { return where(lines[static_cast<size_t>(sample)].number); }

} // namespace sluice
