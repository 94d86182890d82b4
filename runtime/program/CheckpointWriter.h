// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints while training goes on: what a step changes is copied between two steps, a thread writes the copy.
#pragma once

#include "runtime/program/Checkpoint.h"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace sluice {

/// Host memory that the copy takes, beside the host arena; 0 where it would exceed the host budget that the plan was
/// made for. Then training waits while a checkpoint is written. `trainedOnly`: it lacks frozen weights.
size_t checkpointCopyBytes(const Program &program, bool trainedOnly);

/// Says what is taken, or why nothing is.
void announceCheckpointCopy(const Program &program, bool trainedOnly);

/// The writer of one folder, used by one thread between steps. A save waits for the one before. What fails while a
/// checkpoint is written (DataError) is thrown by the next call but those that say so; a former checkpoint survives
/// every failure.
class CheckpointWriter {
public:
  /// `keep`: how many of the last checkpoints stay; 1: former ones of other runs are left alone, too. `recipe`: what
  /// FOLDER/recipe.toml is to say; it is written with the first checkpoint. `anew`: what lies in the folder is of
  /// another run, whose best checkpoint goes with the newest. Throws MemoryNotAvailable when the copy's
  /// memory cannot be had.
  CheckpointWriter(Session &session, const Program &program, std::string folder, int64_t keep, std::string recipe,
                   bool trainedOnly, bool anew);
  /// Waits for what is being written, and throws nothing.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;

  /// The newest checkpoint is the session's present state.
  void save(const RunState &state);
  /// FOLDER/best.safetensors is the session's present state.
  void saveBest(const RunState &state);

  /// Throws what has failed so far; does not wait.
  void check();
  /// Waits until all is on disk.
  void finish();
  /// Step of the newest checkpoint that this run has brought to the disk, -1: none. Waits; throws nothing.
  int64_t lastWritten();

private:
  struct Job {
    RunState state;
    bool best = false;
  };

  void submit(const Job &job);
  void copyVariables();
  void write(const Job &job);
  void work();
  void wait(std::unique_lock<std::mutex> &lock);

  Session &session;
  const Program &program;
  const std::string folder;
  const int64_t keep;
  const bool trainedOnly;
  bool anew;          ///< a best checkpoint in the folder is of another run
  std::string recipe; ///< empty once it is written
  const size_t copyBytes;
  std::unique_ptr<char[]> copy; ///< the variables' bytes one after the other; null: read from the session

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Job> job; ///< until it is written
  std::exception_ptr failure;
  int64_t written = -1;
  bool ends = false;
  std::thread writer; ///< none without a copy
};

} // namespace sluice
