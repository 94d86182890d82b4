// SPDX-License-Identifier: Apache-2.0
// Of the lines only their begins are kept; numbers are read when their sample is.

#include "runtime/data/Table.h"

#include "runtime/Errors.h"
#include "runtime/Numbers.h"
#include "runtime/Printable.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice {

static constexpr size_t longestLine = size_t{1} << 20;

/// The fields of a line; one in quotes may have commas, and quotes that are doubled.
static std::vector<std::string> fields(const std::string &line) {
  std::vector<std::string> list(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      list.back() += line[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      list.emplace_back();
    else
      list.back() += c;
  }
  for (std::string &field : list) {
    const size_t begin = field.find_first_not_of(" \t"), end = field.find_last_not_of(" \t");
    field = begin == std::string::npos ? "" : field.substr(begin, end - begin + 1);
  }
  return list;
}

static constexpr char headerWord[] = ",header=";

/// FILE of FILE,header=yes|no.
static std::string fileOf(const std::string &where) { return where.substr(0, where.rfind(headerWord)); }

Table::Table(const std::string &where, const Program &program, const SourceOptions &options)
    : program(program), file(fileOf(where)), keepNan(options.keepNan),
      hint(options.skipBad ? "" : "; --on-bad-data=skip leaves such rows out") {
  const std::string said = file.path() == where ? "" : where.substr(file.path().size() + std::strlen(headerWord));
  if (said != "yes" && said != "no" && file.path() != where)
    throw UsageError(text("csv:", where, ": header=yes or header=no, got '", said, "'"));
  findLines();
  if (begins.empty())
    throw DataError(text(file.path(), ": an empty file"));
  readHeader(said);
  chooseColumns(options.columns, options.targets);
}

static bool isNumber(const std::string &field) {
  double value = 0;
  return parseNumber(field, value);
}

/// 0, 1, 2...: what programs that number the columns write as names.
static bool countsUp(const std::vector<std::string> &row) {
  for (size_t i = 0; i < row.size(); ++i)
    if (double value = -1; !parseNumber(row[i], value) || value != static_cast<double>(i))
      return false;
  return row.size() > 1;
}

/// A first line without any number has names, one of numbers alone is a sample; of others the user has to say it.
void Table::readHeader(const std::string &said) {
  std::string first = line(begins[0]);
  if (first.compare(0, 3, "\xef\xbb\xbf") == 0) { // a mark of UTF-8
    first.erase(0, 3);
    begins[0] += 3;
  }
  names = fields(first);
  for (const auto &[separator, what] : {std::pair{';', "semicolons"}, {'\t', "tabs"}})
    if (names.size() == 1 && std::count(first.begin(), first.end(), separator) > 0)
      throw DataError(text(file.path(), ": the first line, '", first.substr(0, 60), first.size() > 60 ? "..." : "",
                           "', has ", what,
                           " and no commas, which separate the fields of csv: write it anew with "
                           "commas, and numbers with decimal points (in pandas: read_csv(NAME, sep='",
                           separator == ';' ? ";" : "\\t", "', decimal=',').to_csv(NAME, index=False))"));
  const auto numbers = static_cast<size_t>(std::count_if(names.begin(), names.end(), isNumber));
  if (said.empty() && ((numbers > 0 && numbers < names.size()) || countsUp(names)))
    throw DataError(text(file.path(), ": the first line, '", first.substr(0, 60), first.size() > 60 ? "..." : "",
                         "', may name the columns or be a sample: say which, csv:", file.path(), headerWord,
                         "yes or csv:", file.path(), headerWord, "no"));
  hasHeader = said.empty() ? numbers == 0 : said == "yes";
  if (hasHeader) {
    begins.erase(begins.begin());
    return;
  }
  for (size_t i = 0; i < names.size(); ++i)
    names[i] = std::to_string(i + 1);
}

std::vector<std::string> Table::notes() const {
  if (hasHeader)
    return {};
  const bool hasTarget = isTarget(program, program.inputCount - 1) && !columns->of(program.inputCount - 1).empty();
  return {text(file.path(), " names no columns: its first line is a sample, ",
               hasTarget ? "the last column" : "no column", " the target")};
}

/// Of all lines that have more than blanks.
void Table::findLines() {
  std::vector<char> piece(1 << 20);
  uint64_t begin = 0;
  bool blank = true;
  for (uint64_t at = 0; at < file.size(); at += piece.size()) {
    const size_t bytes = std::min<uint64_t>(piece.size(), file.size() - at);
    file.readAt(at, piece.data(), bytes);
    for (size_t i = 0; i < bytes; ++i)
      if (piece[i] == '\n') {
        begin = at + i + 1;
        blank = true;
      } else if (blank && piece[i] != ' ' && piece[i] != '\t' && piece[i] != '\r') {
        begins.push_back(begin);
        blank = false;
      }
  }
}

std::string Table::line(uint64_t begin) const {
  std::string text(std::min<uint64_t>(256, file.size() - begin), '\0');
  file.readAt(begin, text.data(), text.size());
  while (text.find('\n') == std::string::npos && begin + text.size() < file.size()) {
    if (text.size() >= longestLine)
      throw DataError(
          ::sluice::text(file.path(), ": the line at byte ", begin, " is longer than ", longestLine, " bytes"));
    const size_t known = text.size();
    text.resize(known + std::min<uint64_t>(known, file.size() - begin - known));
    file.readAt(begin + known, text.data() + known, text.size() - known);
  }
  text.resize(std::min(text.find('\n'), text.size()));
  if (!text.empty() && text.back() == '\r')
    text.pop_back();
  return text;
}

void Table::chooseColumns(const ColumnWords &words, bool targets) {
  const bool single = program.inputCount == 1 || (program.inputCount == 2 && isTarget(program, 1));
  if (words.columns.empty() && words.known.empty() && !single)
    throw DataError(text("csv: this program takes ", takenBy(program), ": say which columns are whose, ",
                         "--columns NAME=REGEX for each"));
  columns.emplace(words, names, program, targets, file.path(), [&](const auto &take) {
    for (size_t i = 0; i < begins.size(); ++i)
      if (const std::vector<std::string> row = fields(line(begins[i])); row.size() == names.size())
        take(row);
  });
}

/// A whole number, also as programs write it that have floats only: 1.0.
static bool parseWhole(const std::string &field, int64_t &number) {
  constexpr double exact = 9007199254740992; // 2^53
  double value = 0;
  if (parseNumber(field, number))
    return true;
  if (!parseNumber(field, value) || std::trunc(value) != value || std::abs(value) > exact)
    return false;
  number = static_cast<int64_t>(value);
  return true;
}

/// What is no number on purpose: nothing, or a word for it.
static bool isNan(const std::string &field) {
  double value = 0;
  return field.empty() || (parseNumber(field, value) && std::isnan(value)) || field == "NA" || field == "N/A";
}

void Table::read(int input, int64_t sample, char *values) const {
  const std::vector<std::string> row = fields(line(begins[static_cast<size_t>(sample)]));
  if (row.size() != names.size())
    throw DataError(text(name(input, sample), " has ", row.size(), " fields, the first line has ", names.size(), hint));
  const bool whole = program.inputs[input].staging.type == DataType::I64;
  const auto store = [&](auto value) {
    std::memcpy(values, &value, sizeof value);
    values += sizeof value;
  };
  for (const TableColumns::Column &column : columns->of(input)) {
    const std::string &field = row[column.index];
    const auto bad = [&](const std::string &what) {
      return DataError(
          text(name(input, sample), ": column '", names[column.index], "' holds '", field.substr(0, 40), "', ", what));
    };
    const std::string takes =
        text("input '", program.inputs[input].name, "' takes ", whole ? "whole" : "finite", " numbers");
    if (column.isCategory) {
      const auto place = std::lower_bound(column.categories.begin(), column.categories.end(), field);
      if (place == column.categories.end() || *place != field)
        throw bad((field.empty() ? "an empty field is no category"
                                 : "which is no category of the training data: " + someOf(column.categories)) +
                  hint);
      if (whole)
        store(static_cast<int64_t>(place - column.categories.begin()));
      for (auto one = column.categories.begin(); one != column.categories.end() && !whole; ++one)
        store(one == place ? 1.0f : 0.0f);
    } else if (int64_t number = 0; whole) {
      if (!parseWhole(field, number))
        throw bad(takes + hint);
      store(number);
    } else {
      float value = 0;
      double exact = 0;
      const bool isNumber = parseNumber(field, value) && std::isfinite(value) && parseNumber(field, exact);
      if (!isNumber && !isNan(field))
        throw bad(takes + hint);
      const bool target = isTarget(program, input); // no loss can be told from one without a number
      if (!isNumber && (!keepNan || target))
        throw bad(takes + hint + (hint.empty() || target ? "" : ", --on-bad-data=keep takes NaN"));
      if (!isNumber)
        value = std::nanf(""), exact = std::nan("");
      const bool plain = column.mean == 0 && column.deviation == 1;
      store(plain ? value : static_cast<float>((exact - column.mean) / column.deviation));
    }
  }
}

std::string Table::name(int, int64_t sample) const { return text(file.path(), ": row ", sample + 1); }

} // namespace sluice
