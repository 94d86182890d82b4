// SPDX-License-Identifier: Apache-2.0
// Which columns of a table are which input, which of them hold categories, and how numbers are standardized: what
// belongs to the weights that were trained on them.
#pragma once

#include "runtime/data/ClassNames.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// What the command line says of a table, and what training has found of its columns.
struct ColumnWords {
  std::vector<std::string> columns;     ///< --columns: NAME=REGEX, what of the model the columns are that match
  std::vector<std::string> categorical; ///< --categorical: REGEX
  bool standardize = false;             ///< --standardize
  std::string known;                    ///< TableColumns::known() of training; empty: it is found here
  bool trains = true;                   ///< else what is not known is an error

  bool any() const { return !columns.empty() || !categorical.empty() || standardize || !known.empty(); }
};

class TableColumns {
public:
  /// A column, as it becomes numbers of an input.
  struct Column {
    size_t index = 0; ///< in the file
    bool isCategory = false;
    std::vector<std::string> categories; ///< sorted
    double mean = 0, deviation = 1;
  };
  /// Calls it with the fields of each row that has as many as there are names.
  using EachRow = std::function<void(const std::function<void(const std::vector<std::string> &)> &)>;

  /// `names`: of the file's columns. Throws DataError where they do not fit the program, UsageError for words that make
  /// no sense. Without `targets` the target's columns may be missing.
  TableColumns(const ColumnWords &words, const std::vector<std::string> &names, const Program &program, bool targets,
               const std::string &path, const EachRow &rows);

  const std::vector<Column> &of(int input) const { return inputs[static_cast<size_t>(input)]; }
  /// As JSON: the words, which columns are whose in which order, each one's mean and deviation, and categories. Empty
  /// where nothing was said of columns.
  std::string known() const;
  /// The categories of targets that are one class each.
  ClassNames classNames(const Program &program) const;

private:
  void choose(const Program &program, bool targets);
  void find(const EachRow &rows, const Program &program);
  void take(const Program &program, bool targets);
  void noteUnmatched(const std::string &flag, const std::string &pattern);
  void checkCategories(const Program &program) const;
  void checkWidths(const Program &program, bool targets) const;
  bool isFound(const Column &column, const Program &program, int input) const;

  ColumnWords words;
  const std::vector<std::string> &names;
  const std::string path;
  std::vector<std::vector<Column>> inputs; ///< of the program
  std::vector<std::string> inputNames;
  std::string unmatched; ///< parts of expressions that match no column, for messages
};

/// Throws DataError naming `what` for a text that known() cannot have written.
void checkKnownColumns(const std::string &known, const std::string &what);

} // namespace sluice
