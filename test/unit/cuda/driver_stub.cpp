// SPDX-License-Identifier: Apache-2.0
// What cuDNN asks of libcuda.so.1 when it makes engines that it compiles itself, for conv_engines.cpp on machines that
// have no driver. Loading what was compiled succeeds; there is no device.
extern "C" {

int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuLibraryLoadData(void **library) { return *library = library, 0; }
int cuLibraryGetKernel(void **kernel) { return *kernel = kernel, 0; }
int cuLibraryUnload(void *) { return 0; }

#define SLUICE_NO_DEVICE(name)                                                                                         \
  int name() { return 34; } // CUDA_ERROR_STUB_LIBRARY
SLUICE_NO_DEVICE(cuInit)
SLUICE_NO_DEVICE(cuDeviceGet)
SLUICE_NO_DEVICE(cuDeviceGetCount)
SLUICE_NO_DEVICE(cuCtxGetCurrent)
SLUICE_NO_DEVICE(cuCtxGetLimit)
SLUICE_NO_DEVICE(cuCtxPopCurrent)
SLUICE_NO_DEVICE(cuCtxPushCurrent)
SLUICE_NO_DEVICE(cuGetErrorName)
SLUICE_NO_DEVICE(cuGetErrorString)
SLUICE_NO_DEVICE(cuKernelGetAttribute)
SLUICE_NO_DEVICE(cuKernelSetAttribute)
SLUICE_NO_DEVICE(cuLaunchCooperativeKernel)
SLUICE_NO_DEVICE(cuLaunchKernel)
SLUICE_NO_DEVICE(cuLaunchKernelEx)
SLUICE_NO_DEVICE(cuLibraryLoadFromFile)
SLUICE_NO_DEVICE(cuLinkAddData)
SLUICE_NO_DEVICE(cuLinkComplete)
SLUICE_NO_DEVICE(cuLinkCreate)
SLUICE_NO_DEVICE(cuLinkDestroy)
SLUICE_NO_DEVICE(cuOccupancyMaxPotentialClusterSize)
SLUICE_NO_DEVICE(cuStreamGetCtx)
}
