// SPDX-License-Identifier: Apache-2.0
// Copies between device memory and the locked host arena, on the copy engine of the stream given; and what the process
// itself reads and writes.
#include "runtime/cuda/Device.h"
#include "runtime/cuda/Launch.h"

namespace sluice {

namespace {

void copy(Stream &stream, const Tensor &from, const Tensor &to, Node node, const char *op, cudaMemcpyKind kind) {
  if (from.bytes() != to.bytes())
    throw std::invalid_argument(std::string("copy for '") + node + "' from " + std::to_string(from.bytes()) +
                                " bytes to " + std::to_string(to.bytes()) + " bytes");
  const void *source = stream.address(from);
  void *target = stream.address(to);
  stream.launch(
      node, op, [&] { checkCuda(cudaMemcpyAsync(target, source, from.bytes(), kind, native(stream)), "cannot copy"); },
      from.bytes());
}

} // namespace

void clear(Stream &stream, const Tensor &tensor, Node node) {
  void *target = stream.address(tensor);
  stream.launch(node, "clear", [&] {
    checkCuda(cudaMemsetAsync(target, 0, tensor.bytes(), native(stream)), "cannot clear a tensor");
  });
}

void copyToHost(Stream &stream, const Tensor &from, const Tensor &to, Node node) {
  copy(stream, from, to, node.as(OpRole::Offload), "copy to host", cudaMemcpyDeviceToHost);
}

void copyToDevice(Stream &stream, const Tensor &from, const Tensor &to, Node node) {
  copy(stream, from, to, node.as(OpRole::Prefetch), "copy to device", cudaMemcpyHostToDevice);
}

void Session::read(const Tensor &tensor, void *to) {
  synchronize();
  checkCuda(cudaMemcpy(to, compute.address(tensor), tensor.bytes(), cudaMemcpyDefault), "cannot read a tensor");
}

// The device has read all of `from` when this returns; cudaMemcpy promises that only of what it reads itself.
void Session::write(const Tensor &tensor, const void *from) {
  synchronize();
  checkCuda(cudaMemcpy(compute.address(tensor), from, tensor.bytes(), cudaMemcpyDefault), "cannot write a tensor");
  checkCuda(cudaStreamSynchronize(nullptr), "cannot write a tensor");
}

} // namespace sluice
