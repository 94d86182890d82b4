// SPDX-License-Identifier: Apache-2.0
// NCCL between processes of one machine: a mailbox in shared memory for each pair of ranks and direction, through which
// messages go piece by piece.
#include "nccl.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr int mostRanks = 64;
constexpr size_t capacity = 64 << 10;

/// Bytes from one rank to another, as a ring.
struct Mailbox {
  std::atomic<uint64_t> written, read;
  char ring[capacity];

  size_t put(const char *from, size_t bytes) {
    const uint64_t at = written, some = std::min<uint64_t>(bytes, capacity - (at - read));
    for (uint64_t i = 0; i < some; ++i)
      ring[(at + i) % capacity] = from[i];
    written = at + some;
    return some;
  }
  size_t get(char *to, size_t bytes) {
    const uint64_t at = read, some = std::min<uint64_t>(bytes, written - at);
    for (uint64_t i = 0; i < some; ++i)
      to[i] = ring[(at + i) % capacity];
    read = at + some;
    return some;
  }
};

struct Shared {
  std::atomic<int> attached;
  std::atomic<int> device[mostRanks]; ///< of each rank
  Mailbox mailboxes[];                ///< by sender, then receiver

  static size_t bytes(int count) {
    return sizeof(Shared) + sizeof(Mailbox) * static_cast<size_t>(count) * static_cast<size_t>(count);
  }
};

/// One side of a message, whose size goes before it.
struct Part {
  int peer;
  bool sends;
  std::vector<char> bytes; ///< that are sent, or a place for what has no other
  char *data;
  uint64_t size, announced, done = 0, headDone = 0;
};

} // namespace

struct EmulatedComm {
  Shared *shared;
  int rank, count;
  std::atomic<ncclResult_t> error{ncclSuccess};
  int groups = 0; ///< that have run

  Mailbox &box(int from, int to) { return shared->mailboxes[from * count + to]; }

  /// As much of it as goes now; whether that is anything.
  bool move(Part &part) {
    Mailbox &box = part.sends ? this->box(rank, part.peer) : this->box(part.peer, rank);
    char *head = reinterpret_cast<char *>(&part.announced);
    const uint64_t before = part.headDone + part.done;
    if (part.headDone < sizeof part.announced) {
      const size_t rest = sizeof part.announced - part.headDone;
      part.headDone += part.sends ? box.put(head + part.headDone, rest) : box.get(head + part.headDone, rest);
    }
    if (part.headDone < sizeof part.announced)
      return part.headDone > before;
    if (part.announced != part.size) {
      fprintf(stderr, "NCCL's stand-in: rank %d sends %llu bytes, rank %d awaits %llu\n", part.peer,
              static_cast<unsigned long long>(part.announced), rank, static_cast<unsigned long long>(part.size));
      abort();
    }
    const size_t rest = part.size - part.done;
    part.done += part.sends ? box.put(part.data + part.done, rest) : box.get(part.data + part.done, rest);
    return part.headDone + part.done > before;
  }

