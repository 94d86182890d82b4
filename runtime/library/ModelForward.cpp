// SPDX-License-Identifier: Apache-2.0
// What a model says of samples, and its variables one by one.
#include "runtime/library/Model.h"

#include "runtime/Printable.h"
#include "runtime/program/Evaluate.h"
#include "runtime/program/Interrupt.h"
#include "runtime/program/Predict.h"
#include "runtime/program/TensorIO.h"

#include "nlohmann/json.hpp"

#include <cmath>
#include <cstring>

namespace sluice {

/// Before each batch of an evaluation or a prediction of `all` samples.
bool Model::isCancelled(int64_t all) {
  const int64_t done = std::min(all, program.batch * askedBatches++);
  if (options.progress && options.progress(options.user, done, all) != 0)
    cancelled = true;
  return cancelled;
}

/// The samples of one call as a data set.
static std::unique_ptr<Dataset> datasetOf(const Program &program, std::unique_ptr<MemorySource> source, bool targets) {
  DataOptions how;
  how.where = "the tensors of a call";
  how.padded = true;
  how.targets = targets;
  how.workers = threads();
  return std::make_unique<Dataset>(how, program, std::move(source));
}

std::string Model::evaluate(MemorySource::Tensors inputs, MemorySource::Tensors targets,
                            const std::optional<std::string> &metrics, double *loss) {
  requireWhole();
  if (!entry.evaluate)
    throw UsageError("this model was compiled without an evaluation function");
  throwIfCancelled();
  auto source = std::make_unique<MemorySource>(program, 0);
  source->show(inputs, &targets);
  const MetricChoice choice(program, metrics);
  choice.checkRoom(program, source->samples());
  return evaluate(*datasetOf(program, std::move(source), true), choice, loss);
}

std::string Model::evaluate(Dataset &samples, const MetricChoice &choice, double *loss) {
  forgetPrefetched();
  askedBatches = 0;
  const CancelScope scope([&] { return isCancelled(samples.samples()); });
  const std::optional<Evaluation> found = sluice::evaluate(*session, program, entry, samples, choice);
  throwIfCancelled();
  nlohmann::ordered_json json = {{"samples", found->samples}};
  for (const auto &[measure, value] : found->values)
    json[measure.name()] = std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  for (const auto &[label, confusion] : found->confusions)
    json[Measure(Metric::Confusion, label).name()] = confusion;
  if (const auto known = found->values.find(Metric::Loss); loss && known != found->values.end())
    *loss = known->second;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The output that a call means, and whether its bytes are those of so many samples.
static const Output &wantedOutput(const std::vector<const Output *> &known, const sluice_output &wanted, int64_t batch,
                                  int64_t samples) {
  for (const Output *output : known) {
    if (wanted.name && std::strcmp(wanted.name, output->name))
      continue;
    const auto one = static_cast<size_t>(output->tensor.shape.elements() / batch) * sizeof(float);
    if (!wanted.data || wanted.bytes != one * static_cast<size_t>(samples))
      throw UsageError(text("output '", output->name, "' of ", samples, " samples takes ",
                            one * static_cast<size_t>(samples), " bytes, there is room for ",
                            wanted.data ? wanted.bytes : 0));
    return *output;
  }
  throw UsageError(known.empty() ? "this model keeps no output of samples: it ends in its own loss and has no other "
                                   "output that begins with the batch, or its scores are computed in parts"
                                 : text("the model has no output '", printable(wanted.name ? wanted.name : ""), "'"));
}

void Model::predict(MemorySource::Tensors inputs, const sluice_output *outputs, int count) {
  requireWhole();
  if (!entry.evaluate)
    throw UsageError("this model was compiled without an evaluation function");
  throwIfCancelled();
  auto source = std::make_unique<MemorySource>(program, 0);
  source->show(inputs, nullptr);
  predict(*datasetOf(program, std::move(source), false), outputs, count);
}

void Model::predict(Dataset &samples, const sluice_output *outputs, int count) {
  if (count < 1 || !outputs)
    throw UsageError("no output is asked for");
  const std::vector<const Output *> known = predictedBy(program);
  std::vector<const Output *> wanted;
  for (int i = 0; i < count; ++i)
    wanted.push_back(&wantedOutput(known, outputs[i], program.batch, samples.samples()));
  const std::vector<ForwardBatch> list = samples.forwardBatches();
  std::vector<std::vector<float>> results(wanted.size());
  std::vector<float> values;
  forgetPrefetched();
  askedBatches = 0;
  const CancelScope scope([&] { return isCancelled(samples.samples()); });
  forwardAll(*session, program, entry, samples, list, [&](size_t i, const Batches &) {
    for (size_t k = 0; k < wanted.size(); ++k) {
      readOutput(*session, wanted[k]->tensor, list[i].samples, values);
      results[k].insert(results[k].end(), values.begin(), values.end());
    }
  });
  throwIfCancelled();
  for (size_t k = 0; k < wanted.size(); ++k)
    std::memcpy(outputs[k].data, results[k].data(), outputs[k].bytes);
}

/// The variable of a name, or of another name that modules share it by.
const Variable &Model::variable(const std::string &name, size_t bytes) const {
  std::string own = name;
  for (int i = 0; i < program.tiedCount; ++i)
    if (name == program.tied[i].name)
      own = program.tied[i].variable;
  for (int i = 0; i < program.variableCount; ++i) {
    const Variable &found = program.variables[i];
    if (own != found.name)
      continue;
    if (const size_t own = found.asFloats().bytes(); bytes != own)
      throw UsageError(text("'", found.name, "' has ", own, " bytes, not ", bytes));
    return found;
  }
  throw UsageError(text("the model has no variable '", printable(name), "'; sluice_variables() lists them"));
}

void Model::read(const std::string &name, void *data, size_t bytes) {
  const Variable &wanted = variable(name, bytes);
  if (!data)
    throw UsageError("there is nowhere to write to");
  char *to = static_cast<char *>(data);
  readWeights(*session, wanted, [&](const void *piece, size_t size) {
    std::memcpy(to, piece, size);
    to += size;
  });
}

void Model::write(const std::string &name, const void *data, size_t bytes) {
  const Variable &wanted = variable(name, bytes);
  if (!data)
    throw UsageError("there is nothing to read from");
  writeWeights(*session, wanted, [&](size_t first, void *to, size_t size) {
    std::memcpy(to, static_cast<const char *>(data) + first, size);
  });
}

} // namespace sluice
