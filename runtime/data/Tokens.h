// SPDX-License-Identifier: Apache-2.0
// A file of token ids without a header, cut into windows that follow one another, or begin every so many tokens: the
// input is a window, the target the same window one token later.
#pragma once

#include "runtime/data/Source.h"
#include "runtime/files/File.h"

namespace sluice {

class Tokens : public SampleSource {
public:
  /// `where` is FILE with ,stride=N or ,type=uint8|uint16|uint32|int32|int64 after it, or both. A .npy file of one
  /// dimension says its type itself. Without, ids are uint32 where the file ends in .u32.bin, uint16 where it ends in
  /// .u16.bin; else uint32 where the model knows more than 65536 of them, and a file that looks like anything else is a
  /// DataError. Low byte first.
  Tokens(const std::string &where, const Program &program, bool targets);

  int64_t samples() const override { return count; }
  std::vector<std::string> paths() const override { return {file.path()}; }
  void read(int input, int64_t sample, char *values) const override;
  std::string name(int input, int64_t sample) const override;
  /// How the ids are read.
  std::vector<std::string> notes() const override;

private:
  /// FILE,WORD=VALUE...
  struct Words {
    std::string path, stride, type;
    explicit Words(const std::string &where);
  };
  Tokens(const Words &words, const Program &program, bool targets);
  void checkProgram(bool targets);
  void chooseType(const std::string &said);

  const Program &program;
  InputFile file;
  int64_t window = 0, stride = 0, tokens = 0, count = 0;
  size_t width = 2; ///< bytes of an id
  bool isSigned = false;
  uint64_t begin = 0; ///< of the first id
};

} // namespace sluice
