// SPDX-License-Identifier: Apache-2.0
// --generate: what a model that scores the next token adds to prompts, one token after the other.
#pragma once

#include "runtime/program/Arguments.h"
#include "runtime/program/Log.h"
#include "runtime/program/Prompts.h"
#include "runtime/program/Sampling.h"

#include <string>
#include <vector>

namespace sluice {

/// What the command line says of it.
struct Generation {
  /// Throws UsageError for values that make no sense.
  explicit Generation(const Arguments &arguments);

  Sampling sampling;
  int64_t tokens = 128;       ///< that a prompt gets at most
  std::vector<int64_t> stops; ///< ids that end a text, and are no part of it
};

/// Throws UsageError for a program without places of tokens, and for stops that it never answers.
void requireTokens(const Arguments &arguments, const Program &program, const Entry &entry);

/// Goes on with all prompts until each has an end, and writes a JSON object a line in their order: `answer`, the ids
/// that were added, `ended` ("stop", "tokens": as many as asked for, "full": the program takes no more), and the ids of
/// the prompt under the input's name. The file appears when it is whole; nothing is left when a signal that
/// InterruptGuard notes ended it. The log has an event for each token. Each token is one evaluation in the smallest
/// shape that holds the text, and depends on seed, prompt and its number alone, not on what else there is. `seed`: of
/// the run, where --seed says none. Throws UsageError for a model whose scores change with what follows a token,
/// DataError for ids that it takes and has not.
void generate(const Arguments &arguments, Session &session, const Program &program, const Entry &entry,
              Prompts &prompts, uint64_t seed, Log &log);

/// What a file of answers begins with.
inline constexpr char answersMark[] = "{\"answer\": [";

} // namespace sluice
