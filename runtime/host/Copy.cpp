// SPDX-License-Identifier: Apache-2.0
// Copies between the arenas. They run on the stream's own thread beside the compute stream; one core saturates what the
// memory bus leaves over, so they are not split.
#include "runtime/Kernels.h"

#include <cstring>
#include <string>

namespace sluice {

namespace {

void copy(Stream &stream, const Tensor &from, const Tensor &to, const char *node, const char *op) {
  if (from.bytes() != to.bytes())
    throw std::invalid_argument(std::string("copy for '") + node + "' from " + std::to_string(from.bytes()) +
                                " bytes to " + std::to_string(to.bytes()) + " bytes");
  const char *source = stream.data<char>(from);
  char *target = stream.data<char>(to);
  const size_t bytes = from.bytes();
  stream.launch(
      node, op, [=] { memcpy(target, source, bytes); }, bytes);
}

} // namespace

void clear(Stream &stream, const Tensor &tensor, const char *node) {
  char *target = stream.data<char>(tensor);
  const size_t bytes = tensor.bytes();
  stream.launch(node, "clear", [=] { memset(target, 0, bytes); });
}

void copyToHost(Stream &stream, const Tensor &from, const Tensor &to, const char *node) {
  copy(stream, from, to, node, "copy to host");
}

void copyToDevice(Stream &stream, const Tensor &from, const Tensor &to, const char *node) {
  copy(stream, from, to, node, "copy to device");
}

} // namespace sluice
