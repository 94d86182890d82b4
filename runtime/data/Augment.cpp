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

Box centered(ImageSize from, int width, int height) {
  // Pillow's and torchvision's rounding of half pixels: to even.
  const auto half = [](int rest) { return static_cast<int>(std::nearbyint(rest / 2.0)); };
  return {half(from.width - width), half(from.height - height), width, height};
}

} // namespace

struct ImagePipeline::Operation {
  const Rule *rule;
  std::vector<double> values;

  explicit Operation(const std::string &words);
  bool draws() const { return rule->kind != Kind::Resize && rule->kind != Kind::CenterCrop; }
  bool moves() const { return rule->kind != Kind::Colour; }
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

/// Words of operations with the operations themselves.
template <typename Operation, typename Visit> static void forEachOperation(const std::string &augment, Visit visit) {
  if (!augment.empty())
    for (const std::string &words : split(augment, ';'))
      visit(words, Operation(words));
}

static void checkChannels(const char *flag, const std::vector<double> &values, int channels) {
  if (values.size() > 1 && channels > 0 && values.size() != static_cast<size_t>(channels))
    throw UsageError(text(flag, " has ", values.size(), " values, images have ", channels, " channels"));
}

std::string ImagePipeline::fixedOperations(const std::string &augment) {
  std::string fixed;
  forEachOperation<Operation>(augment, [&](const std::string &words, const Operation &op) {
    if (!op.draws())
      fixed += (fixed.empty() ? "" : ";") + words;
  });
  return fixed;
}

ImagePipeline::~ImagePipeline() = default;
ImagePipeline::ImagePipeline(ImagePipeline &&) = default;

ImagePipeline::ImagePipeline(const ImageOptions &options, const Input &input)
    : random(options.random), inputName(input.name) {
  const Shape &shape = input.staging.shape;
  elements = shape.elements() / std::max<int64_t>(1, shape[0]);
  const bool flat = shape.rank < 3 || shape.rank > 4;
  if (!flat) {
    form = {static_cast<int>(shape.rank == 4 ? shape[1] : 1), static_cast<int>(shape[shape.rank - 2]),
            static_cast<int>(shape[shape.rank - 1])};
    if (!isImageOf(form.channels) || elements > form.channels * mostPixels)
      throw DataError(text("input '", input.name, "' takes ", form.channels, " channels of ", form.height, " x ",
                           form.width, " pixels; images have 1, 3 or 4 channels and at most ", mostPixels, " pixels"));
  }
  forEachOperation<Operation>(options.augment, [this](const std::string &, Operation op) { operations.push_back(op); });
  if (flat && !operations.empty())
    throw UsageError(text("--augment: input '", input.name, "' is no image: it has ", shape.rank, " dimensions"));
  for (const Operation &op : operations)
    if (!op.moves() && form.channels == 4)
      throw UsageError(text("--augment: colour is for images of 1 or 3 channels, input '", input.name, "' takes 4"));
  checkChannels("--mean", options.mean, form.channels);
  checkChannels("--std", options.std, form.channels);
  const auto of = [](const std::vector<double> &values, size_t channel, double standard) {
    return static_cast<float>(values.empty() ? standard : values[std::min(channel, values.size() - 1)]);
  };
  for (size_t c = 0; c < 4; ++c)
    for (int byte = 0; byte < 256; ++byte)
      tables.push_back((static_cast<float>(byte) / 255.0f - of(options.mean, c, 0)) / of(options.std, c, 1));
}

bool ImagePipeline::moves() const {
  return std::any_of(operations.begin(), operations.end(),
                     [this](const Operation &op) { return op.moves() && (random || !op.draws()); });
}

/// An area of `least` to `most` of the image, of a ratio between 1 / ratio and ratio, as torchvision draws them: ten
/// tries, then the largest part in the middle that has such a ratio.
template <typename Draws> static Box drawBox(ImageSize from, double least, double most, double ratio, Draws &draws) {
  const double area = static_cast<double>(from.width) * from.height, widest = portableLog(ratio);
  for (int i = 0; i < 10; ++i) {
    const double target = area * draws.between(least, most), sides = portableExp(draws.between(-widest, widest));
    const auto width = static_cast<int>(std::nearbyint(std::sqrt(target * sides)));
    const auto height = static_cast<int>(std::nearbyint(std::sqrt(target / sides)));
    if (width > 0 && height > 0 && width <= from.width && height <= from.height) {
      const int top = draws.upTo(from.height - height), left = draws.upTo(from.width - width);
      return {left, top, width, height};
    }
  }
  int width = from.width, height = from.height;
  if (width > height * ratio)
    width = std::max(1, static_cast<int>(std::nearbyint(height * ratio)));
  else if (height > width * ratio)
    height = std::max(1, static_cast<int>(std::nearbyint(width * ratio)));
  return centered(from, width, height);
}

/// In random order, as torchvision's ColorJitter.
template <typename Draws> static ImageChange drawColours(const std::vector<double> &strengths, Draws &draws) {
  ImageChange change{ImageChange::Kind::Colour};
  std::swap(change.order[0], change.order[draws.upTo(2)]);
  std::swap(change.order[1], change.order[1 + draws.upTo(1)]);
  for (int i : change.order) {
    const double strength = strengths[static_cast<size_t>(i)];
    change.factors[i] = static_cast<float>(draws.between(std::max(0.0, 1 - strength), 1 + strength));
  }
  return change;
}

static void changeColours(Image &image, const ImageChange &change) {
  using Adjust = void (*)(Image &, float);
  static constexpr Adjust adjusts[] = {adjustBrightness, adjustContrast, adjustSaturation};
  for (int i : change.order)
    if (change.factors[i] != 1)
      adjusts[i](image, change.factors[i]);
}

static ImageChange resizeTo(ImageSize from, Box box, double width, double height, const std::string &name) {
  if (width * height > static_cast<double>(mostPixels))
    throw DataError(text(name, ": an image of ", from.width, " x ", from.height, " would become one of ", width, " x ",
                         height, ", at most ", mostPixels, " pixels are allowed"));
  return {ImageChange::Kind::Resize, box, static_cast<int>(width), static_cast<int>(height)};
}

Box ImagePipeline::boxAtRandom(const Operation &op, ImageSize from, ImageSize to, Draws &draws,
                               const std::string &name) {
  const int padding = static_cast<int>(op.values[1]);
  const int across = from.width + 2 * padding - to.width, down = from.height + 2 * padding - to.height;
  if (across < 0 || down < 0)
    throw DataError(text(name, ": an image of ", from.width, " x ", from.height, " with a padding of ", padding,
                         " has no part of ", to.width, " x ", to.height, ": put resize before random-crop"));
  const int top = draws.upTo(down) - padding, left = draws.upTo(across) - padding;
  return {left, top, to.width, to.height};
}

ImageChange ImagePipeline::drawOne(const Operation &op, ImageSize from, Draws &draws, const std::string &name) const {
  using Change = ImageChange::Kind;
  const int size = std::strcmp(op.rule->knobs[0].name, "size") ? 0 : static_cast<int>(op.values[0]);
  const int width = size ? size : form.width, height = size ? size : form.height;
  const Box whole = {0, 0, from.width, from.height};
  switch (op.rule->kind) {
  case Kind::Resize: {
    const int shorter = std::min(from.width, from.height);
    const auto side = [&](int old) { return std::floor(static_cast<double>(size) * old / shorter); };
    return size ? resizeTo(from, whole, side(from.width), side(from.height), name)
                : resizeTo(from, whole, width, height, name);
  }
  case Kind::CenterCrop:
    return {Change::Crop, centered(from, width, height)};
  case Kind::RandomResizedCrop:
    return resizeTo(from, drawBox(from, op.values[1], op.values[2], op.values[3], draws), width, height, name);
  case Kind::RandomCrop:
    return {Change::Crop, boxAtRandom(op, from, {width, height}, draws, name)};
  case Kind::Flip:
    return draws.between(0, 1) < op.values[0] ? ImageChange{Change::Flip} : ImageChange{Change::Nothing};
  case Kind::Rotate: {
    ImageChange change{Change::Rotate};
    change.degrees = draws.between(-op.values[0], op.values[0]);
    return change;
  }
  case Kind::Colour:
    return drawColours(op.values, draws);
  }
  return {Change::Nothing};
}

ImageChanges ImagePipeline::draw(ImageSize from, uint64_t key, const std::string &name) const {
  Draws draws{key};
  ImageChanges changes;
  for (const Operation &op : operations)
    if (random || !op.draws())
      from = sizeBehind(changes.emplace_back(drawOne(op, from, draws, name)), from);
  if (form.channels > 0 && from != ImageSize{form.width, form.height})
    changes.push_back(resizeTo(from, {0, 0, from.width, from.height}, form.width, form.height, name));
  return changes;
}

ImageSize sizeBehind(const ImageChange &change, ImageSize before) {
  return change.kind == ImageChange::Kind::Crop     ? ImageSize{change.box.width, change.box.height}
         : change.kind == ImageChange::Kind::Resize ? ImageSize{change.width, change.height}
                                                    : before;
}

static void changeImage(Image &image, const ImageChange &change) {
  switch (change.kind) {
  case ImageChange::Kind::Nothing:
    return;
  case ImageChange::Kind::Crop:
    image = crop(image, change.box);
    return;
  case ImageChange::Kind::Resize:
    image = resize(image, change.box, change.width, change.height);
    return;
  case ImageChange::Kind::Flip:
    flip(image);
    return;
  case ImageChange::Kind::Rotate:
    image = rotate(image, change.degrees);
    return;
  case ImageChange::Kind::Colour:
    changeColours(image, change);
    return;
  }
}

void ImagePipeline::apply(Image image, const ImageChanges &changes, const std::string &name, float *values) const {
  for (const ImageChange &change : changes)
    changeImage(image, change);
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
