// SPDX-License-Identifier: Apache-2.0
// Rounds: in each one every text that has no end yet gets a token, texts of one shape together. Where the program has a
// decode step, each batch of texts goes on by it once its round has filled the caches.

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
#include <cmath>
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

/// The scores that a decode step leaves; absent where there is none, or of another output.
Tensor decodedOutput(const Program &program, const TokenPlaces &places) {
  if (!program.decode)
    return {};
  return program.decode->outputs[predictedBy(program)[static_cast<size_t>(places.output)] - program.outputs].tensor;
}

class Generator {
public:
  Generator(const std::string &name, Session &session, const Program &program, const Entry &entry, Prompts &prompts,
            const Generation &how, uint64_t seed, Log &log)
      : name(name), session(session), program(program), entry(entry), prompts(prompts), how(how), log(log),
        places(tokenPlaces(program, entry)), key(nameKey("generate")), seed(seed), endings(prompts.size()),
        decodes(entry.decode && decodedOutput(program, places).present) {
    for (const Program &shape : shapesOf(program))
      extents.push_back(shape.inputs[places.ids].staging.shape[1]);
  }

  /// False when it was interrupted.
  bool run() {
    for (std::vector<size_t> open; !(open = openOnes()).empty();)
      for (const std::vector<size_t> &group : decodes ? batchesOf(open) : std::vector<std::vector<size_t>>{open})
        if (!round(group) || (decodes && isCausal && !decodeAll(group)))
          return false;
    return true;
  }
  std::string answers() const;
  int64_t tokensDone() const { return done; }
  bool hasDecoded() const { return isChecked; }

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
  Tensor scoresIn(const Program &shape) const { return predictedBy(shape)[static_cast<size_t>(places.output)]->tensor; }
  void scoresOf(Tensor part, int64_t row, int64_t place, std::vector<float> &scores);
  std::vector<std::vector<size_t>> batchesOf(const std::vector<size_t> &open) const;
  bool decodeAll(const std::vector<size_t> &group);
  void decode(const std::vector<size_t> &group, int64_t back);
  bool checkDecode(const std::vector<size_t> &group);
  struct Chosen {
    int64_t id;
    double logprob; ///< logarithm of its probability by the scores, whatever it was drawn by
  };
  Chosen choose(size_t prompt, const std::vector<float> &scores) const;
  void take(size_t prompt, const Chosen &chosen);

