// SPDX-License-Identifier: Apache-2.0
// Streams of the cuda runtime: non-blocking cudaStream_ts, ordered by cudaEvent_ts alone. A step is enqueued call by
// call the first time, which loads every kernel; from the second time on it is captured into a graph for each batch
// slot. Inside a capture the copy streams are forked from the compute stream and joined back, and a wait for an event
// that this capture has not recorded is left out, as is one for a captured event outside: nothing of another step is
// running.
#include "runtime/Stream.h"

#include "runtime/Ranks.h"
#include "runtime/Watchdog.h"
#include "runtime/cuda/CudaEvent.h"
#include "runtime/cuda/Gather.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Memory.h"
#include "runtime/cuda/StepGraphs.h"
#include "runtime/cuda/StepResults.h"
#include "runtime/cuda/ZeroCounts.h"
#include "runtime/cuda/ZeroValue.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace sluice {

namespace {

bool poisonWanted() {
  const char *value = getenv("SLUICE_POISON");
  return value && strcmp(value, "1") == 0;
}

/// An op between two events, until its times are asked for.
struct Recorded {
  Node node;
  const char *op;
  StreamId stream;
  size_t bytes;
  CudaEvent start, end;
  std::vector<size_t> counted = {}; ///< of its tensors, in ZeroCounts
};

} // namespace

struct Session::Impl {
  Impl(size_t deviceBytes, size_t hostBytes, int eventCount, ArenaSizes others)
      : poison((Device::get(), poisonWanted())), device(Space::Device, deviceBytes, poison),
        host(Space::Host, hostBytes, poison), fork(cudaEventDisableTiming), broughtIn(cudaEventDisableTiming),
        nextBatch(cudaEventDisableTiming), recordedIn(static_cast<size_t>(eventCount)) {
    for (int s = 0; s < streamCount; ++s)
      joins.emplace_back(cudaEventDisableTiming);
    for (int i = 0; i < eventCount; ++i)
      events.emplace_back(cudaEventDisableTiming);
    clearPackedTotals();
    if (others.pool > 0)
      pool.emplace(host.base(), hostBytes, others);
    checkCuda(cudaStreamSynchronize(nullptr), "cannot fill the arenas");
  }

  size_t index(Event event) const {
    if (event.id < 0 || event.id >= static_cast<int>(events.size()))
      throw std::invalid_argument("event " + std::to_string(event.id) + " of a session with " +
                                  std::to_string(events.size()) + " events");
    return static_cast<size_t>(event.id);
  }

  /// `again`: even what is there already, which checkGradients() may have changed since.
  void uploadState(Session &session, bool again) {
    const StepState &now = session.state;
    if (!again && stateOf == number && memcmp(&now, &uploadedState, sizeof now) == 0)
      return;
    storeDeviceState(sluice::native(session.compute), DeviceState(now));
    uploadedState = now;
    stateOf = number;
  }

  void makeGraph(Session &session, const std::function<void(Session &)> &body, cudaGraphExec_t &exec);
  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

  bool poison;
  Arena device, host;
  std::optional<PackedPool> pool;
  std::vector<CudaEvent> events;
  CudaEvent fork;
  std::vector<CudaEvent> joins; ///< by stream; compute's is not used
  CudaEvent broughtIn;          ///< the copies to the device of the step that was replayed last are done
  CudaEvent nextBatch;          ///< the batch of the step that was enqueued last is on the device
  StepResults results;
  std::vector<int> recordedIn;   ///< by event: number of the capture that recorded it last, 0 outside of captures
  int capture = 0, captures = 0; ///< number of the running capture (0: none), and of all so far
  bool graphs = true, recording = false;
  GatherState gathering;
  StepGraphs stepGraphs;
  StepState uploadedState;
  static inline int sessions = 0, stateOf = 0; ///< so far; whose state the device has, where there is one place for it
  const int number = ++sessions;
  size_t peaks[arenaCount] = {}; ///< by Space
  std::vector<Recorded> records;
  std::unique_ptr<ZeroCounts> zeros; ///< null: not counted
  std::unique_ptr<CudaEvent> recordBase;
  double recordBegin = 0; ///< of recordBase, since the session began
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  std::vector<char> shown; ///< a gradient on its way to onGradient
};

