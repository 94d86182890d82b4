// SPDX-License-Identifier: Apache-2.0
// Lists are as long as their prompt will ever be read: ids grow by what is chosen, lists of other inputs by what they
// end with. A data set of the prompts sees of each list what belongs to the tokens that there are.

#include "runtime/program/Prompts.h"

#include "runtime/Errors.h"
#include "runtime/program/Predict.h"

#include <algorithm>
#include <cstring>

namespace sluice {

static constexpr int64_t noBound = INT64_MAX;

/// Extent of a dimension of an input or an output in each shape of a program.
template <typename Find> static std::vector<int64_t> extentsOf(const Program &program, Find find) {
  std::vector<int64_t> extents;
  for (const Program &shape : shapesOf(program))
    extents.push_back(find(shape));
  return extents;
}

static std::vector<int64_t> tokensOfInput(const Program &program, int input) {
  return extentsOf(program, [&](const Program &shape) { return shape.inputs[input].staging.shape[1]; });
}

/// Whether an input is [batch, tokens] and predictions depend on it.
static bool mayHaveTokens(const Program &program, int input) {
  const Input &in = program.inputs[input];
  return !in.shared && isPredictedFrom(program, input) && in.staging.shape.rank == 2;
}

TokenPlaces tokenPlaces(const Program &program, const Entry &entry) {
  const std::vector<const Output *> outputs = entry.evaluate ? predictedBy(program) : std::vector<const Output *>();
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Shape &shape = outputs[k]->tensor.shape;
    if (shape.rank != 3)
      continue;
    const std::vector<int64_t> extents =
        extentsOf(program, [&](const Program &of) { return predictedBy(of)[k]->tensor.shape[1]; });
    TokenPlaces places;
    std::vector<int> tables, alike; // inputs whose ids index a table, and one of as many rows as there are scores
    for (int i = 0; i < program.inputCount; ++i) {
      if (!mayHaveTokens(program, i) || tokensOfInput(program, i) != extents)
        continue;
      places.beside.push_back(i);
      const Input &in = program.inputs[i];
      if (in.staging.type != DataType::I64 || !in.isBounded() || in.upperBound == noBound)
        continue;
      tables.push_back(i);
      if (in.upperBound == shape[2])
        alike.push_back(i);
    }
    const std::vector<int> &found = alike.empty() ? tables : alike;
    if (found.size() != 1)
      continue;
    places.ids = found[0];
    places.beside.erase(std::find(places.beside.begin(), places.beside.end(), places.ids));
    places.output = static_cast<int>(k);
    places.longest = extents.back();
    places.words = std::min(shape[2], program.inputs[places.ids].upperBound);
    return places;
  }
  throw UsageError(text("--generate needs a model that scores the next token: an input of ids [batch, tokens] that are "
                        "rows of a table, and an output [batch, tokens, words]; this program takes ",
                        takenBy(program),
                        outputs.empty() ? " and keeps no scores, as where --parts computes them one after the other"
                                        : ", of which that cannot be told"));
}

/// One more value of the type, by the last two.
template <typename Value, typename Wide> static void goOn(std::vector<char> &values) {
  Value last, before;
  std::memcpy(&last, values.data() + values.size() - sizeof last, sizeof last);
  std::memcpy(&before, values.data() + values.size() - 2 * sizeof last, sizeof last);
  // Of whole numbers modulo 2^64, as what is out of range is refused when it is read.
  const auto next = static_cast<Value>(static_cast<Wide>(last) + (static_cast<Wide>(last) - static_cast<Wide>(before)));
  const char *bytes = reinterpret_cast<const char *>(&next);
  values.insert(values.end(), bytes, bytes + sizeof next);
}

/// Prompts as samples.
class Prompts::Source : public SampleSource {
public:
  Source(const Prompts &prompts, std::vector<size_t> chosen) : prompts(prompts), chosen(std::move(chosen)) {}
  int64_t samples() const override { return static_cast<int64_t>(chosen.size()); }
  std::vector<std::string> paths() const override { return {prompts.file}; }
  std::optional<Shape> shapeOf(int input, int64_t sample) const override {
    const Prompt &prompt = at(sample);
    return prompts.hasTokens(input) ? Shape{prompt.length} : prompt.shapes[static_cast<size_t>(input)];
  }
  void read(int input, int64_t sample, char *values) const override {
    const size_t width = byteWidth(prompts.program.inputs[input].staging.type);
    std::memcpy(values, at(sample).values[static_cast<size_t>(input)].data(),
                static_cast<size_t>(shapeOf(input, sample)->elements()) * width);
  }
  std::string name(int, int64_t sample) const override { return at(sample).name; }
  int64_t samplesToCheck() const override { return 0; } // each is looked at when it is gathered

private:
  const Prompt &at(int64_t sample) const { return prompts.list[chosen[static_cast<size_t>(sample)]]; }
  const Prompts &prompts;
  const std::vector<size_t> chosen;
};