  const std::string name; ///< for warnings
  Session &session;
  const Program &program;
  const Entry &entry;
  Prompts &prompts;
  const Generation how;
  Log &log;
  const TokenPlaces places;
  const uint64_t key, seed;
  std::vector<Ending> endings;    ///< of each prompt
  std::vector<int64_t> extents;   ///< tokens of each shape
  bool isCausal = false;          ///< as far as it was seen
  bool decodes;                   ///< the program has a decode step, which gave no wrong scores
  bool isChecked = false;         ///< whether it gives right ones
  std::vector<float> firstScores; ///< of the first text of a round, after its last token
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
void Generator::scoresOf(Tensor part, int64_t row, int64_t place, std::vector<float> &scores) {
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
  std::vector<Chosen> chosen(open.size());
  Seen seen;
  std::vector<float> scores;
  const bool whole = forwardAll(session, program, entry, *data, list, [&](size_t i, const Batches &batches) {
    for (int64_t row = 0; row < list[i].samples; ++row) {
      const auto place = static_cast<size_t>(list[i].first + row);
      const int64_t length = prompts.length(open[place]);
      scoresOf(scoresIn(data->shape(batches.bucket())), row, length - 1, scores);
      chosen[place] = choose(open[place], scores);
      if (place == 0)
        firstScores = scores;
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
    scoresOf(scoresIn(data->shape(batches.bucket())), seen.row, seen.place, others);
  });
  if (whole && std::memcmp(seen.scores.data(), others.data(), others.size() * sizeof(float)) != 0)
    throw UsageError(text("--generate needs a model whose tokens see none that follow: here the scores after a token ",
                          "change with what stands behind it; where a mask among the inputs hides that, give it in ",
                          "the prompts"));
  isCausal = true;
  return whole;
}

/// As many at once as one evaluation takes, of one shape.
std::vector<std::vector<size_t>> Generator::batchesOf(const std::vector<size_t> &open) const {
  std::vector<std::vector<size_t>> groups;
  for (const ForwardBatch &batch : prompts.dataset(open)->forwardBatches())
    groups.emplace_back(open.begin() + batch.first, open.begin() + batch.first + batch.samples);
  return groups;
}

/// Enqueues the decode step for the token of each text that `back` others follow, and waits for it. Texts that have an
/// end, and rows of the batch without a text, stand at place 0, where nobody looks at them any more.
void Generator::decode(const std::vector<size_t> &group, int64_t back) {
  std::vector<int64_t> at(static_cast<size_t>(program.batch));
  const auto isOpen = [&](size_t row) { return endings[group[row]] == Ending::None; };
  for (size_t row = 0; row < group.size(); ++row)
    at[row] = isOpen(row) ? prompts.length(group[row]) - 1 - back : 0;
  session.write(program.places, at.data());
  std::vector<int> inputs = places.beside;
  inputs.push_back(places.ids);
  for (const int input : inputs) {
    const Tensor slot = session.batch(program.decode->inputs[input].slots);
    if (slot.shape.elements() != program.batch) // the step does not read it
      continue;
    std::vector<char> values(slot.bytes());
    for (size_t row = 0; row < group.size(); ++row)
      if (isOpen(row))
        prompts.copyValue(group[row], input, at[row], values.data() + row * byteWidth(slot.type));
    session.write(slot, values.data());
  }
  session.enqueue(entry.decode);
  session.synchronize();
}

/// Goes on with texts whose keys and values an evaluation has left, but for those of their last token, until each has
/// an end. False when it was interrupted.
bool Generator::decodeAll(const std::vector<size_t> &group) {
  if (!isChecked && !checkDecode(group))
    return true;
  const Tensor output = decodedOutput(program, places);
  std::vector<float> scores;
  const auto isOpen = [&](size_t prompt) { return endings[prompt] == Ending::None; };
  while (std::any_of(group.begin(), group.end(), isOpen)) {
    if (interruptedBy())
      return false;
    decode(group, 0);
    std::vector<std::pair<size_t, Chosen>> chosen;
    for (size_t row = 0; row < group.size(); ++row)
      if (isOpen(group[row])) {
        scoresOf(output, static_cast<int64_t>(row), 0, scores);
        chosen.emplace_back(group[row], choose(group[row], scores));
      }
    for (const auto &[prompt, token] : chosen)
      take(prompt, token);
  }
  return true;
}

/// Once, the token before the last one is decoded, too: its scores are those of the evaluation, up to rounding. Else
/// whole texts are computed, and a warning says so.
bool Generator::checkDecode(const std::vector<size_t> &group) {
  if (endings[group[0]] != Ending::None)
    return false;
  decode(group, 1);
  std::vector<float> scores;
  scoresOf(decodedOutput(program, places), 0, 0, scores);
  float largest = 0, difference = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    largest = std::max(largest, std::fabs(firstScores[i]));
    const float apart = std::fabs(scores[i] - firstScores[i]);
    difference = apart <= difference ? difference : apart; // NaN is larger than any number
  }
  const float allowed = (program.precision == Precision::FP32 ? 1e-3F : 5e-2F) * largest;
  isChecked = decodes = difference <= allowed;
  if (!decodes)
    std::fprintf(stderr,
                 "%s: warning: scores of the decode step differ by %g from those of the whole text, whose largest is "
                 "%g: whole texts are computed\n",
                 printable(name).c_str(), static_cast<double>(difference), static_cast<double>(largest));
  return decodes;
}

Generator::Chosen Generator::choose(size_t prompt, const std::vector<float> &scores) const {
  const uint64_t own = randomKey(seed, key, static_cast<uint64_t>(prompt));
  const uint64_t bits = randomBits64(own, static_cast<uint64_t>(prompts.length(prompt)));
  const int64_t id = chooseToken(scores.data(), static_cast<int64_t>(scores.size()), how.sampling,
                                 static_cast<double>(bits >> 11) * 0x1p-53);
  const auto largest = static_cast<double>(*std::max_element(scores.begin(), scores.end()));
  double sum = 0;
  for (const float score : scores)
    sum += std::exp(static_cast<double>(score) - largest);
  return {id, static_cast<double>(scores[static_cast<size_t>(id)]) - largest - std::log(sum)};
}

void Generator::take(size_t prompt, const Chosen &chosen) {
  const int64_t id = chosen.id;
  const int64_t length = prompts.length(prompt);
  if (std::count(how.stops.begin(), how.stops.end(), id) > 0) {
    endings[prompt] = Ending::Stop;
    return;
  }
  log.write("token", {{"prompt", static_cast<int64_t>(prompt)}, {"id", id}, {"logprob", chosen.logprob}});
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
  Generator generator(arguments.name, session, program, entry, prompts, Generation(arguments),
                      arguments.seed.value_or(seed), log);
  if (!generator.run())
    return;
  const std::string lines = generator.answers();
  file.write(lines.data(), lines.size());
  file.commit();
  const double seconds = std::max(1e-9, std::chrono::duration<double>(Clock::now() - begin).count());
  std::printf("generated:     %lld tokens after %zu prompts in %s, %.4g tokens/s%s\n",
              static_cast<long long>(generator.tokensDone()), prompts.size(), printable(path).c_str(),
              static_cast<double>(generator.tokensDone()) / seconds,
              generator.hasDecoded() ? ", with a cache of keys and values" : "");
}

} // namespace sluice