struct Stream::Impl {
  /// The stream's kernels have its priority, those of a graph that it was captured into, too.
  explicit Impl(const StreamFacts &facts) {
    int least = 0, greatest = 0;
    checkCuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cannot read the priorities of streams");
    checkCuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, facts.urgent ? greatest : least),
              "cannot create a stream");
  }
  ~Impl() { cudaStreamDestroy(stream); }
  cudaStream_t stream = nullptr;
};

Stream::Stream(Session &session, StreamId id) : session(session), id(id), impl(std::make_unique<Impl>(factsOf(id))) {}
Stream::~Stream() = default;

void *Stream::native() const { return impl->stream; }

void Stream::record(Event event) {
  Session::Impl &owner = *session.impl;
  const size_t i = owner.index(event);
  owner.recordedIn[i] = owner.capture;
  checkCuda(cudaEventRecord(owner.events[i].event, impl->stream), "cannot record an event");
}

void Stream::wait(Event event) {
  const Session::Impl &owner = *session.impl;
  const size_t i = owner.index(event);
  if (owner.recordedIn[i] != owner.capture)
    return;
  checkCuda(cudaStreamWaitEvent(impl->stream, owner.events[i].event, 0), "cannot wait for an event");
}

void Stream::synchronize() { checkCuda(cudaStreamSynchronize(impl->stream), "failed while the program ran"); }

void Stream::launch(Node node, const char *op, std::function<void()> work, size_t bytes) {
  Session::Impl &owner = *session.impl;
  launchKept(*this);
  if (owner.recording) {
    Recorded record{node, op, id, bytes, CudaEvent(cudaEventDefault), CudaEvent(cudaEventDefault)};
    checkCuda(cudaEventRecord(record.start.event, impl->stream), "cannot record a time");
    work();
    checkCuda(cudaEventRecord(record.end.event, impl->stream), "cannot record a time");
    owner.records.push_back(std::move(record));
  } else {
    work();
  }
  if (const cudaError_t error = cudaPeekAtLastError(); error != cudaSuccess)
    checkCuda(error, (std::string(op) + " of '" + node + "' cannot be launched").c_str());
}

void Stream::countZeros(std::initializer_list<Tensor> written) {
  Session::Impl &owner = *session.impl;
  if (!owner.zeros)
    return;
  for (const Tensor &tensor : written)
    if (const auto count = owner.zeros->add(sluice::native(*this), address(tensor), tensor))
      owner.records.back().counted.push_back(*count);
}

GatherState &gatherState(Session &session) { return session.impl->gathering; }

void *Stream::address(const Tensor &tensor) const {
  Session::Impl &owner = *session.impl;
  if (tensor.space > Space::Host)
    throw std::invalid_argument(std::string("a tensor of the ") + factsOf(tensor.space).name + " arena has no address");
  const Arena &arena = tensor.space == Space::Device ? owner.device : owner.host;
  if (!tensor.present)
    return nullptr;
  const size_t end = tensor.offset + tensor.bytes();
  if (end > arena.size())
    throw std::out_of_range("a tensor at [" + std::to_string(tensor.offset) + ", " + std::to_string(end) +
                            ") of an arena of " + std::to_string(arena.size()) + " bytes");
  size_t &peak = owner.peaks[indexOf(tensor.space)];
  peak = std::max(peak, end);
  return arena.base() + tensor.offset;
}

Session::Session(size_t deviceBytes, size_t hostBytes, int eventCount, const char *hostFile, ArenaSizes others)
    : impl((hostFile ? throw MemoryNotAvailable("CUDA copies from locked memory: the host arena cannot lie in a file")
                     : 0,
            std::make_unique<Impl>(deviceBytes, hostBytes, eventCount, others))),
      streams(makeStreams(*this)) {}

