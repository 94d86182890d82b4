// SPDX-License-Identifier: Apache-2.0
// Deviations are those of the whole table (division by the number of rows), as scikit-learn's StandardScaler has them.

#include "runtime/data/TableColumns.h"

#include "runtime/Errors.h"
#include "runtime/Numbers.h"
#include "runtime/Printable.h"
#include "runtime/data/Source.h"
#include "runtime/files/NamePattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace sluice {

using Json = nlohmann::json;

static constexpr size_t mostCategories = 1 << 16, longestCategory = 1000, mostBytes = size_t{1} << 22;

namespace {

/// NAME=REGEX.
struct Chosen {
  int input;
  std::regex pattern;
};

Chosen chosenBy(const std::string &word, const Program &program) {
  const size_t equals = word.find('=');
  std::string known;
  for (int i = 0; i < program.inputCount && equals != std::string::npos; ++i) {
    if (word.compare(0, equals, program.inputs[i].name) == 0)
      return {i, namePattern(word.substr(equals + 1), text("--columns '", word, "'"))};
    known += text(known.empty() ? "" : ", ", program.inputs[i].name);
  }
  throw UsageError(text("--columns expects NAME=REGEX with the name of an input", known.empty() ? "" : " (", known,
                        known.empty() ? "" : ")", ", got '", word, "'"));
}

std::vector<std::string> stringsOf(const Json &json, const std::string &what) {
  std::vector<std::string> list;
  if (!json.is_array())
    throw DataError(text(what, " is damaged"));
  for (const Json &one : json) {
    if (!one.is_string() || one.get_ref<const std::string &>().size() > longestCategory ||
        list.size() >= mostCategories)
      throw DataError(text(what, " is damaged"));
    list.push_back(one.get<std::string>());
  }
  return list;
}

/// What known() wrote, checked.
struct Known {
  std::vector<std::string> columns, categorical;
  bool standardize = false;
  std::map<std::string, std::pair<double, double>> numbers;
  std::map<std::string, std::vector<std::string>> categories, order; ///< order: columns of each input

  Known(const std::string &bytes, const std::string &what) {
    const Json json = bytes.size() > mostBytes ? Json() : Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
    const auto damaged = [&] { return DataError(text(what, " is damaged")); };
    if (!json.is_object() || !json.contains("columns") || !json.contains("categorical") ||
        !json.value("standardize", Json()).is_boolean() || !json.value("numbers", Json()).is_object() ||
        !json.value("categories", Json()).is_object() || !json.value("order", Json()).is_object())
      throw damaged();
    columns = stringsOf(json["columns"], what);
    categorical = stringsOf(json["categorical"], what);
    standardize = json["standardize"].get<bool>();
    for (const auto &[name, pair] : json["numbers"].items()) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number() ||
          !std::isfinite(pair[0].get<double>()) || !(pair[1].get<double>() > 0))
        throw damaged();
      numbers[name] = {pair[0].get<double>(), pair[1].get<double>()};
    }
    for (const auto &[name, list] : json["categories"].items())
      categories[name] = stringsOf(list, what);
    for (const auto &[name, list] : json["order"].items())
      order[name] = stringsOf(list, what);
  }
};

bool isFloat(const Program &program, int input) { return program.inputs[input].staging.type == DataType::F32; }

} // namespace

void checkKnownColumns(const std::string &known, const std::string &what) { Known{known, what}; }

TableColumns::TableColumns(const ColumnWords &given, const std::vector<std::string> &names, const Program &program,
                           bool targets, const std::string &path, const EachRow &rows)
    : words(given), names(names), path(path), inputs(static_cast<size_t>(program.inputCount)) {
  for (int i = 0; i < program.inputCount; ++i)
    inputNames.push_back(program.inputs[i].name);
  if (!words.known.empty()) {
    const Known known(words.known, "what the weights say of columns");
    if ((!words.columns.empty() && words.columns != known.columns) ||
        (!words.categorical.empty() && words.categorical != known.categorical) ||
        (words.standardize && !known.standardize))
      throw UsageError("--columns, --categorical and --standardize are those that the weights were trained with, which "
                       "they bring along; to train anew start without --resume and --init");
    words.columns = known.columns, words.categorical = known.categorical, words.standardize = known.standardize;
  }
  if (words.any() && std::set<std::string>(names.begin(), names.end()).size() != names.size())
    throw DataError(text(path, " has two columns of one name"));
  if (words.known.empty()) {
    choose(program, targets);
    find(rows, program);
  } else {
    take(program, targets);
  }
  checkCategories(program);
  checkWidths(program, targets);
}

