// SPDX-License-Identifier: Apache-2.0
// A libcuda that drives nothing: cuDNN compiles its engines, and says what workspace they take, only where it finds a
// driver to load them into. What loads a module gives a handle of nothing, all else fails (CUDA_ERROR_STUB_LIBRARY).
extern "C" {

#define FAIL(name)                                                                                                     \
  int name() { return 34; }
#define LOAD(name)                                                                                                     \
  int name(void **handle) { return *handle = handle, 0; }

LOAD(cuLibraryLoadData)
LOAD(cuLibraryGetKernel)
LOAD(cuModuleLoadData)
LOAD(cuModuleLoadDataEx)
LOAD(cuModuleLoadFatBinary)
LOAD(cuModuleGetFunction)
FAIL(cuCtxGetCurrent)
FAIL(cuCtxGetDevice)
FAIL(cuCtxGetLimit)
FAIL(cuCtxPopCurrent)
FAIL(cuCtxPushCurrent)
FAIL(cuDeviceGet)
FAIL(cuDeviceGetAttribute)
FAIL(cuDeviceGetCount)
FAIL(cuDevicePrimaryCtxRelease)
FAIL(cuDevicePrimaryCtxReset)
FAIL(cuDevicePrimaryCtxRetain)
FAIL(cuDriverGetVersion)
FAIL(cuFuncGetAttribute)
FAIL(cuFuncSetAttribute)
FAIL(cuGetErrorName)
FAIL(cuGetErrorString)
FAIL(cuInit)
FAIL(cuKernelGetAttribute)
FAIL(cuKernelSetAttribute)
FAIL(cuLaunchCooperativeKernel)
FAIL(cuLaunchKernel)
FAIL(cuLaunchKernelEx)
FAIL(cuLibraryLoadFromFile)
FAIL(cuLibraryUnload)
FAIL(cuLinkAddData)
FAIL(cuLinkAddData_v2)
FAIL(cuLinkAddFile_v2)
FAIL(cuLinkComplete)
FAIL(cuLinkCreate)
FAIL(cuLinkCreate_v2)
FAIL(cuLinkDestroy)
FAIL(cuMemcpyDtoH_v2)
FAIL(cuModuleGetGlobal_v2)
FAIL(cuModuleUnload)
FAIL(cuOccupancyMaxActiveBlocksPerMultiprocessor)
FAIL(cuOccupancyMaxPotentialClusterSize)
FAIL(cuStreamGetCtx)
FAIL(cuStreamSynchronize)
FAIL(cuTensorMapEncodeTiled)

} // extern "C"
