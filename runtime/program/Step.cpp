// SPDX-License-Identifier: Apache-2.0
// Order within a step: enqueue a batch, gather the next one while it runs, wait for it, read its loss. Where the device
// takes another batch before, it has that one already when the loss is read: nothing between steps keeps it waiting.

#include "runtime/program/Step.h"

#include "runtime/program/Interrupt.h"
#include "runtime/program/Turns.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>
#include <utility>

namespace sluice {

Step::Step(Session &session, const Program &program, const Entry &entry, const Arguments &arguments,
           std::function<void(const StepResult &)> done)
    : session(session), program(program), entry(entry), arguments(arguments), done(std::move(done)),
      schedule(arguments), base(session.state), scaling(session, program, arguments) {
  for (int turn = 0; turn < std::max(1, program.turnCount); ++turn) {
    const Program own = ofTurn(program, turn);
    Left &one = left.emplace_back();
    one.scalars = {program.loss, program.norm, scaling.scaleTensor(), scaling.skippedTensor()};
    for (int i = 0; i < own.outputCount; ++i)
      if (own.outputs[i].part.present) {
        one.scalars.push_back(own.outputs[i].part);
        one.partNames.push_back(nameInTurn(program, turn, Measure(Metric::Loss, labelOf(own, i)).name()));
      }
  }
}

/// Of what a batch leaves before the losses of a sum.
static constexpr size_t ownScalars = 4;

void Step::begin(RunState &run, int64_t last) {
  StepState &state = session.state;
  const int turn = turnOf(program, run.step + 1);
  schedule.apply(state, base, program.optimizer, stepsOfTurn(program, turn, run.step), stepsOfTurn(program, turn, last),
                 run.plateau.reductions);
  isWhole = false;
  state.step = latest = ++run.step;
  state.otherSteps = run.step - stepsOfTurn(program, turn, run.step);
  state.labelSmoothing = static_cast<float>(arguments.labelSmoothing.value_or(0));
  state.mixBatch = program.batch;
  running.push_back(
      {{run.step, run.position.epoch, turn, nameInTurn(program, turn, "loss")}, Clock::now(), base.batches});
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
  earliest.ended.insert(earliest.ended.end(),
                        {counted.weight, counted.targets == 0 ? 1.0 : 0.0, static_cast<double>(values[0])});
  for (size_t i = 0; i < partNames(earliest.result.turn).size(); ++i)
    earliest.ended.push_back(static_cast<double>(values[ownScalars + i]));
  if (--earliest.left > 0)
    return;
  std::vector<double> units = std::move(earliest.ended);
  StepResult result = earliest.result;
  if (session.ranks) {
    const std::vector<char> all = session.ranks->gather(units.data(), units.size() * sizeof(double),
                                                        {"the losses of all ranks", nullptr, result.step});
    units.resize(all.size() / sizeof(double));
    std::memcpy(units.data(), all.data(), all.size());
  }
  sum(units, result);
  result.scale = scaling.follow(values[2], values[3]);
  const Clock::time_point end = Clock::now();
  result.seconds = std::chrono::duration<double>(end - std::max(earliest.begin, lastEnd)).count();
  result.norm = values[1];
  lastEnd = end;
  running.pop_front();
  done(result);
}

void Step::sum(const std::vector<double> &units, StepResult &result) const {
  double loss = 0, weights = 0;
  const std::vector<std::string> &names = partNames(result.turn);
  std::vector<double> parts(names.size());
  const size_t fields = 3 + names.size(); // weight, 1 where no target counts, and losses
  for (size_t at = 0; at < units.size(); at += fields) {
    weights += units[at];
    result.emptyBatches += units[at + 1] > 0;
    // A loss that is not finite is told, whatever it counts.
    const double weight = units[at] > 0 ? units[at] : 1;
    loss += units[at + 2] * weight;
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i] += units[at + 3 + i] * weight;
  }
  const double all = weights > 0 ? weights : 1;
  result.loss = static_cast<float>(loss / all);
  for (size_t i = 0; i < parts.size(); ++i)
    result.parts.emplace_back(names[i], static_cast<double>(static_cast<float>(parts[i] / all)));
  if (program.turnCount > 0)
    result.parts.emplace_back(result.name, double{result.loss});
}

