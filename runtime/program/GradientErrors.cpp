// SPDX-License-Identifier: Apache-2.0
// Hooks catch gradients and round activations; both run in the order of the compute stream.
#include "runtime/program/GradientErrors.h"

#include "runtime/Codec.h"
#include "runtime/Printable.h"
#include "runtime/program/Batches.h"
#include "runtime/program/Interrupt.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

namespace sluice {

namespace {

/// One activation in one form.
struct Trial {
  const KeptActivation *activation;
  Codec codec;
  double squares = 0; ///< of the errors of all batches; infinite once the codec refused a value
};

class Measurement {
public:
  Measurement(Session &session, const Program &program, const Entry &entry, size_t scratch)
      : session(session), entry(entry), scratch(scratch), before(session.state) {
    StepState &state = session.state;
    state.learningRate = state.weightDecay = 0;
    state.batch = 0;
    state.batches = 1;
    state.batchShare = state.mixShare = 1;
    state.labelSmoothing = 0;
    state.mixBatch = program.batch;
    state.scaleIsFixed = 1;
    state.step = std::max<int64_t>(1, state.step);
    session.onGradient = [this](const char *parameter, const Tensor &gradient, int64_t first, const void *data) {
      take({parameter, first}, gradient, static_cast<const float *>(data));
    };
    running = this;
  }
  // After an error in the middle of a step the hooks may still be running.
  ~Measurement() {
    try {
      session.synchronize();
    } catch (const std::exception &) {
      // Whoever destroys this is already handling the first error.
    }
    session.onGradient = nullptr;
    running = nullptr;
    session.state = before;
  }
  Measurement(const Measurement &) = delete;
  Measurement &operator=(const Measurement &) = delete;

  inline static Measurement *running = nullptr; ///< of the thread that enqueues steps

  void round(Stream &stream, const char *name, const Tensor &tensor) {
    if (!current || std::strcmp(name, current->activation->name) != 0)
      return;
    const Codec codec = current->codec;
    const Tensor packed = device(scratch, {packedBytes(codec, tensor)}, Layout::RowMajor, DataType::U8);
    rounded.emplace(name, codec, tensor);
    rounded->encode(stream, tensor, packed);
    rounded->decode(stream, packed, tensor);
  }

  /// The gradients of the batch that is on the device.
  void remember() {
    reference.clear();
    rounded.reset();
    step();
  }

  /// The squared error of the trial on that batch; infinite where the codec refuses a value, which `refusal` then
  /// names.
  double squaredError(const Trial &trial) {
    current = &trial;
    difference = size = 0;
    try {
      step();
    } catch (const ValueNotStorable &error) {
      refusal = error.what();
      difference = std::numeric_limits<double>::infinity();
      size = 1;
      session.forgetFailure();
    }
    current = nullptr;
    return size > 0 ? difference / size : 0;
  }

  std::string refusal; ///< of the last value that was refused

private:
  void step() {
    session.enqueue(entry.step);
    session.synchronize();
  }

  void take(const std::pair<std::string, int64_t> &rows, const Tensor &gradient, const float *data) {
    if (gradient.type != DataType::F32)
      return;
    const auto count = static_cast<size_t>(gradient.shape.elements());
    std::vector<float> &exact = reference[rows];
    if (!current)
      return exact.assign(data, data + count);
    for (size_t i = 0; i < std::min(count, exact.size()); ++i) {
      const double is = data[i], was = exact[i];
      difference += (is - was) * (is - was);
      size += was * was;
    }
  }

  Session &session;
  const Entry &entry;
  const size_t scratch;
  const StepState before;
  std::map<std::pair<std::string, int64_t>, std::vector<float>> reference; ///< by parameter and first row
  const Trial *current = nullptr;                                          ///< null: gradients are remembered
  std::optional<Packing> rounded;                                          ///< outlives what it has enqueued
  double difference = 0, size = 0;                                         ///< squared
};

/// Says every ten seconds how far the measurement is, and ends it where a signal asks for that.
class Steps {
public:
  explicit Steps(int64_t all) : all(all) {}

  void next() {
    if (const int signal = interruptedBy()) {
      sayLast(
          text("interrupted while errors were measured, after ", done, " of ", all, " steps; no profile was written"));
      throw Interrupted{signal};
    }
    const Clock::time_point now = Clock::now();
    if (now - said >= std::chrono::seconds(10)) {
      const double left = std::chrono::duration<double>(now - start).count() / static_cast<double>(done) *
                          static_cast<double>(all - done);
      std::printf("errors:        %lld of %lld steps, %.0f s left\n", static_cast<long long>(done),
                  static_cast<long long>(all), left);
      std::fflush(stdout);
      said = now;
    }
    ++done;
  }

private:
  using Clock = std::chrono::steady_clock;
  const int64_t all;
  int64_t done = 0;
  const Clock::time_point start = Clock::now();
  Clock::time_point said = start;
};

/// All forms that are smaller than the tensor.
std::vector<Trial> trialsOf(const Program &program) {
  std::vector<Trial> trials;
  for (int i = 0; i < program.keptCount; ++i)
    for (const Codec form : ratedForms(program.kept[i].compared))
      if (packedBytes(form, program.kept[i].tensor) < static_cast<int64_t>(program.kept[i].tensor.bytes()))
        trials.push_back({&program.kept[i], form});
  return trials;
}

} // namespace

void showActivation(Session &session, const char *name, const Tensor &activation) {
  if (Measurement::running)
    Measurement::running->round(session.compute, name, activation);
}

size_t scratchOfErrors(const Program &program) {
  int64_t most = 0;
  for (const Trial &trial : trialsOf(program))
    most = std::max(most, packedBytes(trial.codec, trial.activation->tensor));
  return static_cast<size_t>(most);
}

std::vector<TensorError> measureErrors(Session &session, const Program &program, const Entry &entry, Dataset &dataset,
                                       int64_t batches, size_t scratch) {
  std::vector<Trial> trials = trialsOf(program);
  std::printf("errors:        measuring %zu forms of %d tensors on %lld %s, a step each\n", trials.size(),
              program.keptCount, static_cast<long long>(batches), batches == 1 ? "batch" : "batches");
  std::fflush(stdout);
  Batches data(session, program, dataset);
  Measurement measurement(session, program, entry, scratch);
  Steps steps(static_cast<int64_t>(trials.size()) * batches);
  Position position = dataset.normalize({});
  for (int64_t batch = 0; batch < batches; ++batch) {
    data.prefetchAlone(position);
    data.advance();
    position = dataset.normalize({position.epoch, position.sample + program.batch});
    measurement.remember();
    for (Trial &trial : trials) {
      steps.next();
      if (std::isfinite(trial.squares))
        trial.squares += measurement.squaredError(trial);
    }
  }
  const auto refused =
      std::count_if(trials.begin(), trials.end(), [](const Trial &trial) { return !std::isfinite(trial.squares); });
  if (refused > 0)
    std::printf("errors:        %lld forms cannot be used%s%s\n", static_cast<long long>(refused),
                measurement.refusal.empty() ? ", with them gradients are not finite" : ": ",
                printable(measurement.refusal).c_str());
  std::vector<TensorError> errors;
  for (const Trial &trial : trials)
    errors.push_back({trial.activation->name, trial.codec, std::sqrt(trial.squares / static_cast<double>(batches))});
  return errors;
}

} // namespace sluice
