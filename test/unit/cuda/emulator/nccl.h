// SPDX-License-Identifier: Apache-2.0
// The part of NCCL that runtime/nccl uses, between processes of one machine, through shared memory. Calls are put off
// and captured as launches are. It holds callers to what NCCL asks of them: a GPU for each rank, and messages between
// two ranks that agree in order and size.
#pragma once

#include "cuda_runtime.h"

constexpr int NCCL_UNIQUE_ID_BYTES = 128;
struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
};
enum ncclResult_t {
  ncclSuccess,
  ncclUnhandledCudaError,
  ncclSystemError,
  ncclInternalError,
  ncclInvalidArgument,
  ncclInvalidUsage,
  ncclRemoteError,
  ncclInProgress
};
enum ncclDataType_t { ncclInt8 = 0, ncclFloat32 = 7 };
enum ncclRedOp_t { ncclSum };
using ncclComm_t = struct EmulatedComm *;

ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int count, ncclUniqueId id, int rank);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
/// EMULATED_NCCL_LOST=N: the group of this number is lost on its way, which this says from then on.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);

ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t sum,
                           ncclComm_t comm, cudaStream_t stream);
