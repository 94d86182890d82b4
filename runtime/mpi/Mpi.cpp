// SPDX-License-Identifier: Apache-2.0
// Messages between ranks. Waiting gives the processor away, since other threads of this rank compute meanwhile, and
// ranks may be more than processors.
#include "runtime/mpi/Mpi.h"

#include "runtime/Errors.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace sluice {

namespace {

/// Each collective has its messages in order, so that one tag is enough.
constexpr int tag = 1;

void check(int status, const Awaited &awaited) {
  if (status == MPI_SUCCESS)
    return;
  char said[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(status, said, &length);
  throw RankFailed(
      text("MPI cannot go on with ", awaited.text(), ": ", std::string(said, static_cast<size_t>(length))));
}

/// Whether one of these is in the environment.
bool anyOf(std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (std::getenv(name))
      return true;
  return false;
}

long numberIn(const char *name) {
  const char *value = std::getenv(name);
  return value ? std::strtol(value, nullptr, 10) : 0;
}

/// Several processes that do not know of one another would each train a model of their own.
void refuseUnconnected() {
  for (const char *name : {"WORLD_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const long count = numberIn(name); count > 1)
      throw UsageError(text(name, "=", count, " says that ", count,
                            " processes were started, but MPI connects none of ",
                            "them: start the program with mpirun -n ", count, ", or with srun --mpi=pmix -n ", count));
}

} // namespace

std::optional<MpiPlace> joinProcesses() {
  const bool launched = anyOf({"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"});
  if (!launched)
    return std::nullopt;
  int provided = 0, number = 0, count = 1;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
    throw UsageError("MPI cannot be initialized");
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  if (count == 1) {
    MPI_Finalize();
    return std::nullopt;
  }
  if (provided < MPI_THREAD_MULTIPLE)
    throw UsageError("this MPI bears no calls of several threads (MPI_THREAD_MULTIPLE), which the program needs");
  if (count > mostRanks)
    throw UsageError(text(count, " ranks were started, the program takes ", mostRanks));
  return MpiPlace{number, count};
}

std::unique_ptr<Ranks> joinMpi() {
  const std::optional<MpiPlace> place = joinProcesses();
  if (!place)
    refuseUnconnected();
  return place ? std::make_unique<MpiRanks>(*place) : nullptr;
}

/// For this thread and those that it starts: naps are otherwise longer by 50 microseconds.
static void napExactly() {
#ifdef __linux__
  prctl(PR_SET_TIMERSLACK, 1000);
#endif
}

MpiRanks::MpiRanks(MpiPlace place) : Ranks(place.number, place.count) {
  napExactly();
  MPI_Comm_dup(MPI_COMM_WORLD, &work);
  MPI_Comm_dup(MPI_COMM_WORLD, &words);
  for (MPI_Comm comm : {work, words})
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  char name[MPI_MAX_PROCESSOR_NAME + 1] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  setNode(std::string(name, static_cast<size_t>(length)));
}

void MpiRanks::exchange(const std::vector<Message> &messages, const Awaited &awaited) {
  std::vector<MPI_Request> requests;
  std::vector<int> peers;
  requests.reserve(messages.size());
  // Receives first, so that what arrives has its place.
  for (const bool sends : {false, true})
    for (const Message &message : messages) {
      if (message.sends != sends || message.bytes == 0)
        continue;
      if (message.bytes > INT_MAX)
        throw std::logic_error("a message of more bytes than MPI counts");
      const int bytes = static_cast<int>(message.bytes);
      MPI_Request request;
      check(sends ? MPI_Isend(message.data, bytes, MPI_BYTE, message.peer, tag, work, &request)
                  : MPI_Irecv(message.data, bytes, MPI_BYTE, message.peer, tag, work, &request),
            awaited);
      requests.push_back(request);
      peers.push_back(message.peer);
    }
  wait(requests, peers, awaited);
}

void MpiRanks::add(float *values, size_t count, const Awaited &awaited) {
  for (size_t begin = 0; begin < count; begin += INT_MAX) {
    std::vector<MPI_Request> requests(1);
    const int some = static_cast<int>(std::min<size_t>(INT_MAX, count - begin));
    check(MPI_Iallreduce(MPI_IN_PLACE, values + begin, some, MPI_FLOAT, MPI_SUM, work, &requests[0]), awaited);
    wait(requests, {-1}, awaited);
  }
}

/// At first without pause, since most peers come within microseconds; then others may have the processor, by naps: a
/// thread that only yields still takes half of it. Naps become longer until something has arrived. The library moves
/// messages while it is asked, so that it is asked several times between naps.
void MpiRanks::wait(std::vector<MPI_Request> &requests, const std::vector<int> &peers, const Awaited &awaited) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds patience{20}, grace{200};
  constexpr std::chrono::microseconds shortestNap{20}, longestNap{320};
  std::chrono::microseconds nap = shortestNap;
  const Clock::time_point begin = Clock::now();
  std::optional<Clock::time_point> askedAt;
  std::vector<int> completed(requests.size());
  for (int round = 0;; ++round) {
    int some = 0; // each that is complete becomes MPI_REQUEST_NULL
    check(
        MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &some, completed.data(), MPI_STATUSES_IGNORE),
        awaited);
    const auto pending = static_cast<size_t>(
        std::find_if(requests.begin(), requests.end(), [](MPI_Request one) { return one != MPI_REQUEST_NULL; }) -
        requests.begin());
    if (pending == requests.size())
      break;
    if (round < 50 || round % 4 != 0)
      continue;
    if (Clock::now() - begin < patience) {
      nap = some > 0 ? shortestNap : std::min(2 * nap, longestNap);
      std::this_thread::sleep_for(nap);
      continue;
    }
    setWaiting(awaited, peers[pending]);
    if (!askedAt && asked && asked())
      askedAt = Clock::now();
    if (askedAt && Clock::now() - *askedAt > grace * (1 + rank()))
      askToTell(peers[pending]);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  setWaiting({""}, -1);
}

/// Launchers ask all ranks to end once one is gone, and kill them a second later. One of them says what happened: the
/// first that waits so long and has not heard from the others by then that somebody knows.
void MpiRanks::askToTell(int peer) {
  if (told || rank() != speakerOf(peer))
    return;
  told = true;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    toTell = true;
  }
  wake.notify_all();
}

void MpiRanks::setWaiting(const Awaited &awaited, int peer) {
  const std::lock_guard<std::mutex> lock(mutex);
  awaitedPeer = peer;
  awaitedText = *awaited.what ? awaited.text() : "";
}

void MpiRanks::finish() {
  const char done = 1;
  gather(&done, 1, {"the end of all ranks"});
  {
    const std::lock_guard<std::mutex> lock(mutex);
    over = true;
  }
  wake.notify_all();
  if (watcher.joinable())
    watcher.join();
  MPI_Comm_free(&work);
  MPI_Comm_free(&words);
  MPI_Finalize();
}

// Without finish() others may be waiting for what does not come any more: MPI is not asked to part in peace.
MpiRanks::~MpiRanks() {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    over = true;
  }
  wake.notify_all();
  if (watcher.joinable())
    watcher.join();
}

} // namespace sluice