// Nothing may read the arenas any more when they go. Errors were reported, or are about to be. Not the whole device:
// that would end a graph which another library captures.
Session::~Session() {
  for (const auto &stream : streams)
    cudaStreamSynchronize(sluice::native(*stream));
}

const DeviceState *deviceState(Stream &stream) {
  Session::Impl &owner = *stream.session.impl;
  if (owner.capture == 0)
    owner.uploadState(stream.session, false);
  return deviceStateAddress();
}

void watchStreams(Session &, double, OnStuck) {}

void Session::enableGraphs(bool on) { impl->graphs = on; }

// Ranks meet on the CPU between the batch that is enqueued and the one before it: each at the same places, whatever it
// records or shows beside the others.
bool Session::runsAhead(const std::function<void(Session &)> &body) const {
  return !ranks && impl->graphs && !impl->recording && !onGradient && !impl->poison && impl->stepGraphs.areMade(&body);
}

void Session::leave(const std::vector<Tensor> &scalars) {
  std::vector<const float *> addresses;
  for (const Tensor &scalar : scalars)
    addresses.push_back(compute.data<const float>(scalar));
  impl->results.leave(sluice::native(compute), addresses);
}

void Session::take(float *scalars) {
  if (impl->results.waiting() == 1)
    synchronize();
  impl->results.take(scalars);
  checkCuda(cudaEventSynchronize(impl->nextBatch.event), "failed while the program ran");
  if (ranks)
    ranks->onDevices()->waitFor({""});
}

std::function<void()> Session::stepEnd() {
  return [event = impl->results.end()] { checkCuda(cudaEventSynchronize(event), "failed while the program ran"); };
}

void Session::enqueue(const std::function<void(Session &)> &body) {
  if (ranks)
    ranks->onDevices()->waitFor({"what its GPU computes", nullptr, state.step});
  // After a step that still runs nobody has waited for the batch.
  checkCuda(cudaEventRecord(impl->nextBatch.event, sluice::native(toDevice)), "cannot record an event");
  checkCuda(cudaStreamWaitEvent(sluice::native(compute), impl->nextBatch.event, 0), "cannot wait for a batch");
  impl->uploadState(*this, true);
  if (impl->pool)
    impl->pool->beginStep(sluice::native(compute));
  bool first = false;
  StepGraphs::Graph &graph = impl->stepGraphs.enqueue(&body, batchParity, ranks && state.lastBatch(), first);
  if (first || !impl->graphs || impl->recording || onGradient)
    return body(*this);
  if (!graph.exec)
    impl->makeGraph(*this, body, graph.exec);
  checkCuda(cudaGraphLaunch(graph.exec, sluice::native(compute)), "cannot launch the step's graph");
  // The next batch has a step's time to come, the step's own copies have not: outside a graph their stream keeps order.
  checkCuda(cudaStreamWaitEvent(sluice::native(toDevice), impl->broughtIn.event, 0), "cannot wait for a step's copies");
}

