// SPDX-License-Identifier: Apache-2.0
// Order within a step: enqueue a batch, gather the next one while it runs, wait for it, read its loss. Where the device
// takes another batch before, it has that one already when the loss is read: nothing between steps keeps it waiting.

#include "runtime/program/Step.h"

#include <cmath>
#include <tuple>
#include <utility>

namespace sluice {

Step::Step(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
           std::function<void(const StepResult &)> done)
    : session(session), program(program), entry(entry), arguments(arguments), done(std::move(done)),
      schedule(arguments), base(session.state), scaling(session, program, arguments),
      scalars{program.loss, program.norm, scaling.scaleTensor(), scaling.skippedTensor()} {
  for (int i = 0; i < program.outputCount; ++i)
    if (program.outputs[i].part.present) {
      scalars.push_back(program.outputs[i].part);
      partNames.push_back(Measure(Metric::Loss, labelOf(program, i)).name());
    }
}

/// Of what a batch leaves before the losses of a sum.
static constexpr size_t ownScalars = 4;

void Step::begin(RunState &run, int64_t last) {
  StepState &state = session.state;
  schedule.apply(state, base, program.optimizer, run.step, last, run.plateau.reductions);
  isWhole = false;
  state.step = latest = ++run.step;
  state.labelSmoothing = static_cast<float>(arguments.labelSmoothing.value_or(0));
  state.mixBatch = program.batch;
  running.push_back({{run.step, run.position.epoch}, Clock::now(), base.batches});
  running.back().result.learningRate = state.learningRate;
}

void Step::settleOne(Batches &batches) {
  Running &earliest = running.front();
  float values[Session::mostScalars];
  const bool whole = std::exchange(isWhole, false);
  earliest.result.waitedSeconds += batches.waitedSeconds();
  session.take(values);
  isWhole = whole;
  --outstanding;
  const Counted counted = earliest.counted.front();
  earliest.counted.pop_front();
  earliest.ended += counted.weight;
  earliest.result.emptyBatches += counted.targets == 0;
  // A loss that is not finite is told, whatever it counts.
  const double weight = counted.weight > 0 ? counted.weight : 1;
  earliest.sum += static_cast<double>(values[0]) * weight;
  earliest.parts.resize(partNames.size());
  for (size_t i = 0; i < earliest.parts.size(); ++i)
    earliest.parts[i] += static_cast<double>(values[ownScalars + i]) * weight;
  if (--earliest.left > 0)
    return;
  StepResult result = earliest.result;
  result.scale = scaling.follow(values[2], values[3]);
  const Clock::time_point end = Clock::now();
  result.seconds = std::chrono::duration<double>(end - std::max(earliest.begin, lastEnd)).count();
  const double ended = earliest.ended > 0 ? earliest.ended : 1;
  result.loss = static_cast<float>(earliest.sum / ended);
  for (size_t i = 0; i < partNames.size(); ++i)
    result.parts.emplace_back(partNames[i], static_cast<double>(static_cast<float>(earliest.parts[i] / ended)));
  result.norm = values[1];
  lastEnd = end;
  running.pop_front();
  done(result);
}

void Step::count(Counted counted) {
  Running &latestStep = running.back();
  latestStep.counted.push_back(counted);
  latestStep.enqueued += counted.weight;
  session.state.batchShare = latestStep.enqueued > 0 ? static_cast<float>(counted.weight / latestStep.enqueued) : 0.0f;
}

void Step::enqueue(Batches &batches, RunState &run, Position next, bool more) {
  const bool whole = session.state.lastBatch();
  batches.advance();
  count(batches.counted());
  session.enqueue(entry.step);
  session.leave(scalars);
  if (whole) {
    running.back().result.epochEnds = next.epoch != run.position.epoch;
    run.position = next;
  }
  isWhole = whole;
  if (++outstanding == 2)
    settleOne(batches);
  isWhole = false;
  if (more)
    batches.prefetch(next);
  isWhole = whole;
}

void Step::operator()(Batches &batches, const Dataset &dataset, RunState &run, int64_t last,
                      const std::function<bool(bool epochEnds)> &ahead) {
  StepState &state = session.state;
  begin(run, last);
  Position position = run.position;
  for (state.batch = 0; state.batch < base.batches; ++state.batch) {
    state.mixShare = dataset.mixShare(position);
    running.back().result.mixed += static_cast<double>(state.mixShare) / static_cast<double>(base.batches);
    position = dataset.normalize({position.epoch, position.sample + program.batch});
    enqueue(batches, run, position, run.step < last || !state.lastBatch());
    if (!state.lastBatch() && !session.runsAhead(entry.step))
      settle(batches);
  }
  state.batch = 0;
  state.labelSmoothing = 0; // evaluation has neither
  state.mixShare = 1;
  if (run.step == last || !session.runsAhead(entry.step) || !ahead(running.back().result.epochEnds))
    settle(batches);
}

void Step::settle(Batches &batches) {
  while (outstanding > 0)
    settleOne(batches);
}

bool Step::settleQuietly() {
  bool finite = isWhole;
  for (float values[Session::mostScalars]; outstanding > 0; --outstanding) {
    session.take(values);
    finite = finite && std::isfinite(values[0]);
  }
  running.clear();
  return finite;
}

void Step::describe(const StepResult &result, LogFields &fields) const {
  fields.insert(fields.end(), result.parts.begin(), result.parts.end());
  fields.push_back({"lr", shortest(result.learningRate)});
  if (arguments.mixup.value_or(0) > 0)
    fields.push_back({"mixup", result.mixed});
  scaling.describe(result.scale, fields);
  if (arguments.clipNorm)
    fields.push_back({"grad_norm", double{result.norm}});
}

void Step::describeAll(LogFields &fields, const Dataset *data) const {
  fields.push_back({"optimizer", optimizerName(program.optimizer)});
  fields.push_back({"schedule", arguments.schedule.value_or("constant")});
  fields.push_back({"lr", shortest(base.learningRate)});
  fields.push_back({"weight_decay", shortest(base.weightDecay)});
  const OptimizerFacts &facts = factsOf(program.optimizer);
  const std::tuple<const char *, double, float> hyperparameters[] = {
      {"momentum", facts.momentum, base.momentum}, {"beta1", facts.beta1, base.beta1},
      {"beta2", facts.beta2, base.beta2},          {"epsilon", facts.epsilon, base.epsilon},
      {"alpha", facts.alpha, base.alpha},          {"lr_decay", facts.rateDecay, base.rateDecay}};
  for (const auto &[name, usual, value] : hyperparameters)
    if (usual >= 0)
      fields.push_back({name, shortest(value)});
  std::vector<std::string> losses;
  for (size_t i = 0; i < partNames.size(); ++i)
    losses.push_back(text(partNames[i], "=", program.outputs[i].loss, ",weight=", program.outputs[i].weight));
  if (!losses.empty())
    fields.push_back({"losses", losses});
  if (base.batches > 1)
    fields.push_back({"batches_per_step", base.batches});
  if (!data)
    return;
  fields.push_back({"samples", data->samples()});
  if (data->batches() % base.batches == 0)
    fields.push_back({"steps_per_epoch", data->batches() / base.batches});
  else // they do not begin with epochs
    fields.push_back({"steps_per_epoch", static_cast<double>(data->batches()) / static_cast<double>(base.batches)});
  fields.push_back({"dropped_samples", data->dropped()});
}

} // namespace sluice
