// SPDX-License-Identifier: Apache-2.0
// The words of --dim.
#include "frontend/Buckets.h"

#include "runtime/Numbers.h"

#include <algorithm>

namespace sluice {

static std::vector<std::string> split(const std::string &word, char at) {
  std::vector<std::string> parts(1);
  for (const char c : word)
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

std::string DimBuckets::extentsOf(size_t bucket) const {
  std::string text;
  for (const int64_t extent : extents[bucket])
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

std::string DimBuckets::nameOf(size_t bucket) const {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ",") + name;
  return text + "=" + extentsOf(bucket);
}

/// A name of one of several dimensions, each once.
static Status checkNames(const std::string &argument, const DimBuckets &known, const DimBuckets &given) {
  if (!known.names.empty())
    return Error{"--dim " + argument + " has several extents, as " + known.nameOf(0) +
                 " has: dimensions that vary are given together, --dim A,B=N0xM0,N1xM1,..."};
  for (const std::string &name : given.names)
    if (name.empty() || std::count(given.names.begin(), given.names.end(), name) > 1)
      return Error{"--dim " + argument + ": each dimension has a name of its own"};
  return Success{};
}

static std::optional<int64_t> extentOf(const std::string &word) {
  int64_t extent = 0;
  return parseNumber(word, extent) && extent > 0 ? std::optional(extent) : std::nullopt;
}

/// N0xM0,N1xM1,... for the names, as the extents of `given`.
static Status parseExtents(const std::string &argument, const std::string &words, DimBuckets &given) {
  for (const std::string &word : split(words, ',')) {
    std::vector<int64_t> &extents = given.extents.emplace_back();
    for (const std::string &number : split(word, 'x'))
      if (const std::optional<int64_t> extent = extentOf(number))
        extents.push_back(*extent);
      else
        return Error{"--dim " + argument + " is not NAME=N with a positive N, nor NAME=N0,N1,... or " +
                     "A,B=N0xM0,N1xM1,... for several shapes"};
    if (extents.size() != given.names.size())
      return Error{"--dim " + argument + ": '" + word + "' has " + std::to_string(extents.size()) + " extents for " +
                   std::to_string(given.names.size()) + " dimensions"};
    if (std::count(given.extents.begin(), given.extents.end(), extents) > 1)
      return Error{"--dim " + argument + " has '" + word + "' twice"};
  }
  if (given.extents.size() > DimBuckets::most)
    return Error{"--dim " + argument + " has " + std::to_string(given.extents.size()) + " shapes; " +
                 std::to_string(DimBuckets::most) + " are the most, each of which is a step of its own"};
  return Success{};
}

/// A number alone is one extent of one dimension, whose name may have any characters.
Status parseDims(const std::string &argument, TrainingSpec &spec, DimBuckets &buckets) {
  const size_t equals = argument.rfind('=');
  const bool several = equals != std::string::npos && equals > 0 && !extentOf(argument.substr(equals + 1)) &&
                       argument.find_first_of(",x", equals) != std::string::npos;
  if (!several)
    return parseDim(argument, spec);
  DimBuckets given;
  given.names = split(argument.substr(0, equals), ',');
  if (Status parsed = parseExtents(argument, argument.substr(equals + 1), given); !parsed)
    return parsed;
  const bool one = given.extents.size() == 1;
  if (Status named = checkNames(argument, one ? DimBuckets() : buckets, given); !named)
    return named;
  for (size_t i = 0; one && i < given.names.size(); ++i)
    if (Status added = parseDim(given.names[i] + "=" + std::to_string(given.extents[0][i]), spec); !added)
      return added;
  if (!one)
    buckets = std::move(given);
  return Success{};
}

} // namespace sluice
