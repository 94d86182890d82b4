// SPDX-License-Identifier: Apache-2.0
// Texts as tokens that a model goes on with: beginnings from a file, and what was added to them.
#pragma once

#include "runtime/program/Dataset.h"

#include <memory>
#include <string>
#include <vector>

namespace sluice {

/// Where a program has tokens: the input of ids [batch, tokens], and the output [batch, tokens, words] that scores for
/// each the one after it.
struct TokenPlaces {
  int ids = -1;            ///< index of the input
  int output = -1;         ///< index in predictedBy()
  int64_t longest = 0;     ///< tokens of the largest shape
  int64_t words = 0;       ///< ids that there are both in the input and in the output
  std::vector<int> beside; ///< other inputs [batch, tokens] that predictions depend on: masks, positions
};

/// Throws UsageError for a program that has no such places, or no function for them.
TokenPlaces tokenPlaces(const Program &program, const Entry &entry);

/// Why a text gets no more tokens.
enum class Ending { None, Stop, Tokens, Full };

class Prompts {
public:
  /// Reads all of a file of lines, JSON objects as --data jsonl: has them, without targets. Throws DataError for a
  /// prompt that is empty, no list, longer than the program's tokens or with ids that there are not, naming its line,
  /// UsageError for a program without places of tokens. `options` is what the command line says of data in general.
  Prompts(const std::string &path, const DataOptions &options, const Program &program, const TokenPlaces &places);

  size_t size() const { return list.size(); }
  const std::string &path() const { return file; }
  /// Tokens of one: how many there are now, how many the file has, and those.
  int64_t length(size_t prompt) const { return list[prompt].length; }
  int64_t given(size_t prompt) const { return list[prompt].given; }
  std::vector<int64_t> ids(size_t prompt, int64_t first, int64_t end) const;

  /// What an input has for a token that there is: to[0, byteWidth of its type).
  void copyValue(size_t prompt, int input, int64_t place, char *to) const;

  /// One token more. Inputs beside go on as their lists do, which may be longer than the prompt; where they end, by the
  /// difference of their last two values.
  void append(size_t prompt, int64_t id);

  /// Those prompts, as they are now, as a data set whose samples stand in the same order. `fill`: the id that fills up
  /// what is behind them, where it is not what --pad says. The prompts must outlive it and stay as they are.
  std::unique_ptr<Dataset> dataset(const std::vector<size_t> &prompts, std::optional<int64_t> fill = {}) const;
  /// The id that fills up.
  int64_t fill() const;

private:
  struct Prompt {
    std::string name;
    int64_t length = 0, given = 0;
    std::vector<Shape> shapes; ///< of its inputs as the file has them
    std::vector<std::vector<char>> values;
  };
  class Source;

  void take(const SampleSource &source, int64_t sample);
  void check(const Prompt &prompt) const;
  bool hasTokens(int input) const;

  const std::string file;
  DataOptions options;
  const Program &program;
  const TokenPlaces places;
  std::vector<Prompt> list;
};

} // namespace sluice
