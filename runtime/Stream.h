// SPDX-License-Identifier: Apache-2.0
// Streams, events and the session that owns the arenas. Everything enqueued on one stream runs in order; streams run
// beside each other and are ordered by events alone. Host: a stream is a thread with a queue. Cuda: a stream is a
// cudaStream_t.
#pragma once

#include "runtime/CodecTable.h"
#include "runtime/OpRoleTable.h"
#include "runtime/StreamTable.h"
#include "runtime/Tensor.h"

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice {

class Ranks;
class Session;

/// An arena or a workspace cannot be had (exit status 3). The message names both numbers.
struct MemoryNotAvailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Cuda: the device or its driver failed while it was in use (exit status 4). The message begins with "CUDA".
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The node of the model that an op belongs to, and what the op is there for. Generated programs give a kernel the node
/// alone, or say for what their plan runs it besides.
struct Node {
  const char *name = nullptr; ///< must outlive the program
  OpRole role = OpRole::Compute;
  Codec codec = {}; ///< of copies, encode and decode; none where these make or read a mask

  constexpr Node() = default;
  constexpr Node(const char *name, OpRole role = OpRole::Compute, Codec codec = {})
      : name(name), role(role), codec(codec) {}
  constexpr operator const char *() const { return name; }
  /// This node with the role and the codec that the kernel has by nature, where the program gave no role; else as it
  /// is.
  constexpr Node as(OpRole nature, Codec with = {}) const {
    return role == OpRole::Compute ? Node(name, nature, with) : *this;
  }
};

/// For messages.
inline std::string operator+(std::string text, const Node &node) { return std::move(text += node.name); }

/// As traces and profiles say it.
inline std::string nameOf(const Node &node) { return std::string(node.name) + factsOf(node.role).ending; }

/// One executed op, in seconds since the session began. `bytes`: of a copy the raw tensor's; of a kernel that packs or
/// unpacks in device memory (masks apart) 4 for each element, halves or not, and so of a cuda copy with a codec other
/// than zvc; of all others 0. `zeros`: the share of zeros in each tensor that the op wrote, where those were counted.
struct OpRecord {
  Node node;
  const char *op;
  StreamId stream;
  double start, end;
  size_t bytes;
  std::vector<double> zeros = {};
};

/// Index into the session's events. A wait waits for the latest record of that event which was enqueued before the wait
/// was; with no such record it waits for nothing. One event is recorded on one stream only.
struct Event {
  int id = -1;
};

class Stream {
public:
  Stream(Session &session, StreamId id);
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  /// Enqueue and return at once; the host blocks the caller while 4096 tasks of the stream have not run. Throw
  /// std::invalid_argument for an event that the session does not have.
  void record(Event event);
  void wait(Event event);
  /// Blocks the caller until all that was enqueued here has run. Host: rethrows the first exception that a kernel of
  /// the session threw, on whatever stream; kernels behind it were skipped. Cuda: throws DeviceError; what kernels have
  /// noted, such as a wrong id, is for Session::synchronize() and take().
  void synchronize();

  /// For kernels. Host: enqueues `work`, whose exception synchronize() rethrows. Cuda: calls `work` at once, which
  /// enqueues on native(), and throws what it throws, or DeviceError. `node` and `op` name it in traces and profiles
  /// and must outlive the program; `bytes` as OpRecord has them.
  void launch(Node node, const char *op, std::function<void()> work, size_t bytes = 0);

  /// After a kernel that wrote these tensors of floats, adds their shares of zeros (of the whole bit pattern) to its
  /// record, if the session counts zeros.
  void countZeros(std::initializer_list<Tensor> written);

  /// Cuda: the cudaStream_t. Host: null.
  void *native() const;

  /// Address of a tensor in the device or host arena; null for one that is absent. Throws std::out_of_range when it
  /// reaches beyond the arena, std::invalid_argument when another arena has it. Counts for Session::peak().
  void *address(const Tensor &tensor) const;
  template <typename T> T *data(const Tensor &tensor) const { return static_cast<T *>(address(tensor)); }

  Session &session;
  const StreamId id;

private:
  friend class Session;
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Hyperparameters and counters that a step reads. The loop sets batch, batchShare, mixShare and step
/// (runtime/program/Step.cpp), flags and the schedule the others (Schedule.cpp). HUGE_VALF: nothing is clipped. Set
/// them while nothing runs. On cuda kernels read a copy in device memory, which is brought up to date before each step,
/// so that a captured graph sees their changes.
struct StepState {
  float learningRate = 0, momentum = 0, weightDecay = 0, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, alpha = 0.99f,
        rateDecay = 0;
  float clipValue = HUGE_VALF, clipNorm = HUGE_VALF; ///< of each element of a gradient, of all gradients together
  float averageDecay = 0, labelSmoothing = 0;
  float mixShare = 1;   ///< --mixup: what a sample's own class counts in a loss, the rest is that of the one before it
  int64_t mixBatch = 1; ///< samples of a batch; the last one precedes the first
  int32_t nesterov = 0;
  int32_t scaleIsFixed = 0; ///< of the loss, see LossScale.h: it neither halves nor doubles
  int32_t batch = 0;        ///< of this step, from 0; parameters change after the last one
  float batchShare = 1;     ///< weight of this batch in the mean over the step's batches so far, 0 to 1
  int64_t batches = 1;      ///< that a step has, of each rank
  uint64_t seed = 0;
  int64_t step = 0;       ///< 1 in the first step
  int64_t otherSteps = 0; ///< of these, steps of other turns, which change other parameters
  int32_t rank = 0, ranks = 1;
  float unitWeight = 1; ///< of this batch: the share of its targets that count, or their mean weight
  float meanFactor = 1; ///< in the last batch: one by the sum of all units' weights

  /// How often the parameters of this step are changed with it: 1 the first time.
  int64_t update() const { return step - otherSteps; }
  /// Batches of a step of all ranks, and which of them this one is: those of a rank follow one another.
  int64_t units() const { return batches * ranks; }
  int64_t unit() const { return rank * batches + batch; }
  /// Counts units over the whole run: what random draws are keyed by.
  int64_t draw() const { return (step - 1) * units() + unit() + 1; }
  bool lastBatch() const { return batch == batches - 1; }
};

/// Which parameter of a program: its number in the table of variables (Program::variables).
struct ParameterId {
  int number = -1;
};

/// What a group of parameters has of its own.
struct ParameterGroup {
  float rate = 1;         ///< factor of the learning rate
  float weightDecay = -1; ///< negative: that of the step
};

/// Bytes of what a program has beside the arenas of device and host.
struct ArenaSizes {
  size_t pool = 0;  ///< the last bytes of the host arena: packed forms of tensors in Space::Spill as far as they fit
  size_t spill = 0; ///< Space::Spill; host: a file's; cuda: offsets without memory
  size_t storage = 0;
};

class PackedPool;

/// One stream of each row of the table.
inline std::array<std::unique_ptr<Stream>, streamCount> makeStreams(Session &session) {
  std::array<std::unique_ptr<Stream>, streamCount> streams;
  for (const StreamFacts &facts : streamTable)
    streams[indexOf(facts.id)] = std::make_unique<Stream>(session, facts.id);
  return streams;
}

/// The arenas, the streams and the events. Allocated once, with the exact sizes of the plan; nothing large is allocated
/// during a step.
class Session {
public:
  /// Throws MemoryNotAvailable naming both numbers when an arena cannot be had. `hostFile`, a file that must not exist
  /// yet, holds the arena of storage or the spill arena or, where there is neither, the host arena; cuda refuses any,
  /// with MemoryNotAvailable. Memory in poison mode (SLUICE_POISON=1) begins as NaN.
  Session(size_t deviceBytes, size_t hostBytes, int eventCount, const char *hostFile = nullptr, ArenaSizes others = {});
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// Enqueues one batch of a step or of evaluation by calling `body`, with nothing of another one still running, but
  /// see runsAhead(). Returns when all is enqueued; the caller gets what `body` throws, and synchronize() or take()
  /// throw what its kernels find. Cuda: the calls are captured into a graph, once per `body` and batch slot, and the
  /// graph is launched; not so in the first call for a `body`, while ops are recorded, gradients are shown or graphs
  /// are disabled. Graphs are found by the address of `body`: it must outlive the session, or another function at its
  /// address would run its graph, and a copy of it is captured anew.
  void enqueue(const std::function<void(Session &)> &body);
  /// Whether the next batch may be enqueued for `body` while the last one still runs: on cuda, where both batch slots
  /// have their graph and enqueue() would launch it, and not in poison mode.
  bool runsAhead(const std::function<void(Session &)> &body) const;

  /// Queues these F32 scalars of the batch that was enqueued last for take(), mostScalars at most, absent ones as 0.
  /// Cuda: at most two batches are queued; one more, or a scalar more, is a std::logic_error. The host, where none runs
  /// ahead, keeps those of one batch: another leave() replaces them.
  void leave(const std::vector<Tensor> &scalars);
  static constexpr size_t mostScalars = 64;
  /// Waits for the earliest batch that left something, and throws what synchronize() throws for it; cuda:
  /// std::logic_error when none did. Writes as many scalars as that leave() was given, in its order. When it returns,
  /// the staging slots of every batch that was enqueued so far have been read and may be filled again.
  void take(float *scalars);
  /// What it returns waits for the end of the step that left something last, and throws as Stream::synchronize(). It
  /// may be called on another thread, until that step is taken.
  std::function<void()> stepEnd();
  /// Cuda: whether enqueue() captures and launches graphs, as it does at first. Host: nothing to do.
  void enableGraphs(bool on);

  /// The slot of the current batch: inputs have two device slots that alternate from batch to batch.
  Tensor batch(const Tensor (&slots)[2]) const { return slots[batchParity]; }
  Tensor nextBatch(const Tensor (&slots)[2]) const { return slots[1 - batchParity]; }

  /// Tells the session that nothing reads these bytes of the device or host arena any more. In poison mode fills them
  /// with NaN on the compute stream, else does nothing.
  void release(const Tensor &tensor);

  /// Waits for all streams; in poison mode also checks that nothing was written outside the arenas.
  void synchronize();

  /// For the code around the step (initial values, losses, checkpoints): synchronizes, and throws what that throws,
  /// then copies a tensor's bytes out of or into its arena (on the host of storage, too). The copy is done when they
  /// return. `to` and `from` hold tensor.bytes() bytes in the tensor's own layout.
  void read(const Tensor &tensor, void *to);
  void write(const Tensor &tensor, const void *from);

  /// The group of a parameter. Cuda: graphs keep what they were captured with, so groups are made before the first
  /// step.
  ParameterGroup groupOf(ParameterId parameter) const {
    const auto found = groups.find(parameter.number);
    return found == groups.end() ? ParameterGroup() : found->second;
  }

  /// After synchronize() threw what a kernel found in its data, such as ValueNotStorable: the next step may run. What
  /// the one that ended so has written is undefined, but for parameters and states.
  void forgetFailure();

  /// Shows an F32 gradient to `onGradient`, right after it was computed and before its update, in the last batch of a
  /// step; does nothing while that is empty. Host: the hook runs on the compute stream's thread, in its order. Cuda: it
  /// runs on this thread, which waits for the compute stream, and sees the gradient divided by the loss's scale. One
  /// that lies in the host arena, for an update there, is shown on `home` instead. `data` is readable by the CPU, in
  /// the tensor's layout, until the hook returns. A gradient that is made in rows comes in
  /// their order: `first` is the row of the parameter that these begin with.
  void captureGradient(const char *parameter, const Tensor &gradient, int64_t first = 0);
  std::function<void(const char *parameter, const Tensor &gradient, int64_t first, const void *data)> onGradient;

  /// Largest offset + size of all tensors of that arena whose address was asked for: what the program really used.
  size_t peak(Space space) const;

  /// Bytes in use on the whole device, those of other processes among them: arena, context, libraries. 0 on the host.
  size_t driverBytes() const;

  /// Counts what copies with zvc left in host slots, for the report. Any thread.
  void notePacked(size_t raw, size_t packed);
  struct PackedBytes {
    size_t raw, packed;
    size_t spilled;  ///< of `packed`, to the spill arena
    size_t poolPeak; ///< most bytes of the pool in use
  };
  PackedBytes packedBytes() const; ///< since the session began
  /// Null without a pool.
  PackedPool *packedPool() const;

  /// Recording of every op's times, off at first; with `zeros` of shares of zeros, too, which takes time beside that of
  /// the ops.
  void enableRecording(bool on, bool zeros = false);
  /// The records since the last call, which this empties: the host's stream by stream, cuda's in the order of launches.
  /// After synchronize().
  std::vector<OpRecord> takeRecords();

  struct Impl;
  std::unique_ptr<Impl> impl;

  std::array<std::unique_ptr<Stream>, streamCount> streams; ///< by StreamId
  Stream &stream(StreamId id) const { return *streams[indexOf(id)]; }
  Stream &compute = stream(StreamId::Compute), &toHost = stream(StreamId::ToHost),
         &toDevice = stream(StreamId::ToDevice), &codec = stream(StreamId::Codec), &storage = stream(StreamId::Storage),
         &communication = stream(StreamId::Communication), &home = stream(StreamId::Home);
  StepState state;
  std::map<int, ParameterGroup> groups; ///< by the parameter's number
  Ranks *ranks = nullptr;               ///< that train together; null: this process alone
  bool sharesStates = false;            ///< each of them updates its share of a parameter, and has states of that alone
  std::vector<float> unitWeights;       ///< in the last batch: of each rank's, where steps have one batch of each
  int batchParity = 0;
};

/// Enqueue a copy between the arenas on `stream`, which the table has for the arena and direction. `from` and `to` lie
/// in the device arena and in that of host or spill, one each; they have the same byte size, else
/// std::invalid_argument, and share no bytes. What fails later is thrown by synchronize(). Generated programs call
/// these by the names in arenaTable (copyOut, copyIn), with a codec the overloads of Codec.h.
void copyToHost(Stream &stream, const Tensor &from, const Tensor &to, Node node);
void copyToDevice(Stream &stream, const Tensor &from, const Tensor &to, Node node);
/// Host alone: between the device arena and the file of storage, at once throwing UsageError in a session without one,
/// std::invalid_argument for another arena than storage or for two sizes. The file's failures are MemoryNotAvailable,
/// thrown by synchronize().
void copyToStorage(Stream &stream, const Tensor &from, const Tensor &to, Node node);
void copyFromStorage(Stream &stream, const Tensor &from, const Tensor &to, Node node);

} // namespace sluice
