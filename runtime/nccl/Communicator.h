// SPDX-License-Identifier: Apache-2.0
// What NCCL carries between the memories of GPUs, whoever has started the processes. See NVIDIA's documentation of NCCL
// ("Point-to-point communication", "Using NCCL with CUDA Graphs").
#pragma once

#include "runtime/Ranks.h"

#include <atomic>
#include <nccl.h>

namespace sluice {

class NcclCommunicator : public DeviceRanks {
public:
  /// `onWait` is called with what this process waits for while it waits for the device, then with {""}.
  NcclCommunicator(int number, int count, std::function<void(const Awaited &)> onWait)
      : number(number), count(count), onWait(std::move(onWait)) {}

  /// Once, by all ranks, with one id.
  void connect(const ncclUniqueId &id, const Awaited &awaited);
  bool isConnected() const { return communicator != nullptr; }
  /// By all ranks that have done with one another; graphs that have its messages are gone by then.
  void disconnect();
  /// What has failed, as NCCL says it; empty: nothing. On any thread.
  std::string lost() const;
  void check(ncclResult_t result, const Awaited &awaited) const;

  void exchange(const std::vector<Message> &messages, void *stream, const Awaited &awaited) override;
  void add(float *values, size_t count, void *stream, const Awaited &awaited) override;
  void waitFor(const Awaited &awaited) override { onWait(awaited); }

private:
  void exchangeOnce();

  const int number, count;
  const std::function<void(const Awaited &)> onWait;
  std::atomic<ncclComm_t> communicator{nullptr};
};

} // namespace sluice
