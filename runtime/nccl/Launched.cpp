// SPDX-License-Identifier: Apache-2.0
// What ranks say on the CPU goes through the memory of their GPUs, in the order of the one thread that trains, which
// also enqueues what their devices say: NCCL finds calls of a communicator in one order in all ranks.
#include "runtime/nccl/Launched.h"

#include "runtime/Errors.h"
#include "runtime/cuda/Device.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace sluice {

namespace {

/// The number in the environment under one of these names; nothing where there is none.
std::optional<int> numberIn(std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (const char *word = std::getenv(name)) {
      int value = 0;
      const char *end = word + std::strlen(word);
      if (const auto [stop, failure] = std::from_chars(word, end, value);
          failure != std::errc() || stop != end || value < 0)
        throw UsageError(text(name, "=", word, " in the environment is no number"));
      return value;
    }
  return std::nullopt;
}

constexpr int highestPort = 65534;

cudaStream_t native(void *stream) { return static_cast<cudaStream_t>(stream); }

} // namespace

std::optional<LaunchedPlace> launchedPlace() {
  const std::optional<int> count = numberIn({"WORLD_SIZE", "SLURM_STEP_NUM_TASKS"});
  if (!count || *count < 2)
    return std::nullopt;
  const std::optional<int> number = numberIn({"RANK", "SLURM_PROCID"}),
                           onNode = numberIn({"LOCAL_RANK", "SLURM_LOCALID"}), port = numberIn({"MASTER_PORT"});
  const char *address = std::getenv("MASTER_ADDR");
  if (!number || !onNode || !address || !port || *number >= *count || *port > highestPort)
    throw UsageError(text(*count,
                          " processes were started, but the environment does not say which of them this is and "
                          "where the first one is: torchrun sets RANK, LOCAL_RANK, MASTER_ADDR and MASTER_PORT; with "
                          "srun set MASTER_ADDR to the first node and MASTER_PORT to a number below 65535"));
  if (*count > mostRanks)
    throw UsageError(text(*count, " ranks were started, the program takes ", mostRanks));
  return LaunchedPlace{*number, *count, *onNode, text(address, ":", *port + 1)};
}

LaunchedRanks::LaunchedRanks(const LaunchedPlace &place)
    : Ranks(place.number, place.count),
      devices(place.number, place.count, [this](const Awaited &awaited) { setWaiting(awaited); }) {
  const Awaited awaited = {"the start of NCCL on all ranks"};
  chooseDevice(place.onNode);
  Device::get();
  setenv("NCCL_COMM_ID", place.address.c_str(), /*overwrite=*/0);
  ncclUniqueId id{}; // in each rank the address
  devices.check(ncclGetUniqueId(&id), awaited);
  devices.connect(id, awaited);
  cudaStream_t made = nullptr;
  checkCuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cannot create a stream");
  stream = made;
  char node[256] = {};
  gethostname(node, sizeof node - 1);
  setNode(node);
}

/// Room in the GPU's memory for what is on its way.
char *LaunchedRanks::staged(size_t bytes) {
  if (bytes <= stageBytes)
    return stage;
  void *made = nullptr;
  cudaFree(stage);
  stage = nullptr, stageBytes = 0;
  checkCuda(cudaMalloc(&made, bytes), "cannot allocate what ranks send");
  stageBytes = bytes;
  return stage = static_cast<char *>(made);
}

void LaunchedRanks::copy(void *to, const void *from, size_t bytes) {
  checkCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, native(stream)), "cannot copy what ranks send");
}

void LaunchedRanks::setWaiting(const Awaited &awaited) {
  const std::lock_guard<std::mutex> lock(mutex);
  awaitedText = awaited.text();
}

void LaunchedRanks::synchronize(const Awaited &awaited) {
  setWaiting(awaited);
  checkCuda(cudaStreamSynchronize(native(stream)), "failed while ranks sent messages");
  setWaiting({""});
}

void LaunchedRanks::exchange(const std::vector<Message> &messages, const Awaited &awaited) {
  size_t bytes = 0;
  for (const Message &message : messages)
    bytes += message.bytes;
  char *place = staged(bytes);
  std::vector<Message> onDevice;
  for (const Message &message : messages) {
    if (message.sends && message.bytes > 0)
      copy(place, message.data, message.bytes);
    onDevice.push_back({message.peer, place, message.bytes, message.sends});
    place += message.bytes;
  }
  devices.exchange(onDevice, stream, awaited);
  for (size_t i = 0; i < messages.size(); ++i)
    if (!messages[i].sends && messages[i].bytes > 0)
      copy(messages[i].data, onDevice[i].data, messages[i].bytes);
  synchronize(awaited);
}

void LaunchedRanks::add(float *values, size_t count, const Awaited &awaited) {
  char *place = staged(count * sizeof(float));
  copy(place, values, count * sizeof(float));
  devices.add(reinterpret_cast<float *>(place), count, stream, awaited);
  copy(values, place, count * sizeof(float));
  synchronize(awaited);
}

void LaunchedRanks::watch(std::function<void(const std::string &)> onLoss, std::function<bool()>) {
  say = std::move(onLoss);
  watcher = std::thread([this] { watchNccl(); });
}

void LaunchedRanks::endAll(const std::string &line) {
  say(text(nameOf(rank()), ": ", line));
  std::_Exit(6);
}

/// Each rank finds it, and the launcher ends all with the first: one of them says it, the others a little later, if
/// they still live.
void LaunchedRanks::watchNccl() {
  constexpr std::chrono::milliseconds round{500};
  for (;;) {
    std::string waited;
    {
      std::unique_lock<std::mutex> lock(mutex);
      if (wake.wait_for(lock, round, [this] { return over; }))
        return;
      waited = awaitedText;
    }
    const std::string lost = devices.lost();
    if (lost.empty())
      continue;
    std::this_thread::sleep_for(round * std::min(rank(), 3));
    endAll(text(lost, waited.empty() ? "" : "; it waited for " + waited));
  }
}

void LaunchedRanks::stopWatching() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    over = true;
  }
  wake.notify_all();
}

void LaunchedRanks::finish() {
  const char done = 1;
  gather(&done, 1, {"the end of all ranks"});
  stopWatching();
  if (watcher.joinable())
    watcher.join();
  devices.disconnect();
  cudaFree(stage);
  cudaStreamDestroy(native(stream));
}

// Without finish() others may be waiting for what does not come any more: NCCL is not asked to part in peace.
LaunchedRanks::~LaunchedRanks() {
  stopWatching();
  if (watcher.joinable())
    watcher.join();
}

} // namespace sluice
