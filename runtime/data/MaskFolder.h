// SPDX-License-Identifier: Apache-2.0
// Images of a folder with a mask each, a PNG in another folder whose pixels are numbers of classes: segmentation.
#pragma once

#include "runtime/data/ImageFiles.h"
#include "runtime/data/Source.h"

#include <map>

namespace sluice {

/// IMAGES[,masks=MASKS][,suffix=TEXT][,values=V:V-V...], the options in any order.
struct MaskWords {
  /// Throws UsageError for an option that is given twice.
  explicit MaskWords(const std::string &where);
  /// As it is written.
  std::string text() const;

  std::string images, masks; ///< folders; `masks` may be missing where no target is wanted
  std::string suffix;        ///< what a mask's name has after its image's
  std::string values;        ///< of the classes in masks, in their order; empty: 0, 1, 2...
};

/// The numbers of the classes in masks, in the classes' order, that `values` of MaskWords says. Throws UsageError for
/// words that say none, or one twice.
std::vector<uint16_t> maskNumbers(const std::string &values);

class MaskFolder : public SampleSource {
public:
  /// The program's first input takes the images, its last one their masks: one number a pixel, in whatever size.
  /// Throws DataError for images and masks without the other, which `skipBad` of the options leaves out.
  MaskFolder(const std::string &where, const Program &program, const SourceOptions &options);

  int64_t samples() const override { return static_cast<int64_t>(pairs.size()); }
  std::vector<std::string> paths() const override;
  Form form(int input) const override { return input == 0 ? Form::Image : Form::Planes; }
  std::optional<ImageSize> imageSizeOf(int64_t sample) const override;
  Image readImage(int input, int64_t sample) const override;
  PlaneValues readPlanes(int input, int64_t sample) const override;
  void read(int, int64_t, char *) const override {}
  std::string name(int input, int64_t sample) const override;
  std::string fileStem(int64_t sample) const override;
  std::optional<std::string> maskValues() const override { return words.values; }
  std::vector<std::string> notes() const override { return leftOut(); }
  std::vector<std::string> leftOut() const override;
  /// Masks are packed: looking at all of many would take minutes.
  int64_t samplesToCheck() const override { return 1000; }

private:
  struct Pair {
    std::string image, mask; ///< paths; no mask where none is wanted
  };
  using Names = std::map<std::string, std::string>; ///< by what images and masks have in common

  void checkProgram() const;
  void readValues();
  bool isMaskName(const std::string &name) const;
  Names findImages();
  Names findMasks();
  std::string foldersText() const;
  void addPairs(const Names &images, const Names &masks);
  int64_t classAt(uint16_t value, int64_t pixel, int width, const std::string &path) const;

  const Program &program;
  const MaskWords words;
  const bool targets, skip;
  std::vector<Pair> pairs;
  std::vector<int32_t> classes; ///< of each number in a mask, where `values` says them; -1: none
  CountedPaths others;          ///< images that are not read
  int64_t left = 0;             ///< files without a partner
  int folders = 0;              ///< beside the images, which may hold more of them
};

} // namespace sluice
