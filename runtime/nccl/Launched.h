// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each that a launcher starts which connects nothing: torchrun, or srun without MPI. What it says in
// the environment is who they are and where rank 0 listens. NCCL carries all that they say, and what NCCL finds lost
// ends them: a rank that stands still is waited for, unless the launcher ends it.
#pragma once

#include "runtime/nccl/Communicator.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace sluice {

/// This process among those that a launcher has started.
struct LaunchedPlace {
  int number, count, onNode; ///< the last: among those of its node
  std::string address;       ///< of rank 0, "node6:29501"
};
/// Of RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, or of Slurm's SLURM_PROCID, SLURM_STEP_NUM_TASKS and
/// SLURM_LOCALID with the last two of those; the port is the one behind MASTER_PORT, which torchrun has itself.
/// Nothing where one process was started. Throws UsageError where some of that is missing or no number.
std::optional<LaunchedPlace> launchedPlace();

class LaunchedRanks : public Ranks {
public:
  /// Chooses this process's device and connects it. NCCL_COMM_ID in the environment goes before the address.
  explicit LaunchedRanks(const LaunchedPlace &place);
  ~LaunchedRanks() override;

  DeviceRanks *onDevices() override { return &devices; }
  void exchange(const std::vector<Message> &messages, const Awaited &awaited) override;
  void add(float *values, size_t count, const Awaited &awaited) override;
  void watch(std::function<void(const std::string &)> say, std::function<bool()> asked) override;
  [[noreturn]] void endAll(const std::string &line) override; // the launcher ends the others
  void fail() noexcept override { stopWatching(); }           // the launcher ends the others
  void finish() override;

private:
  void setWaiting(const Awaited &awaited);
  void watchNccl();
  void stopWatching() noexcept;
  char *staged(size_t bytes);
  void copy(void *to, const void *from, size_t bytes);
  void synchronize(const Awaited &awaited);

  NcclCommunicator devices;
  void *stream = nullptr; ///< of what is said here
  char *stage = nullptr;  ///< of what is on its way, in the GPU's memory
  size_t stageBytes = 0;
  std::mutex mutex; ///< of what is waited for, and of whether the watch is over
  std::string awaitedText;
  bool over = false;
  std::condition_variable wake;
  std::function<void(const std::string &)> say;
  std::thread watcher;
};

} // namespace sluice
