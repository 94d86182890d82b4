// SPDX-License-Identifier: Apache-2.0
// Values are the words of flags, so that they are checked where those of a command line are.

#include "runtime/program/Preparation.h"

#include "runtime/Errors.h"
#include "runtime/data/Augment.h"
#include "runtime/data/MaskFolder.h"
#include "runtime/program/ClassNames.h"
#include "runtime/program/Dataset.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sluice {

using Json = nlohmann::json;

/// Keys begin with it, so that nobody else's are taken for ours.
static std::string keyOf(const std::string &name) { return "sluice." + name; }

/// Of names of classes: the key, and what stands in it before a target's name where they are those of one of several.
static const std::string classesWord = "classes", classesOfWord = classesWord + ".";

static constexpr size_t mostClasses = 1 << 17, longestName = 1000;

Preparation preparationOf(const Arguments &arguments, const ClassNames &classes) {
  Preparation preparation{arguments.mean, arguments.std, std::nullopt, arguments.inputs, classes};
  if (const std::string words = ImagePipeline::fixedOperations(arguments.augment.value_or("")); !words.empty())
    preparation.resize = words;
  return preparation;
}

static std::string arrayOf(const std::vector<std::string> &words) {
  return Json(words).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Metadata metadataOf(const Preparation &preparation) {
  Metadata metadata;
  if (preparation.mean)
    metadata[keyOf("mean")] = *preparation.mean;
  if (preparation.std)
    metadata[keyOf("std")] = *preparation.std;
  if (preparation.resize)
    metadata[keyOf("resize")] = *preparation.resize;
  if (!preparation.inputs.empty())
    metadata[keyOf("inputs")] = arrayOf(preparation.inputs);
  if (!preparation.columns.empty())
    metadata[keyOf("columns")] = preparation.columns;
  if (!preparation.maskValues.empty())
    metadata[keyOf("mask_values")] = preparation.maskValues;
  for (const auto &[target, names] : preparation.classes)
    metadata[keyOf(target.empty() ? classesWord : classesOfWord + target)] = arrayOf(names);
  return metadata;
}

/// An array of short strings.
static std::vector<std::string> readArray(const std::string &words, const std::string &what) {
  const Json json = Json::parse(words, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> list;
  bool good = json.is_array() && json.size() <= mostClasses;
  for (size_t i = 0; good && i < json.size(); ++i) {
    good = json[i].is_string() && json[i].get_ref<const std::string &>().size() <= longestName;
    if (good)
      list.push_back(json[i].get<std::string>());
  }
  if (!good)
    throw DataError(text(what, " is no array of up to ", mostClasses, " names"));
  return list;
}

static ClassNames readClasses(const Metadata &metadata, const std::string &path) {
  const std::string alone = keyOf(classesWord), several = keyOf(classesOfWord);
  ClassNames classes;
  for (const auto &[key, value] : metadata)
    if (key == alone || (key.compare(0, several.size(), several) == 0 && key.size() > several.size()))
      if (std::vector<std::string> names = readArray(value, text(path, ": '", key, "' of its metadata"));
          !names.empty())
        classes[key == alone ? "" : key.substr(several.size())] = std::move(names);
  return classes;
}

Preparation readPreparation(const Metadata &metadata, const std::string &path) {
  Preparation preparation;
  const auto read = [&](const char *key, std::optional<std::string> &to) {
    if (const auto found = metadata.find(keyOf(key)); found != metadata.end() && !found->second.empty())
      to = found->second;
  };
  read("mean", preparation.mean);
  read("std", preparation.std);
  read("resize", preparation.resize);
  if (const auto found = metadata.find(keyOf("inputs")); found != metadata.end())
    preparation.inputs = readArray(found->second, text(path, ": '", keyOf("inputs"), "' of its metadata"));
  preparation.classes = readClasses(metadata, path);
  if (const auto found = metadata.find(keyOf("columns")); found != metadata.end() && !found->second.empty()) {
    checkKnownColumns(found->second, text(path, ": '", keyOf("columns"), "' of its metadata"));
    preparation.columns = found->second;
  }
  if (const auto found = metadata.find(keyOf("mask_values")); found != metadata.end())
    preparation.maskValues = found->second;
  Arguments flags;
  flags.mean = preparation.mean, flags.std = preparation.std, flags.augment = preparation.resize;
  flags.inputs = preparation.inputs;
  try {
    dataOptions(flags, 0);
    ImagePipeline::fixedOperations(preparation.resize.value_or(""));
    for (const auto &[target, names] : preparation.classes)
      checkClassNames(names);
    if (!preparation.maskValues.empty())
      maskNumbers(preparation.maskValues);
  } catch (const UsageError &error) {
    throw DataError(text(path, ": its metadata say how images were prepared, but ", error.what()));
  }
  return preparation;
}

std::string textOf(const Preparation &preparation) {
  return Json(metadataOf(preparation)).dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

Preparation readPreparation(const char *text) {
  return readPreparation(Json::parse(text).get<Metadata>(), "the program");
}

/// One number stands for all channels.
static bool areSame(const std::vector<double> &one, const std::vector<double> &other) {
  const auto differ = [](const std::vector<double> &values, double from) {
    return std::any_of(values.begin(), values.end(), [=](double value) { return std::abs(value - from) > 1e-6; });
  };
  if (one.size() == 1 || other.size() == 1)
    return !differ(one.size() == 1 ? other : one, one.size() == 1 ? one[0] : other[0]);
  return one.size() == other.size() &&
         std::equal(one.begin(), one.end(), other.begin(), [](double a, double b) { return std::abs(a - b) <= 1e-6; });
}

std::vector<std::string> doubtsOf(const Preparation &preparation, const Arguments &arguments) {
  std::vector<std::string> doubts;
  Arguments ofWeights;
  ofWeights.mean = preparation.mean, ofWeights.std = preparation.std;
  const ImageOptions given = dataOptions(arguments, 0).images, known = dataOptions(ofWeights, 0).images;
  const auto look = [&](const char *flag, const std::optional<std::string> &word, const std::vector<double> &values,
                        const std::optional<std::string> &weights, const std::vector<double> &others) {
    if (!word)
      return;
    if (std::any_of(values.begin(), values.end(), [](double value) { return value > 1; }))
      doubts.push_back(text(flag, " ", *word,
                            ": bytes / 255 lie between 0 and 1; is this meant for bytes? Then divide ", "it by 255"));
    if (weights && !areSame(values, others) && (!arguments.data || arguments.resume))
      doubts.push_back(text(flag, " ", *word, ": the weights were trained with ", flag, " ", *weights,
                            ", which is taken where the flag is left out"));
  };
  look("--mean", arguments.mean, given.mean, preparation.mean, known.mean);
  look("--std", arguments.std, given.std, preparation.std, known.std);
  return doubts;
}

std::string adopt(const Preparation &preparation, Arguments &arguments, bool classes) {
  std::string said;
  const auto take = [&](const char *flag, std::optional<std::string> &to, const std::optional<std::string> &from) {
    if (to || !from)
      return;
    to = from;
    arguments.carried.insert(flag);
    said += text(" ", flag, " ", *from);
  };
  take("--mean", arguments.mean, preparation.mean);
  take("--std", arguments.std, preparation.std);
  take("--augment", arguments.augment, preparation.resize);
  if (arguments.inputs.empty() && !preparation.inputs.empty()) {
    arguments.inputs = preparation.inputs;
    arguments.carried.insert("--input");
    for (const std::string &word : preparation.inputs)
      said += text(" --input ", word);
  }
  arguments.knownColumns = preparation.columns;
  arguments.maskValues = preparation.maskValues;
  (classes ? arguments.weightClasses : arguments.offeredClasses) = preparation.classes;
  return said.empty() ? "" : said.substr(1);
}

} // namespace sluice