Prompts::Prompts(const std::string &path, const DataOptions &words, const Program &program, const TokenPlaces &places)
    : file(path), options(words), program(program), places(places) {
  options.where = path;
  options.purpose = "prompts";
  options.padded = true;
  options.shuffle = options.targets = options.cuts = options.skipBad = false;
  options.filled.insert(places.beside.begin(), places.beside.end());
  options.filled.insert(places.ids);
  const std::unique_ptr<SampleSource> source = openSource({"jsonl:" + path, 0, /*targets=*/false}, program);
  if (source->samples() == 0)
    throw DataError(text(path, " has no prompt: a line is a JSON object, as {\"", program.inputs[places.ids].name,
                         "\": [1, 2, 3]}"));
  for (int64_t sample = 0; sample < source->samples(); ++sample)
    take(*source, sample);
  std::vector<size_t> all(list.size());
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = i;
  dataset(all); // which refuses what does not fit
}

bool Prompts::hasTokens(int input) const {
  return input == places.ids || std::find(places.beside.begin(), places.beside.end(), input) != places.beside.end();
}

void Prompts::take(const SampleSource &source, int64_t sample) {
  Prompt prompt;
  prompt.name = source.name(places.ids, sample);
  for (int i = 0; i < program.inputCount; ++i) {
    std::vector<char> &values = prompt.values.emplace_back();
    prompt.shapes.emplace_back();
    if (!isPredictedFrom(program, i))
      continue;
    prompt.shapes.back() = *source.shapeOf(i, sample);
    values.resize(static_cast<size_t>(prompt.shapes.back().elements()) * byteWidth(program.inputs[i].staging.type));
    source.read(i, sample, values.data());
  }
  check(prompt);
  prompt.length = prompt.given = prompt.shapes[static_cast<size_t>(places.ids)][0];
  list.push_back(std::move(prompt));
}

void Prompts::check(const Prompt &prompt) const {
  const auto shapeOf = [&](int input) { return prompt.shapes[static_cast<size_t>(input)]; };
  const auto said = [&](int input) { return text(prompt.name, ": '", program.inputs[input].name, "' "); };
  const Shape ids = shapeOf(places.ids);
  if (ids.rank != 1 || ids[0] == 0)
    throw DataError(text(said(places.ids), ids.rank == 1 ? "is an empty list" : "is one number",
                         ": a prompt is a list of ids, one or more"));
  if (ids[0] > places.longest)
    throw DataError(text(said(places.ids), "has ", ids[0], " tokens, the program takes ", places.longest,
                         ": shorten it, or compile with --dim for more"));
  std::vector<int64_t> values(static_cast<size_t>(ids[0]));
  std::memcpy(values.data(), prompt.values[static_cast<size_t>(places.ids)].data(), values.size() * sizeof(int64_t));
  for (const int64_t id : values)
    if (id < 0 || id >= program.inputs[places.ids].upperBound)
      throw DataError(text(said(places.ids), "has the id ", id, ", there are those from 0 to ",
                           program.inputs[places.ids].upperBound - 1));
  for (const int input : places.beside) {
    const Shape beside = shapeOf(input);
    if (beside.rank != 1 || beside[0] < std::max<int64_t>(2, ids[0]))
      throw DataError(text(said(input), "has ",
                           beside.rank != 1 ? std::string("one number") : text(beside[0], " values"), ", the prompt ",
                           ids[0], " tokens: it takes a list of as many, two or more, which goes on as it ends"));
  }
}

std::vector<int64_t> Prompts::ids(size_t prompt, int64_t first, int64_t end) const {
  std::vector<int64_t> ids(static_cast<size_t>(end - first));
  const char *from = list[prompt].values[static_cast<size_t>(places.ids)].data();
  std::memcpy(ids.data(), from + static_cast<size_t>(first) * sizeof(int64_t), ids.size() * sizeof(int64_t));
  return ids;
}

void Prompts::copyValue(size_t prompt, int input, int64_t place, char *to) const {
  const size_t width = byteWidth(program.inputs[input].staging.type);
  std::memcpy(to, list[prompt].values[static_cast<size_t>(input)].data() + static_cast<size_t>(place) * width, width);
}

void Prompts::append(size_t number, int64_t id) {
  Prompt &prompt = list[number];
  std::vector<char> &ids = prompt.values[static_cast<size_t>(places.ids)];
  const char *bytes = reinterpret_cast<const char *>(&id);
  ids.insert(ids.end(), bytes, bytes + sizeof id);
  ++prompt.length;
  for (const int input : places.beside) {
    const DataType type = program.inputs[input].staging.type;
    std::vector<char> &values = prompt.values[static_cast<size_t>(input)];
    if (values.size() / byteWidth(type) >= static_cast<size_t>(prompt.length))
      continue;
    type == DataType::I64 ? goOn<int64_t, uint64_t>(values) : goOn<float, float>(values);
  }
}

int64_t Prompts::fill() const {
  const auto said = options.padding.find(program.inputs[places.ids].name);
  return said == options.padding.end() ? 0 : said->second;
}

std::unique_ptr<Dataset> Prompts::dataset(const std::vector<size_t> &prompts, std::optional<int64_t> fill) const {
  DataOptions own = options;
  if (fill)
    own.padding[program.inputs[places.ids].name] = *fill;
  return std::make_unique<Dataset>(own, program, std::make_unique<Source>(*this, prompts));
}

} // namespace sluice
