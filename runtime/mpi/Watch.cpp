// SPDX-License-Identifier: Apache-2.0
// Who still lives: each rank tells the next one in a ring twice a second, and ends when the one before it is silent.
// Of the time between two of a rank's own rounds a part counts at most, so that a machine that has no time for any rank
// ends none: it takes four rounds of silence, which end all within 10 s where each is late by less than 2 s.
#include "runtime/mpi/Mpi.h"

#include "runtime/Errors.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice {

/// A rank that is silent for so long is lost.
static constexpr std::chrono::seconds silenceOfLost{6};
static constexpr std::chrono::milliseconds round{500}, mostOfRound{1500};

void MpiRanks::watch(std::function<void(const std::string &)> onLoss, std::function<bool()> wasAsked) {
  say = std::move(onLoss);
  asked = std::move(wasAsked);
  watcher = std::thread([this] { watchOthers(); });
}

void MpiRanks::watchOthers() {
  std::chrono::steady_clock::duration silent{0}, stuck{0};
  // Of what fails between devices because a rank is lost, that rank's silence tells more, if one waits for it; and one
  // of those that wait tells it.
  const auto stuckForGood = silenceOfLost + round * (1 + std::min(rank(), 3));
  while (silent < silenceOfLost) {
    const auto begin = std::chrono::steady_clock::now();
    {
      std::unique_lock<std::mutex> lock(mutex);
      wake.wait_for(lock, round, [this] { return over || toTell; });
      if (over)
        return;
    }
    // If it was longer nobody here had time, perhaps nobody there.
    const auto passed =
        std::min<std::chrono::steady_clock::duration>(std::chrono::steady_clock::now() - begin, mostOfRound);
    silent += passed;
    tell(neighbour(1), Alive);
    bool heard = false;
    if (!hearAll(heard))
      return endWith("");
    if (heard)
      silent = {};
    tellWhatWaits();
    const std::string lost = lostBetweenDevices();
    stuck = lost.empty() ? stuck.zero() : stuck + passed;
    if (stuck >= stuckForGood) {
      tellOthers(Failed);
      return endWith(text(nameOf(rank()), ": ", lost, waitingFor(-1)));
    }
  }
  const int gone = neighbour(-1);
  tellOthers(Failed); // it, too: launchers let it go on, to end
  endWith(text(nameOf(gone), " has ended or stands still: nothing was heard of it for ", silenceOfLost.count(), " s",
               waitingFor(gone)));
}

void MpiRanks::tellOthers(Word word) {
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank())
      tell(peer, word);
}

/// Under the mutex, while something is awaited.
std::string MpiRanks::lineOfWaiting() const {
  return text(nameOf(rank()), " waits for ", awaitedText, " from ",
              awaitedPeer >= 0 ? nameOf(awaitedPeer) : "the other ranks");
}

std::string MpiRanks::whatWaits() {
  const std::lock_guard<std::mutex> lock(mutex);
  return awaitedText.empty() || rank() != speakerOf(awaitedPeer) ? "" : lineOfWaiting();
}

/// Where nobody has said by now why all are to end.
void MpiRanks::tellWhatWaits() {
  std::string line;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!std::exchange(toTell, false) || isTold || awaitedText.empty())
      return;
    line = lineOfWaiting();
  }
  say("asked to end while " + line);
  tellOthers(Told);
}

/// Takes the words that have arrived; false where one says that a rank has failed.
bool MpiRanks::hearAll(bool &heardNeighbour) {
  for (;;) {
    int there = 0, word = Alive;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, words, &there, &status) != MPI_SUCCESS || !there)
      return true;
    if (MPI_Recv(&word, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, words, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return true;
    if (word == Failed)
      return false;
    isTold = isTold || word == Told;
    heardNeighbour = heardNeighbour || status.MPI_SOURCE == neighbour(-1);
  }
}

/// Without waiting for a receiver, which may be no more: the words outlive all of their messages.
void MpiRanks::tell(int peer, Word word) {
  static const int said[] = {Alive, Failed, Told};
  MPI_Request request;
  if (MPI_Isend(&said[word], 1, MPI_INT, peer, 0, words, &request) != MPI_SUCCESS)
    return;
  int done = 0;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  if (!done)
    MPI_Request_free(&request);
}

std::string MpiRanks::waitingFor(int gone) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (awaitedText.empty())
    return "";
  return text("; ", nameOf(rank()), " waited for ", awaitedText,
              awaitedPeer >= 0 && awaitedPeer != gone ? " from " + nameOf(awaitedPeer) : "");
}

/// MPI's launcher ends what cannot be told any more, the ranks that stand still among them.
void MpiRanks::endWith(const std::string &line) {
  failed = true;
  if (!line.empty())
    say(line);
  MPI_Abort(MPI_COMM_WORLD, 6);
  std::_Exit(6);
}

void MpiRanks::endAll(const std::string &line) {
  tellOthers(Failed);
  endWith(text(nameOf(rank()), ": ", line));
}

void MpiRanks::fail() noexcept {
  if (!failed.exchange(true))
    tellOthers(Failed);
}

} // namespace sluice
