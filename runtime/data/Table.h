// SPDX-License-Identifier: Apache-2.0
// A CSV file: a line of names, if it has one, then a line of numbers for each sample, separated by commas.
#pragma once

#include "runtime/data/Source.h"
#include "runtime/files/File.h"

namespace sluice {

class Table : public SampleSource {
public:
  /// `where`: FILE, with ,header=yes or ,header=no after it where the first line does not say itself whether it is one
  /// of names. The target is the column `target`, else the last one; the others are the input's elements in their
  /// order. Without `targets` the file may lack it. What `options.columns` say
  /// counts instead. Throws DataError when the columns do not fit the program.
  Table(const std::string &where, const Program &program, const SourceOptions &options);

  int64_t samples() const override { return static_cast<int64_t>(begins.size()); }
  std::vector<std::string> paths() const override { return {file.path()}; }
  void read(int input, int64_t sample, char *values) const override;
  std::string name(int input, int64_t sample) const override;
  std::vector<std::string> notes() const override;
  ClassNames classNames() const override { return columns->classNames(program); }
  std::string knownColumns() const override { return columns->known(); }

private:
  void readHeader(const std::string &said);
  void findLines();
  void chooseColumns(const ColumnWords &words, bool targets);
  std::string line(uint64_t begin) const;

  const Program &program;
  InputFile file;
  std::vector<uint64_t> begins; ///< of the samples' lines, in the file
  std::vector<std::string> names;
  bool hasHeader = true;
  std::optional<TableColumns> columns;
  const bool keepNan;
  const std::string hint; ///< what leaves out a row that is refused; empty: they are left out
};

} // namespace sluice