/// Of an expression A|B|C the parts that match no column: names that are misspelt.
void TableColumns::noteUnmatched(const std::string &flag, const std::string &pattern) {
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= pattern.size(); ++at) {
    const char c = at < pattern.size() ? pattern[at] : '|';
    if (c == '\\') {
      ++at;
      continue;
    }
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c != '|' || depth != 0)
      continue;
    const std::string part = pattern.substr(begin, at - begin);
    begin = at + 1;
    if (part.empty())
      continue;
    const std::regex expression = namePattern(part, text(flag, " '", part, "'"));
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string &name) { return std::regex_match(name, expression); }))
      unmatched += text(unmatched.empty() ? "" : ", ", flag, " '", part, "'");
  }
}

/// A column is what the first word that matches it says.
void TableColumns::choose(const Program &program, bool targets) {
  std::vector<Chosen> chosen;
  for (const std::string &word : words.columns)
    chosen.push_back(chosenBy(word, program));
  for (const std::string &word : words.columns)
    noteUnmatched("--columns", word.substr(word.find('=') + 1));
  std::vector<std::regex> categorical;
  for (const std::string &word : words.categorical) {
    categorical.push_back(namePattern(word, text("--categorical '", word, "'")));
    noteUnmatched("--categorical", word);
    if (targets && std::none_of(names.begin(), names.end(),
                                [&](const std::string &name) { return std::regex_match(name, categorical.back()); }))
      throw DataError(text(path, ": --categorical '", word, "' matches no column, but ", someOf(names)));
  }
  std::vector<bool> used(chosen.size());
  const int last = program.inputCount - 1;
  const bool isNamed = std::count(names.begin(), names.end(), "target") > 0,
             isLast = !isNamed && ((targets && isTarget(program, last)) ||
                                   static_cast<int64_t>(names.size()) == sampleElements(program.inputs[0]) + 1);
  for (size_t i = 0; i < names.size(); ++i) {
    int input = -1;
    for (size_t w = 0; w < chosen.size() && input < 0; ++w)
      if (std::regex_match(names[i], chosen[w].pattern)) {
        input = chosen[w].input;
        used[w] = true;
      }
    if (chosen.empty()) { // the target is called so or is the last
      const bool here = isNamed ? names[i] == "target" : isLast && i + 1 == names.size();
      input = !here ? 0 : isTarget(program, last) ? last : -1;
    }
    if (input < 0)
      continue;
    Column column;
    column.index = i;
    for (const std::regex &pattern : categorical)
      column.isCategory |= std::regex_match(names[i], pattern);
    inputs[static_cast<size_t>(input)].push_back(column);
  }
  for (size_t w = 0; w < chosen.size(); ++w)
    if (!used[w] && (targets || isPredictedFrom(program, chosen[w].input)))
      throw DataError(text(path, ": --columns '", words.columns[w], "' matches no column, but ", someOf(names)));
}

/// Numbers of inputs are standardized, those of targets are what they are.
bool TableColumns::isFound(const Column &column, const Program &program, int input) const {
  return column.isCategory || (words.standardize && isFloat(program, input) && isPredictedFrom(program, input));
}

void TableColumns::find(const EachRow &rows, const Program &program) {
  struct Sums {
    int64_t count = 0;
    double mean = 0, squares = 0; // Welford 1962
    std::set<std::string> categories;
  };
  std::map<size_t, Sums> sums;
  bool any = false;
  for (int i = 0; i < program.inputCount; ++i)
    for (const Column &column : of(i))
      any |= isFound(column, program, i);
  if (!any)
    return;
  if (!words.trains)
    throw UsageError("what categories there are, and means and deviations, are found when training; go on from weights "
                     "that know them, with --resume or --init");
  rows([&](const std::vector<std::string> &row) {
    for (int i = 0; i < program.inputCount; ++i)
      for (const Column &column : of(i)) {
        Sums &sum = sums[column.index];
        const std::string &field = row[column.index];
        if (column.isCategory && !field.empty() && field.size() <= longestCategory)
          sum.categories.insert(field);
        if (sum.categories.size() > mostCategories)
          throw DataError(
              text(path, ": column '", names[column.index], "' has more than ", mostCategories, " categories"));
        double value = 0;
        if (column.isCategory || !parseNumber(field, value) || !std::isfinite(value))
          continue;
        const double distance = value - sum.mean;
        sum.mean += distance / static_cast<double>(++sum.count);
        sum.squares += distance * (value - sum.mean);
      }
  });
  for (int i = 0; i < program.inputCount; ++i)
    for (Column &column : inputs[static_cast<size_t>(i)]) {
      const Sums &sum = sums[column.index];
      column.categories.assign(sum.categories.begin(), sum.categories.end());
      if (!isFound(column, program, i) || column.isCategory || sum.count == 0)
        continue;
      column.mean = sum.mean;
      const double deviation = std::sqrt(sum.squares / static_cast<double>(sum.count));
      column.deviation = deviation > 0 && std::isfinite(deviation) ? deviation : 1;
    }
  if (known().size() > mostBytes)
    throw DataError(text(path, ": the names of its columns and categories are more than ", mostBytes,
                         " bytes, too many to be kept with weights"));
}

