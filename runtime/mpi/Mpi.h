// SPDX-License-Identifier: Apache-2.0
// Ranks that MPI connects. One thread trains and calls exchange(), another one watches: MPI is asked to bear both.
#pragma once

#include "runtime/Ranks.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace sluice {

/// This process among those that MPI connects.
struct MpiPlace {
  int number, count;
};
/// Begins MPI where it connects several processes that mpirun or srun has started, else nothing.
std::optional<MpiPlace> joinProcesses();

class MpiRanks : public Ranks {
public:
  explicit MpiRanks(MpiPlace place);
  ~MpiRanks() override;

  void exchange(const std::vector<Message> &messages, const Awaited &awaited) override;
  void add(float *values, size_t count, const Awaited &awaited) override;
  void watch(std::function<void(const std::string &)> say, std::function<bool()> asked) override;
  std::string whatWaits() override;
  [[noreturn]] void endAll(const std::string &line) override;
  void fail() noexcept override;
  void finish() override;

protected:
  /// What this process waits for, and of whom (-1: of all), for lines about what is lost. Nothing: "".
  void setWaiting(const Awaited &awaited, int peer);
  /// What has failed between devices so that they wait for ever, as their library says it; empty: nothing. On the
  /// watching thread.
  virtual std::string lostBetweenDevices() { return ""; }

private:
  /// What the watching thread says to its like. Alive goes round the ring, the others to everybody. Told: somebody has
  /// said what is waited for.
  enum Word : int { Alive, Failed, Told };
  void wait(std::vector<MPI_Request> &requests, const std::vector<int> &peers, const Awaited &awaited);
  void askToTell(int peer);
  void tellWhatWaits();
  void tellOthers(Word word);
  std::string waitingFor(int lost);
  void watchOthers();
  bool hearAll(bool &heardNeighbour);
  void tell(int peer, Word word);
  [[noreturn]] void endWith(const std::string &line);
  std::string lineOfWaiting() const;
  /// Of those that wait for that one, or for all (-1), the one that says it.
  static int speakerOf(int peer) { return peer == 0 ? 1 : 0; }
  int neighbour(int step) const { return (rank() + step + size()) % size(); }

  MPI_Comm work, words;
  std::mutex mutex; ///< of what is waited for, and of whether to tell it
  std::string awaitedText;
  int awaitedPeer = -1;
  bool toTell = false;
  std::function<void(const std::string &)> say;
  std::function<bool()> asked;
  bool told = false;
  bool isTold = false; ///< by another rank; of the watching thread
  std::thread watcher;
  std::condition_variable wake;
  bool over = false;
  std::atomic<bool> failed{false};
};

} // namespace sluice