void Session::Impl::makeGraph(Session &session, const std::function<void(Session &)> &body, cudaGraphExec_t &exec) {
  const cudaStream_t compute = sluice::native(session.compute);
  const char *what = "cannot capture a step into a graph; run with --no-graph";
  checkCuda(cudaStreamBeginCapture(compute, cudaStreamCaptureModeRelaxed), what);
  capture = ++captures;
  cudaGraph_t graph = nullptr;
  try {
    checkCuda(cudaEventRecord(fork.event, compute), what);
    for (int s = 1; s < streamCount; ++s)
      checkCuda(cudaStreamWaitEvent(sluice::native(*session.streams[s]), fork.event, 0), what);
    body(session);
    checkCuda(cudaEventRecordWithFlags(broughtIn.event, sluice::native(session.toDevice), cudaEventRecordExternal),
              what); // a node, to be joined
    for (int s = 1; s < streamCount; ++s)
      checkCuda(cudaEventRecord(joins[s].event, sluice::native(*session.streams[s])), what);
    for (int s = 1; s < streamCount; ++s)
      checkCuda(cudaStreamWaitEvent(compute, joins[s].event, 0), what);
    capture = 0;
  } catch (...) {
    capture = 0;
    if (cudaStreamEndCapture(compute, &graph) == cudaSuccess && graph)
      cudaGraphDestroy(graph);
    throw;
  }
  checkCuda(cudaStreamEndCapture(compute, &graph), what);
  // Kernels keep the priorities of the streams that they were captured from; nodes that copy have none.
  const cudaError_t made = cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagUseNodePriority);
  cudaGraphDestroy(graph);
  checkCuda(made, what);
}

void Session::release(const Tensor &tensor) {
  if (!impl->poison || !tensor.present)
    return;
  void *bytes = compute.address(tensor);
  compute.launch("release", "poison", [this, bytes, size = tensor.bytes()] {
    checkCuda(cudaMemsetAsync(bytes, 0xff, size, sluice::native(compute)), "cannot poison a slot");
  });
}

void Session::synchronize() {
  for (const auto &stream : streams)
    stream->synchronize();
  checkNotes();
  if (impl->poison) {
    impl->device.checkGuards();
    impl->host.checkGuards();
  }
}

void Session::forgetFailure() { clearNotes(); }

void Session::captureGradient(const char *parameter, const Tensor &gradient, int64_t first) {
  if (!onGradient || !state.lastBatch())
    return;
  impl->shown.resize(gradient.bytes());
  deviceState(compute); // which has the factor below
  compute.synchronize();
  home.synchronize(); // which waits for the copy of one that lies on the host
  checkCuda(cudaMemcpy(impl->shown.data(), compute.address(gradient), gradient.bytes(), cudaMemcpyDefault),
            "cannot read a gradient");
  // Of a scaled loss, whose check is after us.
  if (const float factor = gradientFactor(); factor != 1)
    for (size_t i = 0; i < gradient.bytes() / sizeof(float); ++i)
      reinterpret_cast<float *>(impl->shown.data())[i] *= factor;
  onGradient(parameter, gradient, first, impl->shown.data());
}

size_t Session::peak(Space space) const {
  return std::max(impl->peaks[indexOf(space)], space == Space::Host && impl->pool ? impl->pool->peakEnd() : 0);
}

PackedPool *Session::packedPool() const { return impl->pool ? &*impl->pool : nullptr; }

void Session::enableRecording(bool on, bool zeros) {
  impl->zeros = on && zeros ? std::make_unique<ZeroCounts>() : nullptr;
  if (on && !impl->recording) {
    impl->recordBase = std::make_unique<CudaEvent>(cudaEventDefault);
    impl->recordBegin = impl->now();
    checkCuda(cudaEventRecord(impl->recordBase->event, sluice::native(compute)), "cannot record a time");
  }
  impl->recording = on;
}

std::vector<OpRecord> Session::takeRecords() {
  std::vector<OpRecord> all;
  auto seconds = [&](const CudaEvent &event) {
    float milliseconds = 0;
    checkCuda(cudaEventElapsedTime(&milliseconds, impl->recordBase->event, event.event), "cannot read a time");
    return impl->recordBegin + static_cast<double>(milliseconds) * 1e-3;
  };
  const std::vector<double> zeros = impl->zeros ? impl->zeros->take() : std::vector<double>();
  for (const Recorded &record : impl->records) {
    all.push_back({record.node, record.op, record.stream, seconds(record.start), seconds(record.end), record.bytes});
    for (size_t count : record.counted)
      all.back().zeros.push_back(zeros.at(count));
  }
  impl->records.clear();
  return all;
}

} // namespace sluice
