// SPDX-License-Identifier: Apache-2.0
// Messages between the memories of GPUs. Calls of a group are one kernel of NCCL, which waits for its peers on the
// device; inside a capture they become nodes of the graph.
#include "runtime/nccl/Communicator.h"

#include "runtime/Errors.h"
#include "runtime/cuda/Device.h"

#include <algorithm>

namespace sluice {

void NcclCommunicator::check(ncclResult_t result, const Awaited &awaited) const {
  if (result == ncclSuccess)
    return;
  const char *said = ncclGetLastError(communicator);
  throw RankFailed(text("NCCL cannot go on with ", awaited.text(), ": ", ncclGetErrorString(result),
                        said && *said ? std::string("; ") + said : ""));
}

void NcclCommunicator::connect(const ncclUniqueId &id, const Awaited &awaited) {
  ncclComm_t made = nullptr;
  waitFor(awaited);
  check(ncclCommInitRank(&made, count, id, number), awaited);
  communicator = made;
  exchangeOnce();
  waitFor({""});
}

/// NCCL allocates what two ranks need when they talk first. The arenas are allocated once it has.
void NcclCommunicator::exchangeOnce() {
  const Awaited awaited = {"the first message of all ranks"};
  const auto bytes = static_cast<size_t>(count + 1) * sizeof(float);
  void *memory = nullptr;
  cudaStream_t stream = nullptr;
  checkCuda(cudaMalloc(&memory, bytes), "cannot allocate what ranks send first");
  checkCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot create a stream");
  checkCuda(cudaMemsetAsync(memory, 0, bytes, stream), "cannot clear what ranks send first");
  auto *floats = static_cast<float *>(memory);
  std::vector<Message> messages;
  for (int peer = 0; peer < count; ++peer)
    if (peer != number) {
      messages.push_back({peer, floats + count, sizeof(float), true});
      messages.push_back({peer, floats + peer, sizeof(float), false});
    }
  exchange(messages, stream, awaited);
  add(floats, static_cast<size_t>(count), stream, awaited);
  checkCuda(cudaStreamSynchronize(stream), "failed while ranks sent their first message");
  cudaStreamDestroy(stream);
  cudaFree(memory);
}

void NcclCommunicator::exchange(const std::vector<Message> &messages, void *stream, const Awaited &awaited) {
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

void NcclCommunicator::add(float *values, size_t floats, void *stream, const Awaited &awaited) {
  check(ncclAllReduce(values, values, floats, ncclFloat32, ncclSum, communicator, static_cast<cudaStream_t>(stream)),
        awaited);
}

std::string NcclCommunicator::lost() const {
  ncclResult_t state = ncclSuccess;
  const ncclComm_t asked = communicator;
  if (!asked || ncclCommGetAsyncError(asked, &state) != ncclSuccess || state == ncclSuccess || state == ncclInProgress)
    return "";
  const char *said = ncclGetLastError(asked);
  return text("NCCL cannot go on: ", ncclGetErrorString(state), said && *said ? std::string("; ") + said : "");
}

void NcclCommunicator::disconnect() {
  if (const ncclComm_t own = communicator.exchange(nullptr))
    check(ncclCommDestroy(own), {"the end of NCCL on all ranks"});
}

} // namespace sluice
