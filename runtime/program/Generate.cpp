// SPDX-License-Identifier: Apache-2.0
// Rounds: in each one every text that has no end yet gets a token, texts of one shape together.

#include "runtime/program/Generate.h"

#include "runtime/Errors.h"
#include "runtime/Numbers.h"
#include "runtime/Printable.h"
#include "runtime/Random.h"
#include "runtime/files/OutputFile.h"
#include "runtime/program/Forward.h"
#include "runtime/program/Interrupt.h"
#include "runtime/program/Predict.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace sluice {

Generation::Generation(const Arguments &arguments) {
  const bool draws = arguments.temperature || arguments.topK || arguments.topP;
  sampling.temperature = arguments.temperature.value_or(draws ? 1 : 0);
  sampling.topK = arguments.topK.value_or(0);
  sampling.topP = arguments.topP.value_or(1);
  tokens = arguments.tokens.value_or(tokens);
  if (sampling.topP <= 0 || sampling.topP > 1)
    throw UsageError(text("--top-p expects a number above 0, and 1 at most, got ", sampling.topP));
  if (arguments.temperature && *arguments.temperature == 0 && (arguments.topK || arguments.topP))
    throw UsageError("--temperature 0 takes the likeliest token, which leaves --top-k and --top-p nothing to choose");
  for (const std::string &word : arguments.stops)
    if (int64_t id = 0; parseNumber(word, id) && id >= 0)
      stops.push_back(id);
    else
      throw UsageError(text("--stop expects the id of a token, got '", word, "'"));
}

void requireTokens(const Arguments &arguments, const Program &program, const Entry &entry) {
  const int64_t words = tokenPlaces(program, entry).words;
  for (const int64_t stop : Generation(arguments).stops)
    if (stop >= words)
      throw UsageError(text("--stop ", stop, ": the program tells tokens from 0 to ", words - 1));
}

namespace {

class Generator {
public:
  Generator(Session &session, const Program &program, const Entry &entry, Prompts &prompts, const Generation &how,
            uint64_t seed, Log &log)
      : session(session), program(program), entry(entry), prompts(prompts), how(how), log(log),
        places(tokenPlaces(program, entry)), key(nameKey("generate")), seed(seed), endings(prompts.size()) {
    for (const Program &shape : shapesOf(program))
      extents.push_back(shape.inputs[places.ids].staging.shape[1]);
  }

  /// False when it was interrupted.
  bool run() {
    for (std::vector<size_t> open; !(open = openOnes()).empty();)
      if (!round(open))
        return false;
    return true;
  }
  std::string answers() const;
  int64_t tokensDone() const { return done; }

private:
  std::vector<size_t> openOnes() const;
  bool round(const std::vector<size_t> &open);
  /// What was computed of a text with something behind it.
  struct Seen {
    ForwardBatch batch;
    int64_t row = 0, place = 0; ///< of its last token
    std::vector<float> scores;
  };
  bool checkCausal(const std::vector<size_t> &open, const Seen &seen);
  void scoresOf(const Program &shape, int64_t row, int64_t place, std::vector<float> &scores);
  int64_t choose(size_t prompt, const std::vector<float> &scores) const;
  void take(size_t prompt, int64_t id);

