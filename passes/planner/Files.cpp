// SPDX-License-Identifier: Apache-2.0
// Parsing of chain problems and packing problems.
#include "passes/planner/Files.h"

#include "passes/planner/Json.h"
#include "passes/planner/Words.h"
#include "runtime/Printable.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sstream>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice::planner {

using nlohmann::json;

static constexpr double largest = 1e30;
static constexpr size_t mostBytes = size_t{64} << 20;

/// Limited, since all of it is parsed in memory.
Result<std::string> readInput(const std::string &path) {
  // Without O_NONBLOCK a pipe that nobody writes would block here before its kind is known.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  auto fail = [&](const std::string &why) {
    if (file >= 0)
      close(file);
    return Error{why};
  };
  if (file < 0)
    return fail(std::strerror(errno));
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    return fail("not a regular file");
  std::string text;
  std::vector<char> piece(size_t{1} << 16);
  for (ssize_t got; (got = read(file, piece.data(), piece.size())) != 0;) {
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return fail(std::strerror(errno));
    text.append(piece.data(), static_cast<size_t>(got));
    if (text.size() > mostBytes)
      return fail("more than " + std::to_string(mostBytes) + " bytes");
  }
  close(file);
  return text;
}

/// The array under `key`; where it may be missing, so many zeros.
static std::vector<double> numbers(const json &root, const char *key, std::optional<size_t> ifMissing = {}) {
  if (!root.contains(key)) {
    if (ifMissing)
      return std::vector<double>(*ifMissing, 0.0);
    throw std::runtime_error(std::string("'") + key + "' is missing");
  }
  const json &array = root.at(key);
  if (!array.is_array())
    throw std::runtime_error(std::string("'") + key + "' is not an array");
  std::vector<double> values;
  for (const json &value : array) {
    if (!value.is_number())
      throw std::runtime_error(std::string("'") + key + "' entry " + std::to_string(values.size()) + " is " +
                               quoted(value) + ", not a number");
    values.push_back(value.get<double>());
  }
  return values;
}

/// A mistyped key would be taken for one that is missing, or not for anything.
static void checkKeys(const json &root) {
  static const std::vector<std::string> known = {"kind", "u_f",   "u_b", "x",         "y",     "ex_f",
                                                 "ex_b", "saved", "op",  "bandwidth", "memory"};
  for (const auto &[key, value] : root.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw std::runtime_error("key " + quoted(json(key)) + " is not known, there are " + listed(known));
}

static OpKind kindOf(const json &op, size_t index) {
  static const std::pair<const char *, OpKind> kinds[] = {
      {"conv", OpKind::Conv},         {"pool", OpKind::Pool}, {"relu", OpKind::Activation},
      {"act", OpKind::Activation},    {"bn", OpKind::Norm},   {"norm", OpKind::Norm},
      {"fc", OpKind::FullyConnected}, {"join", OpKind::Join}, {"concat", OpKind::Concat},
      {"dropout", OpKind::Dropout},   {"loss", OpKind::Loss}, {"softmax", OpKind::Loss},
      {"other", OpKind::Other}};
  std::vector<std::string> names;
  for (const auto &[known, kind] : kinds) {
    if (op == known)
      return kind;
    names.push_back(known);
  }
  throw std::runtime_error("'op' entry " + std::to_string(index) + " is " + quoted(op) +
                           (op.is_string() ? ", there are " + listed(names) : ", not a string"));
}

/// Throws what is wrong, with key and value; the last word is checkChain()'s.
static ChainFile readChain(const json &root) {
  if (!root.is_object())
    throw std::runtime_error("a problem must be an object");
  if (!root.contains("kind") || root.at("kind") != "chain")
    throw std::runtime_error("'kind' is " + (root.contains("kind") ? quoted(root.at("kind")) : "missing") +
                             ", 'chain' is supported");
  checkKeys(root);
  ChainFile file;
  Chain &c = file.chain;
  c.uF = numbers(root, "u_f");
  if (c.uF.size() > mostStages)
    throw std::runtime_error("'u_f' has " + std::to_string(c.uF.size()) + " entries, at most " +
                             std::to_string(mostStages) + " can be planned");
  c.uB = numbers(root, "u_b");
  c.x = numbers(root, "x");
  c.y = numbers(root, "y");
  c.exF = numbers(root, "ex_f", c.uF.size());
  c.exB = numbers(root, "ex_b", c.uF.size());
  c.saved = numbers(root, "saved", c.uF.size());
  if (!root.contains("bandwidth"))
    throw std::runtime_error("'bandwidth' is missing");
  c.bandwidth = numberOf(root.at("bandwidth"), "bandwidth", 0, largest);
  if (root.contains("memory"))
    file.memory = numberOf(root.at("memory"), "memory", 0, largest);
  if (root.contains("op")) {
    if (!root.at("op").is_array())
      throw std::runtime_error("'op' is not an array");
    for (const json &op : root.at("op"))
      c.kinds.push_back(kindOf(op, c.kinds.size()));
    if (c.kinds.size() != c.uF.size())
      throw std::runtime_error("'op' has " + std::to_string(c.kinds.size()) + " entries, " +
                               std::to_string(c.uF.size()) + " are needed");
  }
  if (Status status = checkChain(c); !status)
    throw std::runtime_error(status.error());
  return file;
}

Result<ChainFile> parseChain(const std::string &text) {
  try {
    return readChain(parseJson(text));
  } catch (const std::exception &e) {
    return Error{e.what()};
  }
}

static std::vector<std::string> cells(const std::string &line) {
  std::vector<std::string> found;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) {
    const size_t first = cell.find_first_not_of(" \t\r"), last = cell.find_last_not_of(" \t\r");
    found.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  if (!line.empty() && line.back() == ',')
    found.push_back("");
  return found;
}

static int64_t integer(const std::string &cell, const std::string &column, int line) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (code != std::errc() || end != cell.data() + cell.size())
    throw std::runtime_error("line " + std::to_string(line) + ": " + column + " is '" + cell +
                             "', not an integer of 64 bits");
  return value;
}

