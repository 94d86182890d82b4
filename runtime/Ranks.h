// SPDX-License-Identifier: Apache-2.0
// The processes that train one model together, and how they talk. An interface: programs that were compiled without
// --ranks have no library for it. Standard library only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice {

/// Another rank has failed (exit status 6).
struct RankFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One side of a transfer between two ranks; the other one has the matching side, of as many bytes.
struct Message {
  int peer;
  void *data; ///< read where it is sent
  size_t bytes;
  bool sends;
};

/// What a rank waits for, as errors say it: "the sum of gradients of 'conv1' in step 12". Both texts outlive the
/// program.
struct Awaited {
  const char *what, *node = nullptr;
  int64_t step = 0; ///< 0: none
  std::string text() const;
};

/// Messages between the memories of the ranks' devices. Functions enqueue on a stream of the device (cuda: a
/// cudaStream_t), are called as those of Ranks, and throw RankFailed where nothing can be enqueued; what is lost later
/// ends the run as a lost rank does.
class DeviceRanks {
public:
  virtual ~DeviceRanks() = default;
  /// All messages at once, as Ranks::exchange().
  virtual void exchange(const std::vector<Message> &messages, void *stream, const Awaited &awaited) = 0;
  /// As Ranks::add().
  virtual void add(float *values, size_t count, void *stream, const Awaited &awaited) = 0;
  /// What this process waits for while it waits for the device; until the next call.
  virtual void waitFor(const Awaited &awaited) = 0;
};

/// Functions block, are called by one thread at a time, by all ranks in the same order with the same sizes, and throw
/// RankFailed where they cannot go on.
class Ranks {
public:
  virtual ~Ranks() = default;
  int rank() const { return number; }
  int size() const { return count; }
  /// "rank 2 on node7".
  std::string nameOf(int rank) const;

  /// All messages at once. Between two ranks those of one direction arrive in the order of the lists.
  virtual void exchange(const std::vector<Message> &messages, const Awaited &awaited) = 0;
  /// values[i] = the sum of all ranks' values[i], in the order that the library takes.
  virtual void add(float *values, size_t count, const Awaited &awaited) = 0;

  /// Of ranks that compute on devices, once these are connected; else null.
  virtual DeviceRanks *onDevices() { return nullptr; }
  /// Once, by all ranks that have agreed, before they allocate anything: all that their devices need to talk.
  virtual void connectDevices() {}

  /// From now on a rank that has ended or stands still ends this one, too, within 10 s, whatever it is doing: `say` is
  /// called with a line about it, in one of the ranks, on any thread. Where `asked` says that somebody has asked this
  /// process to end, as launchers do once a rank is gone, it is called with what is waited for.
  virtual void watch(std::function<void(const std::string &line)> say, std::function<bool()> asked) = 0;
  /// What this process has waited for so long that a line should say so, once among the ranks that wait for one: "rank
  /// 0 on node6 waits for the sum over all ranks of 'conv1' in step 12 from rank 2 on node7", or nothing: "". Any
  /// thread.
  virtual std::string whatWaits() { return ""; }
  /// Ends all ranks at once, with a line about this one, for a process that cannot end by itself since one of its
  /// threads stands still. Any thread.
  [[noreturn]] virtual void endAll(const std::string &line) = 0;
  /// Tells the others that this rank ends with an error, which they do without a line.
  virtual void fail() noexcept = 0;
  /// All ranks have done with one another. What does not call it has failed.
  virtual void finish() = 0;

  /// What all ranks have, in their order, of as many bytes each.
  std::vector<char> gather(const void *mine, size_t bytes, const Awaited &awaited);
  /// The same of text of any length.
  std::vector<std::string> gather(const std::string &mine, const Awaited &awaited);

protected:
  Ranks(int number, int count) : number(number), count(count) {}
  /// Asks all for their nodes' names.
  void setNode(const std::string &own) { nodes = gather(own, {"the names of all nodes"}); }

private:
  int number, count;
  std::vector<std::string> nodes;
};

/// Elements of a tensor that one of several ranks sees to.
struct Share {
  int64_t first, count;
};
/// As even as can be with shares of one length, the last ones shorter or empty.
constexpr Share shareOf(int64_t elements, int rank, int ranks) {
  const int64_t length = (elements + ranks - 1) / ranks, first = rank * length < elements ? rank * length : elements;
  return {first, length < elements - first ? length : elements - first};
}

/// The most that a program takes: what sums receive from them has a place in the budget.
constexpr int mostRanks = 1024;

/// The instructions that kernels use on this machine: "AVX512_CORE"; cuda: the device's compute capability and the
/// library of kernels. Ranks with others have other bits.
std::string instructionsInEffect();

/// Through MPI: what mpirun or srun has started; null where this process was started alone. In the library that
/// programs link for --ranks=mpi. Throws UsageError where several processes were started that MPI does not connect.
std::unique_ptr<Ranks> joinMpi();

/// As joinMpi(), of processes with a GPU each, between whose memories NCCL carries what ranks sum; those that MPI does
/// not connect are joined by what torchrun or Slurm says in the environment. Takes the GPU of this process's number on
/// its node, before the device is used. In the library that programs link for --ranks=nccl.
std::unique_ptr<Ranks> joinNccl();

} // namespace sluice
