// SPDX-License-Identifier: Apache-2.0
// Draws use exactly rounded operations alone, so that the same seed crops the same pixels on every machine.

#include "runtime/data/Augment.h"

#include "runtime/Errors.h"
#include "runtime/Numbers.h"
#include "runtime/Random.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice {

namespace {

enum class Kind { Resize, CenterCrop, RandomResizedCrop, RandomCrop, Flip, Rotate, Colour };

struct Knob {
  const char *name;
  double standard, least, most;
};

struct Rule {
  const char *name;
  Kind kind;
  std::vector<Knob> knobs; ///< a size of 0 is the input's
};

const std::vector<Rule> &rules() {
  static const Knob size = {"size", 0, 1, 65500};
  static const std::vector<Rule> all = {
      {"resize", Kind::Resize, {size}},
      {"center-crop", Kind::CenterCrop, {size}},
      {"random-resized-crop",
       Kind::RandomResizedCrop,
       {size, {"least", 0.08, 0, 1}, {"most", 1, 0, 1}, {"ratio", 4.0 / 3, 1, 100}}},
      {"random-crop", Kind::RandomCrop, {size, {"padding", 0, 0, 4096}}},
      {"flip", Kind::Flip, {{"p", 0.5, 0, 1}}},
      {"rotate", Kind::Rotate, {{"degrees", 15, 0, 180}}},
      {"colour", Kind::Colour, {{"brightness", 0, 0, 10}, {"contrast", 0, 0, 10}, {"saturation", 0, 0, 10}}},
  };
  return all;
}

std::vector<std::string> split(const std::string &words, char at) {
  std::vector<std::string> parts(1);
  for (char c : words)
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

} // namespace

/// The draws of one sample, in order.
struct ImagePipeline::Draws {
  uint64_t key, next = 0;

  double between(double low, double high) { return low + (high - low) * static_cast<double>(uniform(key, next++)); }
  /// 0 to most.
  int upTo(int most) { return static_cast<int>(randomBits64(key, next++) % (static_cast<uint64_t>(most) + 1)); }
};

namespace {

Box centered(const Image &image, int width, int height) {
  // Pillow's and torchvision's rounding of half pixels: to even.
  const auto half = [](int rest) { return static_cast<int>(std::nearbyint(rest / 2.0)); };
  return {half(image.width - width), half(image.height - height), width, height};
}

} // namespace

struct ImagePipeline::Operation {
  const Rule *rule;
  std::vector<double> values;

  explicit Operation(const std::string &words);
  bool draws() const { return rule->kind != Kind::Resize && rule->kind != Kind::CenterCrop; }
};

/// NAME[,k=v...]
ImagePipeline::Operation::Operation(const std::string &words) {
  const std::vector<std::string> parts = split(words, ',');
  const auto named = [&](const Rule &candidate) { return parts[0] == candidate.name; };
  const auto found = std::find_if(rules().begin(), rules().end(), named);
  if (found == rules().end()) {
    std::string known;
    for (const Rule &candidate : rules())
      known += text(known.empty() ? "" : ", ", candidate.name);
    throw UsageError(text("--augment: '", parts[0], "' is not known, there are ", known));
  }
  rule = &*found;
  std::vector<bool> given(rule->knobs.size());
  for (const Knob &knob : rule->knobs)
    values.push_back(knob.standard);
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = std::min(parts[i].find('='), parts[i].size());
    const std::string key = parts[i].substr(0, equals), value = parts[i].substr(std::min(equals + 1, parts[i].size()));
    size_t at = 0;
    while (at < rule->knobs.size() && key != rule->knobs[at].name)
      ++at;
    if (at == rule->knobs.size() || given[at])
      throw UsageError(
          text("--augment: ", rule->name, " takes ", at == rule->knobs.size() ? "no '" : "only one '", key, "'"));
    const Knob &knob = rule->knobs[at];
    const bool whole = !std::strcmp(knob.name, "size") || !std::strcmp(knob.name, "padding");
    // Negated, for a number that is none compares with nothing.
    if (!parseNumber(value, values[at]) || !(values[at] >= knob.least && values[at] <= knob.most) ||
        (whole && values[at] != std::floor(values[at])))
      throw UsageError(text("--augment: ", rule->name, ": ", key, " expects a ", whole ? "whole " : "", "number from ",
                            knob.least, " to ", knob.most, ", got '", value, "'"));
    given[at] = true;
  }
  if (rule->kind == Kind::RandomResizedCrop && values[1] > values[2])
    throw UsageError(text("--augment: ", rule->name, ": least ", values[1], " is above most ", values[2]));
}

