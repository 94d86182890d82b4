// SPDX-License-Identifier: Apache-2.0
// Ranks that MPI starts: who they are, and what all of them check before NCCL connects them.
#include "runtime/nccl/Nccl.h"

#include "runtime/Errors.h"
#include "runtime/cuda/Device.h"

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

NcclRanks::NcclRanks(MpiPlace place)
    : MpiRanks(place), devices(place.number, place.count, [this](const Awaited &awaited) { setWaiting(awaited, -1); }) {
  chooseDevice(localNumber(place.number));
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
    devices.check(ncclGetUniqueId(&id), awaited);
  const std::vector<char> ids = gather(&id, sizeof id, awaited); // that of rank 0 is first
  std::memcpy(&id, ids.data(), sizeof id);
  devices.connect(id, awaited);
}

void NcclRanks::finish() {
  devices.disconnect();
  MpiRanks::finish();
}

std::unique_ptr<Ranks> joinWithMpi() {
  const std::optional<MpiPlace> place = joinProcesses();
  return place ? std::make_unique<NcclRanks>(*place) : nullptr;
}

} // namespace sluice
