// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each. MPI starts them, carries what they say on the CPU and watches over them; NCCL carries what
// lies in the memory of GPUs. See NVIDIA's documentation of NCCL ("Point-to-point communication", "Using NCCL with CUDA
// Graphs").
#pragma once

#include "runtime/mpi/Mpi.h"

#include <atomic>
#include <nccl.h>

namespace sluice {

class NcclRanks : public MpiRanks, public DeviceRanks {
public:
  /// Chooses this process's device.
  explicit NcclRanks(MpiPlace place);

  DeviceRanks *onDevices() override { return communicator ? this : nullptr; }
  void connectDevices() override;
  void finish() override;

  void exchange(const std::vector<Message> &messages, void *stream, const Awaited &awaited) override;
  void add(float *values, size_t count, void *stream, const Awaited &awaited) override;
  void waitFor(const Awaited &awaited) override { setWaiting(awaited, -1); }
  using MpiRanks::add;
  using MpiRanks::exchange;

protected:
  std::string lostBetweenDevices() override;

private:
  void checkDevices();
  void exchangeOnce();
  void check(ncclResult_t result, const Awaited &awaited) const;

  std::atomic<ncclComm_t> communicator{nullptr};
};

} // namespace sluice
