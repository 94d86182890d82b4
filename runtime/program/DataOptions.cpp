// SPDX-License-Identifier: Apache-2.0
// What flags of data mean.

#include "runtime/program/Dataset.h"

#include "runtime/Errors.h"
#include "runtime/Numbers.h"
#include "runtime/program/Arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <thread>

namespace sluice {

/// X or R,G,B.
static std::vector<double> channelValues(const char *flag, const std::optional<std::string> &words) {
  std::vector<double> values;
  for (const char *at = words ? words->data() : nullptr, *end = words ? at + words->size() : nullptr; at;) {
    const auto [stop, error] = std::from_chars(at, end, values.emplace_back());
    if (error != std::errc() || !std::isfinite(values.back()) || (stop != end && *stop != ','))
      throw UsageError(text(flag, " expects one number or one for each channel (R,G,B), got '", *words, "'"));
    at = stop == end ? nullptr : stop + 1;
  }
  if (values.size() == 2 || values.size() > 4)
    throw UsageError(text(flag, " expects one number, three or four, got ", values.size()));
  return values;
}

/// NAME=image|raw, each.
static InputKinds inputKinds(const std::vector<std::string> &words) {
  InputKinds kinds;
  for (const std::string &word : words) {
    const size_t equals = word.rfind('=');
    const std::string kind = equals == std::string::npos ? "" : word.substr(equals + 1), name = word.substr(0, equals);
    if (kind != "image" && kind != "raw")
      throw UsageError(text("--input expects NAME=image or NAME=raw, got '", word, "'"));
    if (!kinds.emplace(name, kind == "image" ? InputKind::Image : InputKind::Raw).second)
      throw UsageError(text("--input says twice what '", name, "' is"));
  }
  return kinds;
}

/// NAME=N, each.
static std::map<std::string, int64_t> paddingOf(const std::vector<std::string> &words) {
  std::map<std::string, int64_t> padding;
  for (const std::string &word : words) {
    const size_t equals = word.rfind('=');
    int64_t number = 0;
    if (equals == std::string::npos || equals == 0 || !parseNumber(word.substr(equals + 1), number))
      throw UsageError(text("--pad expects NAME=N with a whole number N, got '", word, "'"));
    if (!padding.emplace(word.substr(0, equals), number).second)
      throw UsageError(text("--pad says twice what fills up '", word.substr(0, equals), "'"));
  }
  return padding;
}

DataOptions dataOptions(const Arguments &arguments, uint64_t seed) {
  DataOptions options;
  options.seed = seed;
  // Beside a GPU's step the other cores are free; on the host they compute.
  const int64_t usual = runtimeTarget() == Target::Cuda
                            ? arguments.threads.value_or(std::max(1u, std::thread::hardware_concurrency()))
                            : 1;
  options.workers = static_cast<int>(arguments.workers.value_or(usual));
  options.validationPercent = arguments.validationSplit.value_or(0);
  options.images.augment = arguments.augment.value_or("");
  options.images.mean = channelValues("--mean", arguments.mean);
  options.images.std = channelValues("--std", arguments.std);
  if (std::count_if(options.images.std.begin(), options.images.std.end(), [](double value) { return value <= 0; }))
    throw UsageError(text("--std expects numbers above 0, got '", *arguments.std, "'"));
  options.skipBad = arguments.onBadData == "skip";
  options.keepNan = arguments.onBadData == "keep";
  options.cuts = arguments.cutLong;
  options.padding = paddingOf(arguments.pads);
  options.inputs = inputKinds(arguments.inputs);
  options.images.carried = !arguments.carried.empty();
  options.columns = {arguments.columns, arguments.categorical, arguments.standardize, arguments.knownColumns, true};
  return options;
}

} // namespace sluice