  Session &session;
  const Program &program;
  const Entry &entry;
  Prompts &prompts;
  const Generation how;
  Log &log;
  const TokenPlaces places;
  const uint64_t key, seed;
  std::vector<Ending> endings;  ///< of each prompt
  std::vector<int64_t> extents; ///< tokens of each shape
  bool isCausal = false;        ///< as far as it was seen
  int64_t done = 0;
};

/// Those of one shape together; within a shape in the order of the file.
std::vector<size_t> Generator::openOnes() const {
  std::vector<size_t> open;
  for (size_t i = 0; i < endings.size(); ++i)
    if (endings[i] == Ending::None)
      open.push_back(i);
  const auto shapeOf = [&](size_t prompt) {
    return std::lower_bound(extents.begin(), extents.end(), prompts.length(prompt)) - extents.begin();
  };
  std::stable_sort(open.begin(), open.end(), [&](size_t a, size_t b) { return shapeOf(a) < shapeOf(b); });
  return open;
}

/// Of a sample of the batch, after one of its tokens.
void Generator::scoresOf(const Program &shape, int64_t row, int64_t place, std::vector<float> &scores) {
  Tensor part = predictedBy(shape)[static_cast<size_t>(places.output)]->tensor;
  const int64_t tokens = part.shape[1], words = part.shape[2];
  const bool isRow = part.layout == Layout::RowMajor;
  part.offset += static_cast<size_t>((row * tokens + (isRow ? place : 0)) * words) * sizeof(float);
  part.shape = isRow ? Shape{1, 1, words} : Shape{1, tokens, words};
  std::vector<float> values;
  readOutput(session, part, 1, values);
  const float *first = values.data() + (isRow ? 0 : place * words);
  scores.assign(first, first + places.words);
}

bool Generator::round(const std::vector<size_t> &open) {
  const std::unique_ptr<Dataset> data = prompts.dataset(open);
  const std::vector<ForwardBatch> list = data->forwardBatches();
  std::vector<int64_t> chosen(open.size());
  Seen seen;
  std::vector<float> scores;
  const bool whole = forwardAll(session, program, entry, *data, list, [&](size_t i, const Batches &batches) {
    for (int64_t row = 0; row < list[i].samples; ++row) {
      const auto place = static_cast<size_t>(list[i].first + row);
      const int64_t length = prompts.length(open[place]);
      scoresOf(data->shape(batches.bucket()), row, length - 1, scores);
      chosen[place] = choose(open[place], scores);
      if (!isCausal && seen.scores.empty() && length < extents[static_cast<size_t>(list[i].bucket)])
        seen = {list[i], row, length - 1, scores};
    }
  });
  if (!whole || (!seen.scores.empty() && !checkCausal(open, seen)))
    return false;
  for (size_t i = 0; i < open.size(); ++i)
    take(open[i], chosen[i]);
  return true;
}

/// What fills up a text stands behind it, where nothing may see it: once, a batch is computed with something else
/// there. False when it was interrupted.
bool Generator::checkCausal(const std::vector<size_t> &open, const Seen &seen) {
  const std::unique_ptr<Dataset> data = prompts.dataset(open, prompts.fill() == 0 ? 1 : 0);
  std::vector<float> others;
  const bool whole = forwardAll(session, program, entry, *data, {seen.batch}, [&](size_t, const Batches &batches) {
    scoresOf(data->shape(batches.bucket()), seen.row, seen.place, others);
  });
  if (whole && std::memcmp(seen.scores.data(), others.data(), others.size() * sizeof(float)) != 0)
    throw UsageError(text("--generate needs a model whose tokens see none that follow: here the scores after a token ",
                          "change with what stands behind it; where a mask among the inputs hides that, give it in ",
                          "the prompts"));
  isCausal = true;
  return whole;
}

int64_t Generator::choose(size_t prompt, const std::vector<float> &scores) const {
  const uint64_t own = randomKey(seed, key, static_cast<uint64_t>(prompt));
  const uint64_t bits = randomBits64(own, static_cast<uint64_t>(prompts.length(prompt)));
  return chooseToken(scores.data(), static_cast<int64_t>(scores.size()), how.sampling,
                     static_cast<double>(bits >> 11) * 0x1p-53);
}

void Generator::take(size_t prompt, int64_t id) {
  const int64_t length = prompts.length(prompt);
  if (std::count(how.stops.begin(), how.stops.end(), id) > 0) {
    endings[prompt] = Ending::Stop;
    return;
  }
  log.write("token", {{"prompt", static_cast<int64_t>(prompt)}, {"id", id}});
  prompts.append(prompt, id);
  ++done;
  if (prompts.length(prompt) - prompts.given(prompt) >= how.tokens)
    endings[prompt] = Ending::Tokens;
  else if (length + 1 > places.longest)
    endings[prompt] = Ending::Full;
}

std::string idList(const std::vector<int64_t> &ids) {
  std::string list;
  for (const int64_t id : ids)
    list += text(list.empty() ? "" : ", ", id);
  return "[" + list + "]";
}

std::string Generator::answers() const {
  const char *words[] = {"", "stop", "tokens", "full"};
  const std::string name = jsonString(program.inputs[places.ids].name);
  std::string lines;
  for (size_t i = 0; i < endings.size(); ++i) {
    const int64_t given = prompts.given(i);
    lines += text("{\"answer\": ", idList(prompts.ids(i, given, prompts.length(i))), ", \"ended\": \"",
                  words[static_cast<int>(endings[i])], "\", ", name, ": ", idList(prompts.ids(i, 0, given)), "}\n");
  }
  return lines;
}

} // namespace

void generate(const Arguments &arguments, Session &session, const Program &program, const Entry &entry,
              Prompts &prompts, uint64_t seed, Log &log) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const std::string &path = *arguments.output;
  OutputFile file(path);
  Generator generator(session, program, entry, prompts, Generation(arguments), arguments.seed.value_or(seed), log);
  if (!generator.run())
    return;
  const std::string lines = generator.answers();
  file.write(lines.data(), lines.size());
  file.commit();
  const double seconds = std::max(1e-9, std::chrono::duration<double>(Clock::now() - begin).count());
  std::printf("generated:     %lld tokens after %zu prompts in %s, %.4g tokens/s\n",
              static_cast<long long>(generator.tokensDone()), prompts.size(), printable(path).c_str(),
              static_cast<double>(generator.tokensDone()) / seconds);
}

} // namespace sluice
