// SPDX-License-Identifier: Apache-2.0
// Finding and starting the device. What is wrong with it is said in one line with both numbers, before anything is
// allocated.
#include "runtime/cuda/Device.h"

#include "runtime/Inside.h"
#include "runtime/Ranks.h"
#include "runtime/Stream.h"
#include "runtime/cuda/Launch.h"

#include <algorithm>
#include <atomic>
#include <cublasLt.h>
#include <cudnn.h>
#include <exception>
#include <mutex>
#include <system_error>
#include <vector>

namespace sluice {

namespace {

int chosenDevice = 0;
size_t chosenLimit = size_t(64) << 20;
Precision chosenPrecision = Precision::FP32;

/// What buildPrimitives() has to do.
struct Pending {
  std::mutex mutex;
  std::vector<std::weak_ptr<Buildable>> list;
};
Pending &pending() {
  static Pending pending;
  return pending;
}

struct Fallbacks {
  int count = 0;
  std::string first;
} fallbacks;

/// Turns of a library's handles. The step's state, what kernels note and the counters of their sums are variables in
/// device memory, and cuDNN's handle has one stream at a time.
struct Turns {
  std::mutex mutex;
  std::atomic<std::thread::id> holder{};
  int before = 0; ///< device of the application on the holder's thread
} turns;

std::string cudaVersion(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string cudnnVersionText(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// Returns the number of devices.
int requireDriver() {
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
  return count;
}

/// The frontend asks the loaded library for its version before it uses what came later than this one.
constexpr size_t oldestCudnn = 90800;

void requireCudnn() {
  const size_t loaded = cudnnGetVersion(), built = CUDNN_VERSION;
  if (loaded / 10000 != built / 10000 || loaded < oldestCudnn)
    throw MemoryNotAvailable("CUDA cuDNN " + cudnnVersionText(loaded) + " is loaded, this program was built with " +
                             cudnnVersionText(built) + " and needs " + cudnnVersionText(oldestCudnn) +
                             " or a newer one of the same major number");
}

cudnnHandle_t createCudnn() {
  cudnnHandle_t handle = nullptr;
  if (const cudnnStatus_t status = cudnnCreate(&handle); status != CUDNN_STATUS_SUCCESS)
    throw MemoryNotAvailable(std::string("CUDA cuDNN ") + cudnnVersionText(cudnnGetVersion()) +
                             " cannot start: " + cudnnGetErrorString(status));
  return handle;
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

std::string instructionsInEffect() {
  const cudaDeviceProp &device = Device::get().properties;
  return "compute capability " + std::to_string(device.major) + "." + std::to_string(device.minor) + ", cuDNN " +
         cudnnVersionText(cudnnGetVersion());
}

void chooseDevice(int number) { chosenDevice = number; }

size_t Session::driverBytes() const { return usedBytes(); }

void checkCuda(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    throw DeviceError(std::string("CUDA ") + what + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error));
}

Device &Device::get() {
  static Device device;
  return device;
}

Device::Device() {
  chosenDevice %= requireDriver();
  requireCudnn();
  checkCuda(cudaSetDevice(chosenDevice), "cannot use the device");
  checkCuda(cudaFree(nullptr), "cannot create a context");
  checkCuda(cudaGetDeviceProperties(&properties, chosenDevice), "cannot read the device's properties");
  requireCapability(properties);
  usedByContext = usedBytes();
  cudnn = createCudnn();
  if (const cublasStatus_t status = cublasLtCreate(&blas); status != CUBLAS_STATUS_SUCCESS)
    throw MemoryNotAvailable(std::string("CUDA cuBLASLt cannot start: ") + cublasLtGetStatusString(status));
  usedByLibraries = usedBytes();
}

// The application's own device may be another one. Errors are Device::get()'s to tell.
bool takeDevice() {
  if (turns.holder.load() == std::this_thread::get_id())
    return false;
  turns.mutex.lock();
  turns.holder = std::this_thread::get_id();
  if (cudaGetDevice(&turns.before) != cudaSuccess)
    turns.before = chosenDevice;
  if (turns.before != chosenDevice)
    cudaSetDevice(chosenDevice);
  cudaGetLastError();
  return true;
}

void leaveDevice() {
  if (turns.before != chosenDevice)
    cudaSetDevice(turns.before);
  turns.holder = std::thread::id();
  turns.mutex.unlock();
}

cudnnContext *Device::builder() {
  if (std::this_thread::get_id() == maker)
    return cudnn;
  static thread_local cudnnHandle_t own = nullptr;
  if (!own) {
    checkCuda(cudaSetDevice(chosenDevice), "cannot use the device");
    own = createCudnn();
  }
  return own;
}

Target runtimeTarget() { return Target::Cuda; }

void setKernelPolicy(size_t limit, Precision precision) {
  chosenLimit = limit;
  chosenPrecision = precision;
}
size_t workspaceLimit() { return chosenLimit; }
Precision precision() { return chosenPrecision; }

// Threads of this process only build plans, draw initial weights and gather batches.
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

void buildLater(const std::shared_ptr<Buildable> &object) {
  const std::lock_guard<std::mutex> lock(pending().mutex);
  pending().list.push_back(object);
}

/// Those that are still owned; the list is empty then.
static std::vector<std::shared_ptr<Buildable>> takePending() {
  const std::lock_guard<std::mutex> lock(pending().mutex);
  std::vector<std::shared_ptr<Buildable>> objects;
  for (const std::weak_ptr<Buildable> &weak : pending().list)
    if (std::shared_ptr<Buildable> object = weak.lock())
      objects.push_back(std::move(object));
  pending().list.clear();
  return objects;
}

// cuDNN compiles fused engines for seconds each, on one processor.
static void buildAll(const std::vector<std::shared_ptr<Buildable>> &objects) {
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failures(objects.size());
  auto work = [&] {
    for (size_t i; (i = next++) < objects.size();)
      try {
        objects[i]->build();
      } catch (...) {
        failures[i] = std::current_exception();
      }
  };
  std::vector<std::thread> others;
  try {
    for (size_t i = 1; i < std::min(objects.size(), static_cast<size_t>(threadCount)); ++i)
      others.emplace_back(work);
  } catch (const std::system_error &) { // no more threads are to be had: those that there are do it
  }
  work();
  for (std::thread &thread : others)
    thread.join();
  for (const std::exception_ptr &failure : failures)
    if (failure)
      std::rethrow_exception(failure);
}

void buildPrimitives() {
  Device::get();
  // What is built may describe more: what stands in for an engine that there is not.
  for (std::vector<std::shared_ptr<Buildable>> objects; !(objects = takePending()).empty();) {
    buildAll(objects);
    for (const std::shared_ptr<Buildable> &object : objects)
      object->report();
  }
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