static void checkChannels(const char *flag, const std::vector<double> &values, int channels) {
  if (values.size() > 1 && channels > 0 && values.size() != static_cast<size_t>(channels))
    throw UsageError(text(flag, " has ", values.size(), " values, images have ", channels, " channels"));
}

ImagePipeline::~ImagePipeline() = default;

ImagePipeline::ImagePipeline(const ImageOptions &options, const Input &input)
    : random(options.random), inputName(input.name) {
  const Shape &shape = input.staging.shape;
  elements = shape.elements() / std::max<int64_t>(1, shape[0]);
  const bool flat = shape.rank < 3 || shape.rank > 4;
  if (!flat) {
    form = {static_cast<int>(shape.rank == 4 ? shape[1] : 1), static_cast<int>(shape[shape.rank - 2]),
            static_cast<int>(shape[shape.rank - 1])};
    if ((form.channels != 1 && form.channels != 3) || elements > 3 * mostPixels)
      throw DataError(text("input '", input.name, "' takes ", form.channels, " channels of ", form.height, " x ",
                           form.width, " pixels; images have 1 or 3 channels and at most ", mostPixels, " pixels"));
  }
  if (!options.augment.empty())
    for (const std::string &words : split(options.augment, ';'))
      operations.emplace_back(words);
  if (flat && !operations.empty())
    throw UsageError(text("--augment: input '", input.name, "' is no image: it has ", shape.rank, " dimensions"));
  checkChannels("--mean", options.mean, form.channels);
  checkChannels("--std", options.std, form.channels);
  const auto of = [](const std::vector<double> &values, size_t channel, double standard) {
    return static_cast<float>(values.empty() ? standard : values[std::min(channel, values.size() - 1)]);
  };
  for (size_t c = 0; c < 3; ++c)
    for (int byte = 0; byte < 256; ++byte)
      tables.push_back((static_cast<float>(byte) / 255.0f - of(options.mean, c, 0)) / of(options.std, c, 1));
}

/// An area of `least` to `most` of the image, of a ratio between 1 / ratio and ratio, as torchvision draws them: ten
/// tries, then the largest part in the middle that has such a ratio.
template <typename Draws>
static Box drawBox(const Image &image, double least, double most, double ratio, Draws &draws) {
  const double area = static_cast<double>(image.width) * image.height, widest = portableLog(ratio);
  for (int i = 0; i < 10; ++i) {
    const double target = area * draws.between(least, most), sides = portableExp(draws.between(-widest, widest));
    const auto width = static_cast<int>(std::nearbyint(std::sqrt(target * sides)));
    const auto height = static_cast<int>(std::nearbyint(std::sqrt(target / sides)));
    if (width > 0 && height > 0 && width <= image.width && height <= image.height) {
      const int top = draws.upTo(image.height - height), left = draws.upTo(image.width - width);
      return {left, top, width, height};
    }
  }
  int width = image.width, height = image.height;
  if (width > height * ratio)
    width = std::max(1, static_cast<int>(std::nearbyint(height * ratio)));
  else if (height > width * ratio)
    height = std::max(1, static_cast<int>(std::nearbyint(width * ratio)));
  return centered(image, width, height);
}

