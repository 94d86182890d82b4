// SPDX-License-Identifier: Apache-2.0
// Who has started this process. Without MPI in the library (SLUICE_WITH_MPI) a launcher of PyTorch's or Slurm's kind is
// all that can have.
#include "runtime/nccl/Launched.h"

#include <cstdlib>

namespace sluice {

#ifdef SLUICE_WITH_MPI
/// Of processes that MPI connects; null where it connects none.
std::unique_ptr<Ranks> joinWithMpi();
#endif

// torchrun's words go before those of an mpirun that has started torchrun; srun's are there beside those of MPI, too.
std::unique_ptr<Ranks> joinNccl() {
#ifdef SLUICE_WITH_MPI
  if (!std::getenv("RANK"))
    if (std::unique_ptr<Ranks> connected = joinWithMpi())
      return connected;
#endif
  const std::optional<LaunchedPlace> place = launchedPlace();
  return place ? std::make_unique<LaunchedRanks>(*place) : nullptr;
}

} // namespace sluice