/// The columns of training, in its order, wherever they are in this file.
void TableColumns::take(const Program &program, bool targets) {
  const Known known(words.known, "what the weights say of columns");
  for (int i = 0; i < program.inputCount; ++i) {
    const auto order = known.order.find(program.inputs[i].name);
    if (order == known.order.end() || (!targets && !isPredictedFrom(program, i)))
      continue;
    for (const std::string &name : order->second) {
      const auto place = std::find(names.begin(), names.end(), name);
      if (place == names.end())
        throw DataError(text(path, " has no column '", name, "', which the weights were trained with"));
      Column column;
      column.index = static_cast<size_t>(place - names.begin());
      const auto categories = known.categories.find(name);
      const auto numbers = known.numbers.find(name);
      if ((column.isCategory = categories != known.categories.end()))
        column.categories = categories->second;
      else if (isFound(column, program, i) && numbers != known.numbers.end())
        std::tie(column.mean, column.deviation) = numbers->second;
      inputs[static_cast<size_t>(i)].push_back(column);
    }
  }
}

/// Ids are places in a table of the model, which has so many rows.
void TableColumns::checkCategories(const Program &program) const {
  for (int i = 0; i < program.inputCount; ++i)
    for (const Column &column : of(i)) {
      const int64_t most = program.inputs[i].upperBound;
      if (column.isCategory && !isFloat(program, i) && most > 0 &&
          static_cast<int64_t>(column.categories.size()) > most)
        throw DataError(text(path, ": column '", names[column.index], "' has ", column.categories.size(),
                             " categories (", someOf(column.categories), "), '", program.inputs[i].name, "' takes ",
                             most, ": the model needs a table, or outputs, for as many",
                             of(i).size() > 1 ? "; of several tables that one input indexes the smallest bounds all "
                                                "its columns: export an input for each table"
                                              : ""));
    }
}

/// Of a category a float input has a number for each (1 or 0), an integer one its place among the sorted ones.
void TableColumns::checkWidths(const Program &program, bool targets) const {
  for (int i = 0; i < program.inputCount; ++i) {
    if (!targets && !isPredictedFrom(program, i))
      continue;
    int64_t width = 0;
    std::string list;
    std::vector<std::string> taken;
    for (const Column &column : of(i)) {
      taken.push_back(names[column.index]);
      const bool spread = column.isCategory && isFloat(program, i);
      width += spread ? static_cast<int64_t>(column.categories.size()) : 1;
      if (spread)
        list +=
            text(list.empty() ? " (" : ", ", column.categories.size(), " categories of '", names[column.index], "'");
    }
    if (width != sampleElements(program.inputs[i]))
      throw DataError(text(path, " has ", width, width == 1 ? " number" : " numbers", list, list.empty() ? "" : ")",
                           " for '", program.inputs[i].name, "', which takes ", sampleElements(program.inputs[i]),
                           taken.empty() ? "" : text("; its columns are ", someOf(taken)),
                           unmatched.empty() ? "" : text("; no column matches ", unmatched),
                           "; --columns NAME=REGEX says which columns are which input's"));
  }
}

std::string TableColumns::known() const {
  if (!words.any())
    return "";
  Json numbers = Json::object(), categories = Json::object(), order = Json::object();
  for (size_t i = 0; i < inputs.size(); ++i)
    for (const Column &column : inputs[i]) {
      order[inputNames[i]].push_back(names[column.index]);
      if (column.isCategory)
        categories[names[column.index]] = column.categories;
      else if (words.standardize)
        numbers[names[column.index]] = {column.mean, column.deviation};
    }
  return Json{{"columns", words.columns}, {"categorical", words.categorical}, {"standardize", words.standardize},
              {"numbers", numbers},       {"categories", categories},         {"order", order}}
      .dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

ClassNames TableColumns::classNames(const Program &program) const {
  ClassNames names;
  for (int i = 0; i < program.inputCount; ++i)
    if (isTarget(program, i) && !isFloat(program, i) && of(i).size() == 1 && !of(i)[0].categories.empty())
      names[classesKey(program, i)] = of(i)[0].categories;
  return names;
}

} // namespace sluice
