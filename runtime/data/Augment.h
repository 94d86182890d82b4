// SPDX-License-Identifier: Apache-2.0
// From an image of bytes to one sample of an input: --augment in its order, the program's size, --mean and --std.
#pragma once

#include "runtime/Program.h"
#include "runtime/data/Image.h"

#include <string>
#include <vector>

namespace sluice {

struct ImageOptions {
  std::string augment;           ///< NAME[,k=v...];...
  std::vector<double> mean, std; ///< a value for all channels or one for each; empty: 0 and 1
  bool random = false;           ///< whether those that draw take place
};

class ImagePipeline {
public:
  /// `input` is F32, (N, C, H, W), (N, H, W) of one channel, or (N, elements). Throws UsageError for options that do
  /// not fit it.
  ImagePipeline(const ImageOptions &options, const Input &input);
  ~ImagePipeline();

  /// Of the images that apply() takes; 0: those of the data, since the input has lost its form.
  int channels() const { return form.channels; }

  /// Writes the sample in row-major order. Draws are functions of (key, their number). Throws DataError that begins
  /// with `name` for an image of which nothing can be made.
  void apply(Image image, uint64_t key, const std::string &name, float *values) const;

private:
  struct Operation;
  struct Draws;

  static Image cropAtRandom(const Operation &op, const Image &image, int width, int height, Draws &draws,
                            const std::string &name);
  void change(const Operation &op, Image &image, Draws &draws, const std::string &name) const;

  struct {
    int channels = 0, height = 0, width = 0;
  } form;
  int64_t elements;
  bool random;
  std::string inputName;
  std::vector<Operation> operations;
  std::vector<float> tables; ///< value of each byte, 256 for each of three channels
};

} // namespace sluice
