// SPDX-License-Identifier: Apache-2.0
// Finding and starting the device. What is wrong with it is said in one line with both numbers, before anything is
// allocated.
#include "runtime/cuda/Device.h"

#include "runtime/cuda/Launch.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <vector>

namespace sluice {

namespace {

size_t chosenLimit = size_t(64) << 20;
Precision chosenPrecision = Precision::FP32;

std::vector<std::weak_ptr<Buildable>> &pending() {
  static std::vector<std::weak_ptr<Buildable>> list;
  return list;
}

struct Fallbacks {
  int count = 0;
  std::string first;
} fallbacks;

std::string cudaVersion(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string cudnnVersionText(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

void requireDriver() {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  const std::string built = cudaVersion(CUDART_VERSION);
  if (driver == 0)
    throw MemoryNotAvailable("CUDA driver not found: this program was built with CUDA " + built +
                             " and needs a driver for it, this machine has none; install NVIDIA's driver");
  if (driver / 1000 < CUDART_VERSION / 1000)
    throw MemoryNotAvailable("CUDA driver is too old: it supports CUDA " + cudaVersion(driver) +
                             ", this program was built with CUDA " + built + "; install a newer driver");
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
    throw MemoryNotAvailable("CUDA device not found: the driver (CUDA " + cudaVersion(driver) +
                             ") sees 0 GPUs, this program needs 1; see CUDA_VISIBLE_DEVICES");
  if (error != cudaSuccess)
    throw MemoryNotAvailable(std::string("CUDA cannot start: ") + cudaGetErrorName(error) + ", " +
                             cudaGetErrorString(error));
}

/// A library of another major version, or older than what this program was compiled against.
void requireCudnn() {
  const size_t loaded = cudnnGetVersion(), built = CUDNN_VERSION;
  if (loaded / 10000 != built / 10000 || loaded / 100 < built / 100)
    throw MemoryNotAvailable("CUDA cuDNN " + cudnnVersionText(loaded) + " is loaded, this program was built with " +
                             cudnnVersionText(built) +
                             " and needs that version or a newer one of the same major number");
}

void requireCapability(const cudaDeviceProp &properties) {
  const std::string capability = "CUDA device " + std::string(properties.name) + " has compute capability " +
                                 std::to_string(properties.major) + "." + std::to_string(properties.minor);
  if (!deviceCodeRuns())
    throw MemoryNotAvailable(
        capability + ", this program was built for " + deviceCodeArchitectures() +
        "; build it with SLUICE_CUDA_ARCHITECTURES=" + std::to_string(properties.major * 10 + properties.minor));
  // Engines of cuDNN for bf16 begin there, those for f16 that add in f32 with tensor cores.
  const char *least = chosenPrecision == Precision::BF16 ? "bf16 need 8.0" : "fp16 need 7.0";
  if ((chosenPrecision == Precision::BF16 && properties.major < 8) ||
      (chosenPrecision == Precision::FP16 && properties.major < 7))
    throw MemoryNotAvailable(capability + ", convolutions of this program's --precision=" + least +
                             " or higher; compile it with --precision=fp32");
}

size_t usedBytes() {
  size_t free = 0, total = 0;
  checkCuda(cudaMemGetInfo(&free, &total), "cannot read the device's memory");
  return total - free;
}

} // namespace

void checkCuda(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    throw DeviceError(std::string("CUDA ") + what + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error));
}

Device &Device::get() {
  static Device device;
  return device;
}

Device::Device() {
  requireDriver();
  requireCudnn();
  checkCuda(cudaSetDevice(0), "cannot use the device");
  checkCuda(cudaFree(nullptr), "cannot create a context");
  checkCuda(cudaGetDeviceProperties(&properties, 0), "cannot read the device's properties");
  requireCapability(properties);
  usedByContext = usedBytes();
  if (const cudnnStatus_t status = cudnnCreate(&cudnn); status != CUDNN_STATUS_SUCCESS)
    throw MemoryNotAvailable(std::string("CUDA cuDNN ") + cudnnVersionText(cudnnGetVersion()) +
                             " cannot start: " + cudnnGetErrorString(status));
  if (const cublasStatus_t status = cublasLtCreate(&blas); status != CUBLAS_STATUS_SUCCESS)
    throw MemoryNotAvailable(std::string("CUDA cuBLASLt cannot start: ") + cublasLtGetStatusString(status));
  usedByLibraries = usedBytes();
}

Target runtimeTarget() { return Target::Cuda; }

void setKernelPolicy(size_t limit, Precision precision) {
  chosenLimit = limit;
  chosenPrecision = precision;
}
size_t workspaceLimit() { return chosenLimit; }
Precision precision() { return chosenPrecision; }

// Threads of this process only draw initial weights and gather batches.
static int threadCount = 1;
void setThreads(int count) { threadCount = count; }
int threads() { return threadCount; }
void limitInstructions(int) {}
void ensureOpenMP(int, char **) {}
bool isOpenMPLimited() { return false; }

void noteFallback(const std::string &node, const std::string &what) {
  if (fallbacks.count++ == 0)
    fallbacks.first = "'" + node + "' " + what;
}

void buildLater(const std::shared_ptr<Buildable> &object) { pending().push_back(object); }

void buildPrimitives() {
  Device::get();
  std::vector<std::weak_ptr<Buildable>> list;
  list.swap(pending());
  for (const std::weak_ptr<Buildable> &weak : list)
    if (const std::shared_ptr<Buildable> object = weak.lock())
      object->build();
}

std::string deviceName() { return Device::get().properties.name; }

std::string memoryNotes() {
  const Device &device = Device::get();
  size_t free = 0, total = 0;
  checkCuda(cudaMemGetInfo(&free, &total), "cannot read the device's memory");
  return "device:        " + std::string(device.properties.name) + ", CUDA " + cudaVersion(CUDART_VERSION) +
         ", cuDNN " + cudnnVersionText(cudnnGetVersion()) + "\non top of it:  " + std::to_string(device.usedByContext) +
         " bytes for contexts, " + std::to_string(total - free - device.usedByContext) +
         " for libraries and primitives; " + std::to_string(free) + " of " + std::to_string(total) +
         " bytes are free\n" +
         (fallbacks.count == 0 ? ""
          : fallbacks.count == 1
              ? "note:          " + fallbacks.first + "\n"
              : "note:          " + fallbacks.first + "; so do " + std::to_string(fallbacks.count - 1) + " more\n");
}

} // namespace sluice