// Units are summed in their order, so that the factor is the same for any number of ranks.
void Step::meet(const std::vector<float> &shares) {
  std::vector<float> all(shares);
  if (session.ranks) {
    std::vector<float> own(shares);
    own.push_back(static_cast<float>(notedAmongRanks()));
    const std::vector<char> bytes = session.ranks->gather(own.data(), own.size() * sizeof(float),
                                                          {"the last batch of all ranks", nullptr, session.state.step});
    std::vector<float> said(bytes.size() / sizeof(float));
    std::memcpy(said.data(), bytes.data(), bytes.size());
    all.clear();
    for (size_t at = 0; at < said.size(); at += own.size()) {
      const auto first = said.begin() + static_cast<std::ptrdiff_t>(at);
      all.insert(all.end(), first, first + static_cast<std::ptrdiff_t>(shares.size()));
      if (const int signal = static_cast<int>(first[static_cast<std::ptrdiff_t>(shares.size())]); signal != 0)
        endTogether(signal);
    }
  }
  const double weight = std::accumulate(all.begin(), all.end(), 0.0);
  session.state.meanFactor = weight > 0 ? static_cast<float>(1 / weight) : 0.0f;
  session.unitWeights = shares.size() == 1 ? std::move(all) : std::vector<float>();
}

void Step::count(Counted counted) {
  Running &latestStep = running.back();
  latestStep.counted.push_back(counted);
  latestStep.enqueued += counted.weight;
  session.state.batchShare = latestStep.enqueued > 0 ? static_cast<float>(counted.weight / latestStep.enqueued) : 0.0f;
  session.state.unitWeight = counted.share();
  latestStep.shares.push_back(counted.share());
  if (program.reduce && session.state.lastBatch())
    meet(latestStep.shares);
}

void Step::enqueue(Batches &batches, RunState &run, const Dataset &dataset, Position own, bool more) {
  const bool whole = session.state.lastBatch();
  batches.advance();
  const int turn = running.back().result.turn;
  count(batches.counted(turn));
  session.enqueue(entry.stepOf(program.turnCount > 0 ? turn : batches.bucket()));
  session.leave(left[static_cast<size_t>(turn)].scalars);
  Position next = dataset.after(own, 1);
  if (whole) {
    const Position end = dataset.after(run.position, units());
    running.back().result.epochEnds = end.epoch != run.position.epoch;
    run.position = end;
    next = first(end, dataset);
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
  Position position = first(run.position, dataset);
  for (state.batch = 0; state.batch < base.batches; ++state.batch) {
    state.mixShare = dataset.mixShare(position);
    running.back().result.mixed += static_cast<double>(state.mixShare) / static_cast<double>(base.batches);
    enqueue(batches, run, dataset, position, run.step < last || !state.lastBatch());
    position = dataset.after(position, 1);
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
  if (program.turnCount > 0)
    fields.push_back({"turn", program.turns[result.turn].name});
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
  for (int turn = 0; turn < static_cast<int>(left.size()); ++turn)
    for (size_t i = 0; i < partNames(turn).size(); ++i) {
      const Output &output = ofTurn(program, turn).outputs[i];
      losses.push_back(text(partNames(turn)[i], "=", output.loss, ",weight=", output.weight));
    }
  if (!losses.empty())
    fields.push_back({"losses", losses});
  std::vector<std::string> buckets;
  for (int i = 0; i < program.bucketCount; ++i)
    buckets.emplace_back(program.buckets[i].name);
  if (!buckets.empty())
    fields.push_back({"buckets", buckets});
  if (program.turnCount > 0)
    fields.push_back({"turns", turnsText(program)});
  if (base.ranks > 1)
    fields.push_back({"ranks", int64_t{base.ranks}});
  if (units() > 1)
    fields.push_back({"batches_per_step", units()});
  if (!data)
    return;
  fields.push_back({"samples", data->samples()});
  if (data->batches() % units() == 0)
    fields.push_back({"steps_per_epoch", data->batches() / units()});
  else // they do not begin with epochs
    fields.push_back({"steps_per_epoch", static_cast<double>(data->batches()) / static_cast<double>(units())});
  fields.push_back({"dropped_samples", data->dropped()});
}

} // namespace sluice
