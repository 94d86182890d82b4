// SPDX-License-Identifier: Apache-2.0
// Samples of many lengths: a file with a JSON object a line, which has a number or a list of numbers for each input.
#pragma once

#include "runtime/data/Source.h"
#include "runtime/files/File.h"

namespace sluice {

class JsonLines : public SampleSource {
public:
  /// Reads the whole file once. Throws DataError for a line that is no such object, naming it.
  JsonLines(const std::string &path, const Program &program, bool targets);

  int64_t samples() const override { return static_cast<int64_t>(lines.size()); }
  std::vector<std::string> paths() const override { return {file.path()}; }
  std::optional<Shape> shapeOf(int input, int64_t sample) const override;
  void read(int input, int64_t sample, char *values) const override;
  std::string name(int input, int64_t sample) const override;

private:
  struct Line {
    uint64_t begin;
    uint32_t bytes;
    uint32_t number; ///< from 1 on
  };
  void addLine(uint64_t begin, const std::string &text, uint32_t number);
  bool isRead(int input) const { return targets || isPredictedFrom(program, input); }
  std::string where(uint32_t line) const;

  const Program &program;
  const bool targets;
  InputFile file;
  std::vector<Line> lines;
  std::vector<uint32_t> lengths; ///< of each line, those of all inputs; `scalar` for a number
};

} // namespace sluice