/// In random order, as torchvision's ColorJitter.
template <typename Draws> static void jitter(Image &image, const std::vector<double> &strengths, Draws &draws) {
  using Adjust = void (*)(Image &, float);
  static constexpr Adjust adjusts[] = {adjustBrightness, adjustContrast, adjustSaturation};
  int order[] = {0, 1, 2};
  std::swap(order[0], order[draws.upTo(2)]);
  std::swap(order[1], order[1 + draws.upTo(1)]);
  for (int i : order) {
    const double strength = strengths[static_cast<size_t>(i)];
    const auto factor = static_cast<float>(draws.between(std::max(0.0, 1 - strength), 1 + strength));
    if (strength > 0)
      adjusts[i](image, factor);
  }
}

static Image resizeTo(const Image &image, Box box, double width, double height, const std::string &name) {
  if (width * height > static_cast<double>(mostPixels))
    throw DataError(text(name, ": an image of ", image.width, " x ", image.height, " would become one of ", width,
                         " x ", height, ", at most ", mostPixels, " pixels are allowed"));
  return resize(image, box, static_cast<int>(width), static_cast<int>(height));
}

Image ImagePipeline::cropAtRandom(const Operation &op, const Image &image, int width, int height, Draws &draws,
                                  const std::string &name) {
  const int padding = static_cast<int>(op.values[1]);
  const int across = image.width + 2 * padding - width, down = image.height + 2 * padding - height;
  if (across < 0 || down < 0)
    throw DataError(text(name, ": an image of ", image.width, " x ", image.height, " with a padding of ", padding,
                         " has no part of ", width, " x ", height, ": put resize before random-crop"));
  const int top = draws.upTo(down) - padding, left = draws.upTo(across) - padding;
  return crop(image, {left, top, width, height});
}

void ImagePipeline::change(const Operation &op, Image &image, Draws &draws, const std::string &name) const {
  const int size = std::strcmp(op.rule->knobs[0].name, "size") ? 0 : static_cast<int>(op.values[0]);
  const int width = size ? size : form.width, height = size ? size : form.height;
  const Box whole = {0, 0, image.width, image.height};
  switch (op.rule->kind) {
  case Kind::Resize: {
    const int shorter = std::min(image.width, image.height);
    const auto side = [&](int old) { return std::floor(static_cast<double>(size) * old / shorter); };
    image = size ? resizeTo(image, whole, side(image.width), side(image.height), name)
                 : resizeTo(image, whole, width, height, name);
    return;
  }
  case Kind::CenterCrop:
    image = crop(image, centered(image, width, height));
    return;
  case Kind::RandomResizedCrop:
    image = resizeTo(image, drawBox(image, op.values[1], op.values[2], op.values[3], draws), width, height, name);
    return;
  case Kind::RandomCrop:
    image = cropAtRandom(op, image, width, height, draws, name);
    return;
  case Kind::Flip:
    if (draws.between(0, 1) < op.values[0])
      flip(image);
    return;
  case Kind::Rotate:
    image = rotate(image, draws.between(-op.values[0], op.values[0]));
    return;
  case Kind::Colour:
    jitter(image, op.values, draws);
    return;
  }
}

void ImagePipeline::apply(Image image, uint64_t key, const std::string &name, float *values) const {
  Draws draws{key};
  for (const Operation &op : operations)
    if (random || !op.draws())
      change(op, image, draws, name);
  if (form.channels > 0 && (image.width != form.width || image.height != form.height))
    image = resizeTo(image, {0, 0, image.width, image.height}, form.width, form.height, name);
  if (static_cast<int64_t>(image.pixels.size()) != elements)
    throw DataError(text(name, ": an image of ", image.channels, " x ", image.height, " x ", image.width, " has ",
                         image.pixels.size(), " values, input '", inputName, "' takes ", elements));
  const auto step = static_cast<size_t>(image.channels), pixels = image.pixels.size() / step;
  for (size_t c = 0; c < step; ++c) {
    const float *table = tables.data() + 256 * c;
    const uint8_t *in = image.pixels.data() + c;
    for (size_t i = 0; i < pixels; ++i)
      *values++ = table[in[i * step]];
  }
}

} // namespace sluice