  /// All at once; between two ranks those of a direction in their order.
  void run(std::vector<Part> &parts) {
    if (++groups == emulated("EMULATED_NCCL_LOST", 0)) {
      error = ncclRemoteError;
      for (;;)
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    std::vector<std::deque<Part *>> queues(2 * static_cast<size_t>(count));
    for (Part &part : parts)
      queues[static_cast<size_t>(2 * part.peer + part.sends)].push_back(&part);
    for (bool open = true; open;) {
      bool moved = open = false;
      for (auto &queue : queues) {
        while (!queue.empty() && (moved |= move(*queue.front()), queue.front()->headDone == sizeof(uint64_t)) &&
               queue.front()->done == queue.front()->size)
          queue.pop_front();
        open |= !queue.empty();
      }
      if (open && !moved)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
};

namespace {

/// A call of a group.
struct Call {
  ncclComm_t comm;
  cudaStream_t stream;
  enum { Send, Receive, AllReduce } kind;
  const void *from;
  void *to;
  size_t bytes;
  int peer;
};
int depth = 0;
std::vector<Call> group;

void addParts(const Call &call, std::vector<Part> &parts) {
  const auto add = [&](int peer, bool sends, const void *data, bool own) {
    Part &part = parts.emplace_back();
    part.peer = peer, part.sends = sends, part.size = call.bytes, part.announced = sends ? call.bytes : 0;
    if (own)
      part.bytes.resize(call.bytes);
    part.data = own ? part.bytes.data() : static_cast<char *>(const_cast<void *>(data));
  };
  if (call.kind != Call::AllReduce)
    return add(call.peer, call.kind == Call::Send, call.kind == Call::Send ? call.from : call.to, false);
  for (int peer = 0; peer < call.comm->count; ++peer)
    if (peer != call.comm->rank)
      add(peer, true, call.from, false), add(peer, false, nullptr, true);
}

/// In the order of ranks.
void addUp(const Call &call, const std::vector<Part> &parts) {
  const size_t count = call.bytes / sizeof(float);
  const auto *own = static_cast<const float *>(call.from);
  std::vector<float> sum(count);
  for (int rank = 0; rank < call.comm->count; ++rank) {
    const float *one = own;
    for (const Part &part : parts)
      if (!part.sends && part.peer == rank)
        one = reinterpret_cast<const float *>(part.data);
    for (size_t i = 0; i < count; ++i)
      sum[i] += one[i];
  }
  std::copy(sum.begin(), sum.end(), static_cast<float *>(call.to));
}

ncclResult_t end() {
  if (depth > 0 || group.empty())
    return ncclSuccess;
  const std::vector<Call> calls = std::move(group);
  group.clear();
  for (const Call &call : calls)
    if (call.comm != calls[0].comm || call.stream != calls[0].stream || call.peer < 0 ||
        call.peer >= call.comm->count || (call.kind != Call::AllReduce && call.peer == call.comm->rank) ||
        (call.kind == Call::AllReduce && calls.size() > 1))
      return ncclInvalidUsage; // or not known here
  emulator::enqueue(calls[0].stream, [calls] {
    std::vector<Part> parts;
    for (const Call &call : calls)
      addParts(call, parts);
    calls[0].comm->run(parts);
    if (calls[0].kind == Call::AllReduce)
      addUp(calls[0], parts);
  });
  return ncclSuccess;
}

ncclResult_t add(const Call &call) {
  group.push_back(call);
  return end();
}

size_t bytesOf(size_t count, ncclDataType_t type) { return count * (type == ncclFloat32 ? sizeof(float) : 1); }

} // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static int made = 0;
  *id = {};
  if (const char *address = getenv("NCCL_COMM_ID")) // where rank 0 listens: the same for all ranks
    snprintf(id->internal, sizeof id->internal, "/sluice-nccl-%s", address);
  else
    snprintf(id->internal, sizeof id->internal, "/sluice-nccl-%d-%d", static_cast<int>(getpid()), ++made);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int count, ncclUniqueId id, int rank) {
  if (count > mostRanks || rank < 0 || rank >= count)
    return ncclInvalidArgument;
  const int file = shm_open(id.internal, O_CREAT | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(Shared::bytes(count))) != 0)
    return ncclSystemError;
  void *memory = mmap(nullptr, Shared::bytes(count), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED)
    return ncclSystemError;
  auto *shared = static_cast<Shared *>(memory);
  shared->device[rank] = emulatedDevice;
  ++shared->attached;
  while (shared->attached < count)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (rank == 0)
    shm_unlink(id.internal);
  for (int other = 0; other < count; ++other)
    if (other != rank && shared->device[other] == shared->device[rank])
      return ncclInvalidUsage;
  *comm = new EmulatedComm{shared, rank, count};
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  cudaDeviceSynchronize();
  munmap(comm->shared, Shared::bytes(comm->count));
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) { return *error = comm->error, ncclSuccess; }
const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclInvalidUsage ? "invalid usage" : result == ncclRemoteError ? "remote process exited" : "error";
}
const char *ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGroupStart() { return ++depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() { return --depth, end(); }
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({comm, stream, Call::Send, from, nullptr, bytesOf(count, type), peer});
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add({comm, stream, Call::Receive, nullptr, to, bytesOf(count, type), peer});
}
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                           cudaStream_t stream) {
  return type == ncclFloat32 ? add({comm, stream, Call::AllReduce, from, to, bytesOf(count, type), 0})
                             : ncclInvalidArgument;
}
