// SPDX-License-Identifier: Apache-2.0
// Sessions of the host runtime: streams over the arenas, what outlives a step, and what is asked of it afterwards.
#include "runtime/host/StreamState.h"

#include <cstring>

namespace sluice {

Session::Session(size_t deviceBytes, size_t hostBytes, int eventCount, const char *hostFile, ArenaSizes others)
    : impl(std::make_unique<Impl>(deviceBytes, hostBytes, eventCount, hostFile, others)), streams(makeStreams(*this)) {}

// Every wait's record was enqueued before it, so all streams run dry whichever is joined first.
Session::~Session() = default;

void Session::enqueue(const std::function<void(Session &)> &body) {
  if (impl->pool)
    impl->pool->beginStep();
  body(*this);
}
void Session::enableGraphs(bool) {}

// Kernels read session.state itself.
bool Session::runsAhead(const std::function<void(Session &)> &) const { return false; }
void Session::leave(const std::vector<Tensor> &scalars) { impl->left = scalars; }
void Session::take(float *scalars) {
  synchronize();
  for (const Tensor &scalar : impl->left)
    *scalars++ = scalar.present ? *compute.data<float>(scalar) : 0;
}
std::function<void()> Session::stepEnd() {
  return [this] { compute.synchronize(); };
}

void Session::release(const Tensor &tensor) {
  if (!impl->faults.poison || !tensor.present)
    return;
  void *bytes = compute.address(tensor);
  compute.launch("release", "poison", [bytes, size = tensor.bytes()] { memset(bytes, 0xff, size); });
}

void Session::synchronize() {
  for (const auto &stream : streams)
    stream->impl->drain();
  impl->rethrow();
  if (impl->faults.poison) {
    impl->device.checkGuards();
    impl->host.checkGuards();
    if (impl->spill)
      impl->spill->checkGuards();
  }
}

void Session::forgetFailure() { impl->forgetFailure(); }

void Session::read(const Tensor &tensor, void *to) {
  synchronize();
  if (tensor.space == Space::Storage)
    return impl->fileOf(tensor).read(static_cast<char *>(to), tensor.offset, tensor.bytes());
  memcpy(to, compute.address(tensor), tensor.bytes());
}

void Session::write(const Tensor &tensor, const void *from) {
  synchronize();
  if (tensor.space == Space::Storage)
    return impl->fileOf(tensor).write(static_cast<const char *>(from), tensor.offset, tensor.bytes());
  memcpy(compute.address(tensor), from, tensor.bytes());
}

void Session::captureGradient(const char *parameter, const Tensor &gradient, int64_t first) {
  if (!onGradient || !state.lastBatch())
    return;
  const void *data = compute.address(gradient);
  Stream &stream = gradient.space == Space::Host ? home : compute;
  stream.launch(parameter, "capture gradient",
                [this, parameter, gradient, first, data] { onGradient(parameter, gradient, first, data); });
}

size_t Session::peak(Space space) const {
  const size_t touched = impl->peaks[indexOf(space)];
  if (space != Space::Host || !impl->pool || impl->pool->peakBytes() == 0)
    return touched;
  return impl->pool->begins() - impl->host.base() + impl->pool->peakBytes();
}

void Session::notePacked(size_t raw, size_t packed) {
  impl->rawBytes += raw;
  impl->packedBytes += packed;
}

Session::PackedBytes Session::packedBytes() const {
  const size_t spilled = impl->pool ? impl->pool->spilledBytes() : 0, peak = impl->pool ? impl->pool->peakBytes() : 0;
  return {impl->rawBytes, impl->packedBytes, spilled, peak};
}

PackedPool *Session::packedPool() const { return impl->pool ? &*impl->pool : nullptr; }

void Session::enableRecording(bool on, bool zeros) {
  impl->countingZeros = on && zeros;
  impl->recording = on;
}

std::vector<OpRecord> Session::takeRecords() {
  std::vector<OpRecord> all;
  for (const auto &stream : streams) {
    std::lock_guard<std::mutex> lock(stream->impl->recordMutex);
    all.insert(all.end(), stream->impl->records.begin(), stream->impl->records.end());
    stream->impl->records.clear();
  }
  return all;
}

} // namespace sluice
