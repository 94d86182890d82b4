// SPDX-License-Identifier: Apache-2.0
// The table of limits, and what they say of shapes.
#include "frontend/Limits.h"
#include "frontend/HostTensor.h"
#include <charconv>

namespace sluice {
namespace {

/// A limit as --limit knows it.
struct Limit {
  const char *name;
  int64_t Limits::*value;
  bool fixed; ///< the default is what later parts can hold
};

constexpr Limit table[] = {
    {"nodes", &Limits::nodes, false},
    {"inlined-nodes", &Limits::inlinedNodes, false},
    {"rank", &Limits::rank, true},
    {"extent", &Limits::extent, true},
    {"elements", &Limits::elements, true},
    {"constant-bytes", &Limits::constantBytes, false},
    {"widened-bytes", &Limits::widenedBytes, true},
    {"compiler-seconds", &Limits::compilerSeconds, false},
    {"compiler-bytes", &Limits::compilerBytes, false},
};

const Limit *find(const std::string &name) {
  for (const Limit &limit : table)
    if (name == limit.name)
      return &limit;
  return nullptr;
}

} // namespace

std::string describeLimits() {
  std::string text;
  for (const Limit &limit : table)
    text += (text.empty() ? "" : ", ") + std::string(limit.name) + " (" + std::to_string(Limits().*limit.value) + ")";
  return text;
}

/// Limits of what the runtime can hold may be lowered but not raised.
Status parseLimit(const std::string &argument, Limits &limits) {
  size_t equals = argument.find('=');
  const Limit *limit = equals == std::string::npos ? nullptr : find(argument.substr(0, equals));
  int64_t number = 0;
  const char *end = argument.data() + argument.size();
  bool valid = limit;
  if (limit) {
    auto [stop, failure] = std::from_chars(argument.data() + equals + 1, end, number);
    valid = failure == std::errc() && stop == end && number > 0;
  }
  if (!valid)
    return Error{"--limit " + argument + " is not NAME=N with a positive N and one of the names " + describeLimits()};
  if (limit->fixed && number > Limits().*limit->value)
    return Error{"--limit " + argument + " cannot be raised above " + std::to_string(Limits().*limit->value)};
  limits.*limit->value = number;
  return Success{};
}

std::string overLimit(const std::string &has, int64_t limit, const char *name) {
  std::string text = "has " + has + ", more than the limit of " + std::to_string(limit);
  bool raisable = limit < Limits().*find(name)->value || !find(name)->fixed;
  return raisable ? text + "; raise it with --limit " + name + "=N" : text;
}

/// Errors continue a sentence that begins with the tensor. Empty tensors are refused here, so that all later parts may
/// take extents for positive.
Status checkShape(const std::vector<int64_t> &shape, const Limits &limits) {
  if (static_cast<int64_t>(shape.size()) > limits.rank)
    return Error{overLimit("rank " + std::to_string(shape.size()), limits.rank, "rank")};
  std::optional<int64_t> count = elementCount(shape);
  if (!count)
    return Error{"of shape " + shapeText(shape) + " is too large to address"};
  if (*count > limits.elements)
    return Error{"of shape " + shapeText(shape) + " " +
                 overLimit(std::to_string(*count) + " elements", limits.elements, "elements")};
  if (*count == 0)
    return Error{"of shape " + shapeText(shape) + " is empty"};
  for (int64_t extent : shape)
    if (extent > limits.extent)
      return Error{"of shape " + shapeText(shape) + " " +
                   overLimit("an extent of " + std::to_string(extent), limits.extent, "extent")};
  return Success{};
}

} // namespace sluice