/// Answers are JSON and lines on a terminal.
static const std::string &identifier(const std::string &cell, int line) {
  if (printable(cell, cell.size() + 1) != cell)
    throw std::runtime_error("line " + std::to_string(line) + ": id '" + printable(cell) +
                             "' holds control characters or bytes that are no UTF-8");
  return cell;
}

/// Packing takes time that grows with the square of the items.
static constexpr size_t mostItems = 100'000;

/// Throws what is wrong, with the line. Other columns are passed over, and so are empty lines.
static std::vector<PackItem> readItems(const std::string &text) {
  std::istringstream stream(text);
  std::string line;
  if (!std::getline(stream, line))
    throw std::runtime_error("line 1: the header id,lower,upper,size is missing");
  const std::vector<std::string> header = cells(line);
  for (const char *needed : {"id", "lower", "upper", "size"})
    if (std::count(header.begin(), header.end(), needed) != 1)
      throw std::runtime_error(std::string("line 1: column '") + needed + "' must appear once in the header '" + line +
                               "'");
  std::vector<PackItem> items;
  std::set<std::string> ids;
  for (int number = 2; std::getline(stream, line); ++number) {
    const std::vector<std::string> row = cells(line);
    if (row.empty() || (row.size() == 1 && row[0].empty()))
      continue;
    if (row.size() != header.size())
      throw std::runtime_error("line " + std::to_string(number) + ": " + std::to_string(row.size()) +
                               " cells, the header has " + std::to_string(header.size()));
    PackItem item;
    for (size_t k = 0; k < row.size(); ++k) {
      if (header[k] == "id")
        item.id = identifier(row[k], number);
      else if (header[k] == "lower")
        item.lower = integer(row[k], "lower", number);
      else if (header[k] == "upper")
        item.upper = integer(row[k], "upper", number);
      else if (header[k] == "size")
        item.size = integer(row[k], "size", number);
      else if (header[k] == "alignment")
        item.alignment = integer(row[k], "alignment", number);
      else if (header[k] == "offset" && !row[k].empty())
        item.offset = integer(row[k], "offset", number);
      else if (header[k] == "high")
        item.high = integer(row[k], "high", number) != 0;
    }
    // Errors and answers name items by their ids.
    if (!ids.insert(item.id).second)
      throw std::runtime_error("line " + std::to_string(number) + ": id '" + item.id + "' appears twice");
    if (items.size() == mostItems)
      throw std::runtime_error("line " + std::to_string(number) + ": at most " + std::to_string(mostItems) +
                               " items can be packed");
    items.push_back(item);
  }
  if (Status status = checkItems(items); !status)
    throw std::runtime_error(status.error());
  return items;
}

Result<std::vector<PackItem>> parseItems(const std::string &text) {
  try {
    return readItems(text);
  } catch (const std::exception &e) {
    return Error{e.what()};
  }
}

} // namespace sluice::planner
