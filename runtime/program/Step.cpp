// SPDX-License-Identifier: Apache-2.0
// Order within a step: enqueue a batch, gather the next one while it runs, synchronize, read its loss.

#include "runtime/program/Step.h"

#include <tuple>

namespace sluice {

Step::Step(Session &session, const Program &program, const Entry &entry, const Arguments &arguments)
    : session(session), program(program), entry(entry), arguments(arguments), schedule(arguments), base(session.state),
      scaling(session, program, arguments) {}

float Step::oneBatch(Batches &batches, Position next, bool more) {
  float loss = 0;
  batches.advance();
  session.enqueue(entry.step);
  if (more) {
    batches.prefetch(next);
    waited += batches.waitedSeconds();
  }
  session.read(program.loss, &loss);
  return loss;
}

float Step::operator()(Batches &batches, const Dataset &dataset, RunState &run, int64_t last) {
  StepState &state = session.state;
  schedule.apply(state, base, program.optimizer, run.step, last);
  state.step = ++run.step;
  state.labelSmoothing = static_cast<float>(arguments.labelSmoothing.value_or(0));
  state.mixBatch = program.batch;
  Position position = run.position;
  double sum = 0;
  waited = mixed = 0;
  for (state.batch = 0; state.batch < base.batches; ++state.batch) {
    state.mixShare = dataset.mixShare(position);
    mixed += static_cast<double>(state.mixShare) / static_cast<double>(base.batches);
    position = dataset.normalize({position.epoch, position.sample + program.batch});
    sum += static_cast<double>(oneBatch(batches, position, run.step < last || !state.lastBatch()));
  }
  state.batch = 0;
  state.labelSmoothing = 0; // evaluation has neither
  state.mixShare = 1;
  run.position = position;
  scaling.follow();
  return static_cast<float>(sum / static_cast<double>(base.batches));
}

void Step::describe(LogFields &fields) const {
  fields.push_back({"lr", shortest(session.state.learningRate)});
  if (arguments.mixup.value_or(0) > 0)
    fields.push_back({"mixup", mixed});
  scaling.describe(fields);
  if (!arguments.clipNorm)
    return;
  float norm = 0;
  session.read(program.norm, &norm);
  fields.push_back({"grad_norm", double{norm}});
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
