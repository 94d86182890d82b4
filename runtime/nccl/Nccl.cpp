// SPDX-License-Identifier: Apache-2.0
// Messages between the memories of GPUs. Calls of a group are one kernel of NCCL, which waits for its peers on the
// device; inside a capture they become nodes of the graph.
#include "runtime/nccl/Nccl.h"

#include "runtime/Errors.h"
#include "runtime/cuda/Device.h"

#include <algorithm>
#include <cstring>

namespace sluice {

/// Of those on its node.
static int localNumber(int number) {
  MPI_Comm node;
  int local = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, number, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &local);
  MPI_Comm_free(&node);
  return local;
}

NcclRanks::NcclRanks(MpiPlace place) : MpiRanks(place) { chooseDevice(localNumber(place.number)); }

void NcclRanks::check(ncclResult_t result, const Awaited &awaited) const {
  if (result == ncclSuccess)
    return;
  const char *said = ncclGetLastError(communicator);
  throw RankFailed(text("NCCL cannot go on with ", awaited.text(), ": ", ncclGetErrorString(result),
                        said && *said ? std::string("; ") + said : ""));
}

/// NCCL knows no two ranks of one GPU, and says so where it may log alone.
void NcclRanks::checkDevices() {
  const Device &device = Device::get();
  const auto own = std::string(reinterpret_cast<const char *>(&device.properties.uuid), sizeof device.properties.uuid);
  const std::vector<std::string> all = gather(own, {"the GPUs of all ranks"});
  for (size_t one = 0; one < all.size(); ++one)
    for (size_t other = 0; other < one; ++other)
      if (all[one] == all[other])
        throw UsageError(
            text(nameOf(static_cast<int>(other)), " and ", nameOf(static_cast<int>(one)),
                 " have one GPU, of which NCCL takes one for each: start as many processes on a node as it "
                 "has GPUs, and let each see all of them or its own alone (CUDA_VISIBLE_DEVICES)"));
}

void NcclRanks::connectDevices() {
  const Awaited awaited = {"the start of NCCL on all ranks"};
  checkDevices();
  ncclUniqueId id{};
  if (rank() == 0)
    check(ncclGetUniqueId(&id), awaited);
  const std::vector<char> ids = gather(&id, sizeof id, awaited); // that of rank 0 is first
  std::memcpy(&id, ids.data(), sizeof id);
  ncclComm_t made = nullptr;
  waitFor(awaited);
  check(ncclCommInitRank(&made, size(), id, rank()), awaited);
  communicator = made;
  exchangeOnce();
  waitFor({""});
}

/// NCCL allocates what two ranks need when they talk first. The arenas are allocated once it has.
void NcclRanks::exchangeOnce() {
  const Awaited awaited = {"the first message of all ranks"};
  const auto bytes = static_cast<size_t>(size() + 1) * sizeof(float);
  void *memory = nullptr;
  cudaStream_t stream = nullptr;
  checkCuda(cudaMalloc(&memory, bytes), "cannot allocate what ranks send first");
  checkCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot create a stream");
  checkCuda(cudaMemsetAsync(memory, 0, bytes, stream), "cannot clear what ranks send first");
  auto *floats = static_cast<float *>(memory);
  std::vector<Message> messages;
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) {
      messages.push_back({peer, floats + size(), sizeof(float), true});
      messages.push_back({peer, floats + peer, sizeof(float), false});
    }
  exchange(messages, stream, awaited);
  add(floats, static_cast<size_t>(size()), stream, awaited);
  checkCuda(cudaStreamSynchronize(stream), "failed while ranks sent their first message");
  cudaStreamDestroy(stream);
  cudaFree(memory);
}

void NcclRanks::exchange(const std::vector<Message> &messages, void *stream, const Awaited &awaited) {
  if (std::all_of(messages.begin(), messages.end(), [](const Message &message) { return message.bytes == 0; }))
    return;
  const auto on = static_cast<cudaStream_t>(stream);
  check(ncclGroupStart(), awaited);
  ncclResult_t failed = ncclSuccess; // a group that has begun is ended
  for (const Message &message : messages)
    if (message.bytes > 0 && failed == ncclSuccess)
      failed = message.sends ? ncclSend(message.data, message.bytes, ncclInt8, message.peer, communicator, on)
                             : ncclRecv(message.data, message.bytes, ncclInt8, message.peer, communicator, on);
  const ncclResult_t ended = ncclGroupEnd();
  check(failed != ncclSuccess ? failed : ended, awaited);
}

void NcclRanks::add(float *values, size_t count, void *stream, const Awaited &awaited) {
  check(ncclAllReduce(values, values, count, ncclFloat32, ncclSum, communicator, static_cast<cudaStream_t>(stream)),
        awaited);
}

std::string NcclRanks::lostBetweenDevices() {
  ncclResult_t state = ncclSuccess;
  const ncclComm_t asked = communicator;
  if (!asked || ncclCommGetAsyncError(asked, &state) != ncclSuccess || state == ncclSuccess || state == ncclInProgress)
    return "";
  const char *said = ncclGetLastError(asked);
  return text("NCCL cannot go on: ", ncclGetErrorString(state), said && *said ? std::string("; ") + said : "");
}

// Graphs that have its messages are gone by now.
void NcclRanks::finish() {
  if (const ncclComm_t own = communicator.exchange(nullptr))
    check(ncclCommDestroy(own), {"the end of NCCL on all ranks"});
  MpiRanks::finish();
}

std::unique_ptr<Ranks> joinNccl() {
  const std::optional<MpiPlace> place = joinProcesses();
  return place ? std::make_unique<NcclRanks>(*place) : nullptr;
}

} // namespace sluice
