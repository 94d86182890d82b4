// SPDX-License-Identifier: Apache-2.0
// Engines take turns, so that what else the device does falls on all of them; each has the median of its times. Their
// operands are zeros in buffers of their own: how long an engine takes does not depend on numbers, but for the power
// that they cost, which is the same for all.
#include "runtime/cuda/EngineTimes.h"

#include "runtime/Stream.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

namespace sluice {

namespace {

constexpr size_t candidates = 8;                    ///< of a task: rankings are long, and slow at their ends
constexpr auto patience = std::chrono::seconds(60); ///< libraries compile some engines before they run
constexpr int warmups = 2, rounds = 5;
constexpr double clearlyFaster = 0.97;

struct Recorded {
  const EngineChoice *choices = nullptr;
  int count = 0;
} recorded;

const EngineChoice *recordedFor(const std::string &convolution) {
  for (int i = 0; i < recorded.count; ++i)
    if (convolution == recorded.choices[i].convolution)
      return recorded.choices + i;
  return nullptr;
}

/// By their words, so that each is there once. Threads that build engines add to it, each under `tasksMutex`.
std::map<std::string, ConvTask> &tasks() {
  static auto &known = *new std::map<std::string, ConvTask>;
  return known;
}
std::mutex tasksMutex;

/// Multiplications.
double products(const ConvTask &task) {
  const ConvGeometry &g = task.geometry;
  return static_cast<double>(g.w.elements()) * static_cast<double>(g.y.elements() / g.y[1]);
}

/// Where the operands of a task lie.
struct Operands {
  explicit Operands(const ConvTask &task) {
    const ConvGeometry &g = task.geometry;
    const int64_t width = static_cast<int64_t>(byteWidth(g.type));
    auto take = [this](int64_t size) {
      const size_t at = bytes;
      bytes += static_cast<size_t>((size + 255) / 256 * 256);
      return at;
    };
    x = take(g.x.elements() * width), w = take(g.w.elements() * width), y = take(g.y.elements() * width);
    workspace = take(task.bytes);
    const bool forward = task.epilogue == Epilogue::Statistics;
    // In the order of Epilogue.
    for (int i = 0; task.epilogue != Epilogue::None && i < (forward ? 2 : 7); ++i) {
      const bool image = !forward && (i < 2 || i == 6);
      more.push_back(take(image ? g.x.elements() * width : (forward ? g.y[1] : g.x[1]) * 4));
    }
  }
  size_t bytes = 0, x = 0, w = 0, y = 0, workspace = 0;
  std::vector<size_t> more;
};

/// Enqueues all parts of a task.
void enqueue(Session &session, const ConvTask &task, const ConvEngine &engine, const Operands &at) {
  const Tensor whole = device(0, {static_cast<int64_t>(at.bytes)}, Layout::RowMajor, DataType::U8);
  char *base = session.compute.data<char>(whole);
  void *x = base + at.x, *w = base + at.w, *y = base + at.y, *workspace = base + at.workspace;
  const auto more = [&](size_t i) { return static_cast<const void *>(base + at.more[i]); };
  const ConvPass pass = task.geometry.pass;
  const void *first = pass == ConvPass::Forward ? x : y, *second = pass == ConvPass::BackwardWeight ? x : w;
  void *result = pass == ConvPass::Forward ? y : pass == ConvPass::BackwardData ? x : w;
  session.compute.launch("engine", "convolution", [&] {
    const cudaStream_t stream = native(session.compute);
    for (int64_t part = 0; part < engine.parts(); ++part)
      if (task.epilogue == Epilogue::None)
        engine.run(stream, part, first, second, result, workspace);
      else if (task.epilogue == Epilogue::Statistics)
        engine.run(stream, part, first, second, result, workspace, {more(0), more(1)});
      else if (task.epilogue == Epilogue::Gradient)
        engine.run(stream, part, first, second, result, workspace,
                   {more(0), more(1), more(2), more(3), more(4), more(5)});
      else
        engine.run(stream, part, first, second, result, workspace,
                   {more(0), more(1), more(2), more(3), more(4), more(5), more(6)});
  });
}

/// Median seconds of each.
std::vector<double> secondsOf(Session &session, const ConvTask &task,
                              const std::vector<std::unique_ptr<ConvEngine>> &engines) {
  const Operands at(task);
  for (int round = 0; round < warmups + rounds; ++round) {
    if (round == warmups) {
      session.synchronize();
      session.enableRecording(true);
    }
    for (const std::unique_ptr<ConvEngine> &engine : engines)
      enqueue(session, task, *engine, at);
  }
  session.synchronize();
  session.enableRecording(false);
  const std::vector<OpRecord> records = session.takeRecords(); // as they were enqueued
  std::vector<double> medians;
  for (size_t i = 0; i < engines.size(); ++i) {
    std::vector<double> times;
    for (size_t r = i; r < records.size(); r += engines.size())
      times.push_back(records[r].end - records[r].start);
    std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
    medians.push_back(times[rounds / 2]);
  }
  return medians;
}

EngineTime fastest(Session &session, const ConvTask &task, std::unique_ptr<ConvEngine> own) {
  const std::string words = task.text(), name = own->name();
  std::vector<std::unique_ptr<ConvEngine>> engines;
  if (!recordedFor(words))
    engines = own->alternatives(candidates);
  const auto isOwn = [&](const std::unique_ptr<ConvEngine> &engine) { return engine->name() == name; };
  auto place = std::find_if(engines.begin(), engines.end(), isOwn);
  if (place == engines.end())
    place = engines.insert(engines.begin(), std::move(own));
  const size_t ranked = static_cast<size_t>(place - engines.begin());
  const std::vector<double> seconds = secondsOf(session, task, engines);
  size_t best = static_cast<size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
  if (seconds[best] >= clearlyFaster * seconds[ranked])
    best = ranked;
  return {words, engines[best]->name(), engines[best]->parts(), seconds[best], seconds[ranked]};
}

} // namespace

void setRecordedEngines(const EngineChoice *choices, int count) { recorded = {choices, count}; }

const EngineChoice *useEngine(const ConvTask &task) {
  const std::string words = task.text();
  const std::lock_guard<std::mutex> lock(tasksMutex);
  tasks().emplace(words, task);
  return recordedFor(words);
}

std::vector<EngineTime> measureEngines() {
  size_t largest = 0;
  for (const auto &[words, task] : tasks())
    largest = std::max(largest, Operands(task).bytes);
  std::vector<EngineTime> times;
  if (largest == 0)
    return times;
  Session session(largest, 0, 0);
  std::vector<ConvTask> all;
  for (const auto &[words, task] : tasks())
    all.push_back(task);
  std::stable_sort(all.begin(), all.end(),
                   [](const ConvTask &a, const ConvTask &b) { return products(a) > products(b); });
  const auto begin = std::chrono::steady_clock::now();
  for (const ConvTask &task : all) {
    if (std::chrono::steady_clock::now() - begin > patience)
      break;
    std::string reason;
    if (std::unique_ptr<ConvEngine> engine = ConvEngine::choose(task, reason))
      times.push_back(fastest(session, task, std::move(engine)));
  }
  return times;
}

} // namespace sluice
