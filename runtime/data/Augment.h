// SPDX-License-Identifier: Apache-2.0
// From an image of bytes to one sample of an input: --augment in its order, the program's size, --mean and --std. What
// moves pixels moves the values that lie over them, too: classes or depths of a target (Planes.h).
#pragma once

#include "runtime/Program.h"
#include "runtime/data/Image.h"

#include <string>
#include <vector>

namespace sluice {

/// One change of an image, as it was drawn for a sample.
struct ImageChange {
  enum class Kind { Nothing, Crop, Resize, Flip, Rotate, Colour } kind;
  Box box = {};                 ///< Crop, Resize: the part that is taken; a crop's may reach over the edges
  int width = 0, height = 0;    ///< Resize: what it becomes
  double degrees = 0;           ///< Rotate
  int order[3] = {0, 1, 2};     ///< Colour: of brightness, contrast and saturation
  float factors[3] = {1, 1, 1}; ///< of these
};
using ImageChanges = std::vector<ImageChange>;
ImageSize sizeBehind(const ImageChange &change, ImageSize before);

struct ImageOptions {
  std::string augment;           ///< NAME[,k=v...];...
  std::vector<double> mean, std; ///< a value for all channels or one for each; empty: 0 and 1
  bool random = false;           ///< whether those that draw take place
  bool carried = false;          ///< all of it is that of weights, and means nothing to data without images
};

class ImagePipeline {
public:
  /// `input` is F32, (N, C, H, W), (N, H, W) of one channel, or (N, elements). Throws UsageError for options that do
  /// not fit it.
  ImagePipeline(const ImageOptions &options, const Input &input);
  ImagePipeline(ImagePipeline &&);
  ~ImagePipeline();

  /// Of the images that apply() takes; 0: those of the data, since the input has lost its form.
  int channels() const { return form.channels; }
  /// Those operations of --augment that draw nothing, which evaluation keeps. Throws UsageError for words that are
  /// none.
  static std::string fixedOperations(const std::string &augment);
  ImageSize size() const { return {form.width, form.height}; }
  /// Whether operations may put pixels elsewhere.
  bool moves() const;

  /// What becomes of an image of this size, with the program's size at the end. Draws are functions of (key, their
  /// number). Throws DataError that begins with `name` for one of which nothing can be made.
  ImageChanges draw(ImageSize from, uint64_t key, const std::string &name) const;

  /// Writes the changed sample in row-major order; of a target without changes of colour. Throws DataError that begins
  /// with `name` for an image whose values do not fit.
  void apply(Image image, const ImageChanges &changes, const std::string &name, float *values) const;

private:
  struct Operation;
  struct Draws;

  static Box boxAtRandom(const Operation &op, ImageSize from, ImageSize to, Draws &draws, const std::string &name);
  ImageChange drawOne(const Operation &op, ImageSize from, Draws &draws, const std::string &name) const;

  struct {
    int channels = 0, height = 0, width = 0;
  } form;
  int64_t elements;
  bool random;
  std::string inputName;
  std::vector<Operation> operations;
  std::vector<float> tables; ///< value of each byte, 256 for each of four channels
};

} // namespace sluice
