// SPDX-License-Identifier: Apache-2.0
// WebDataset: tar files whose members 0001.jpg (or .jpeg, .png) and 0001.cls, one after the other, are a sample.
#pragma once

#include "runtime/data/LabelledImages.h"
#include "runtime/data/Skipped.h"

namespace sluice {

class Shards : public LabelledImages {
public:
  /// A tar file, or a folder whose .tar files are taken in the order of their names. Their members' places are looked
  /// up here, so that samples have numbers.
  Shards(const std::string &path, const Program &program, bool targets, bool skip, Tell tell = nullptr);

  int64_t samples() const override { return static_cast<int64_t>(members.size()); }
  std::vector<std::string> paths() const override;
  Image readImage(int input, int64_t sample) const override;
  std::string name(int input, int64_t sample) const override;
  std::vector<int64_t> begins() const override { return firsts; }

private:
  struct Member {
    uint64_t offset;
    uint32_t bytes, file;
    int64_t label;
  };
  struct Sample;
  int64_t label(int64_t sample) const override { return members[static_cast<size_t>(sample)].label; }
  void addFile(const std::string &path);
  void addMember(Sample &sample, const std::string &name, uint64_t offset, uint64_t bytes);
  void endSample(Sample &sample);

  const bool skip;
  Skipped skipped;
  std::vector<InputFile> files;
  std::vector<int64_t> firsts; ///< sample of each file
  std::vector<Member> members;
};

} // namespace sluice
