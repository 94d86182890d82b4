// SPDX-License-Identifier: Apache-2.0
// What sources of images with a class each have in common: the first input takes the image, the target the class.
#pragma once

#include "runtime/data/ImageFiles.h"
#include "runtime/data/Source.h"
#include "runtime/files/File.h"

#include <utility>

namespace sluice {

class LabelledImages : public SampleSource {
public:
  /// Throws DataError unless the program has one F32 input for an image and, where `targets` is set, a target of one
  /// I64 class a sample (or none: a graph that ends in its own loss takes no target).
  LabelledImages(const std::string &kind, const Program &program, bool targets);

  Form form(int input) const override { return input == 0 ? Form::Image : Form::Numbers; }
  void read(int input, int64_t sample, char *values) const override;

protected:
  virtual int64_t label(int64_t sample) const = 0;
  /// Throws DataError when the program takes fewer classes than there are.
  void checkClasses(const std::string &where, int64_t classes) const;

  /// Of the program's target; 0 where it has none, or any number.
  int64_t classesOfProgram() const;

  const Program &program;
  const bool targets;
  const int wanted; ///< channels of the program's images; 3 where they have lost their form
};

/// A folder with a subfolder for each class, the classes in the order of their names' bytes, images in that of theirs,
/// those of folders in it among them, in torchvision's order.
class ImageFolder : public LabelledImages {
public:
  /// With `options.classes` each subfolder has to be one of them, and its place there is its class; some may be
  /// missing. So with `options.offered`, where all subfolders are among them. With `options.skipBad` classes without
  /// images keep their number and are no error.
  ImageFolder(const std::string &folder, const Program &program, const SourceOptions &options);

  int64_t samples() const override { return static_cast<int64_t>(files.size()); }
  std::optional<ImageSize> imageSizeOf(int64_t sample) const override;
  std::vector<std::string> paths() const override;
  Image readImage(int input, int64_t sample) const override;
  std::string name(int input, int64_t sample) const override;
  std::string fileStem(int64_t sample) const override;

  ClassNames classNames() const override;
  /// Of images in formats that are not read, and whose numbers the classes have.
  std::vector<std::string> notes() const override;
  std::vector<std::string> leftOut() const override;
  /// Of folders that are fewer than the program's classes, and have no names to go by, and of such that hold folders
  /// alone.
  std::vector<std::string> warnings() const override;

private:
  struct File {
    std::string path;
    int64_t label;
  };
  int64_t label(int64_t sample) const override { return files[static_cast<size_t>(sample)].label; }
  void addImages(const std::string &ofClass, int64_t label);
  void takeOffered(const std::vector<std::string> &offered);
  void addClasses(bool skip, bool known, const Tell &tell);

  std::vector<File> files;
  const std::string folder;
  std::vector<std::string> names; ///< of the classes
  CountedPaths others;            ///< images that are not read
  std::string numbering;          ///< a note on it; empty: nothing to say
  bool anyDirectly = false;       ///< whether an image lies in a class's folder itself, not in a folder in it
  bool nested = false;            ///< no image does, and nothing says that these are the classes
  bool guessed = false;           ///< the folders' own order is their numbers, and there are fewer than classes
};

/// CIFAR's binary files: records of one label (cifar100: two, of which the second counts) and 3 x 32 x 32 bytes.
/// A folder stands for the training files in it.
class Cifar : public LabelledImages {
public:
  Cifar(int classes, const std::string &path, const Program &program, bool targets);

  int64_t samples() const override { return count; }
  std::vector<std::string> paths() const override;
  Image readImage(int input, int64_t sample) const override;
  std::string name(int input, int64_t sample) const override;

private:
  int64_t label(int64_t sample) const override;
  std::pair<const InputFile *, uint64_t> find(int64_t sample) const;

  const int labelBytes;
  std::vector<InputFile> files;
  std::vector<int64_t> begins; ///< first sample of each file
  int64_t count = 0;
};

/// MNIST's files PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte, with .gz or without.
class Idx : public LabelledImages {
public:
  Idx(const std::string &prefix, const Program &program, bool targets);

  int64_t samples() const override { return count; }
  std::vector<std::string> paths() const override;
  Image readImage(int input, int64_t sample) const override;
  std::string name(int input, int64_t sample) const override;

private:
  int64_t label(int64_t sample) const override;

  std::vector<InputFile> files; ///< images, then labels if they are wanted
  int64_t count = 0;
  int width = 0, height = 0;
};

} // namespace sluice
