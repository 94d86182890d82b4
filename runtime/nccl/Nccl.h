// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each. MPI starts them, carries what they say on the CPU and watches over them; NCCL carries what
// lies in the memory of GPUs.
#pragma once

#include "runtime/mpi/Mpi.h"
#include "runtime/nccl/Communicator.h"

namespace sluice {

class NcclRanks : public MpiRanks {
public:
  /// Chooses this process's device.
  explicit NcclRanks(MpiPlace place);

  DeviceRanks *onDevices() override { return devices.isConnected() ? &devices : nullptr; }
  void connectDevices() override;
  void finish() override;

protected:
  std::string lostBetweenDevices() override { return devices.lost(); }

private:
  void checkDevices();

  NcclCommunicator devices;
};

} // namespace sluice
