// SPDX-License-Identifier: Apache-2.0
// Copies between the arenas. They run on the stream's own thread beside the compute stream; one core saturates what the
// memory bus leaves over, so they are not split. Large ones store past the caches: nobody reads the bytes soon, and a
// line that is not fetched before it is overwritten leaves a third of the traffic to compute.
#include "runtime/Kernels.h"

#include <cstring>
#include <string>

#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) // who do not see such stores
#define SLUICE_STREAMING_STORES
#include <emmintrin.h>
#endif

namespace sluice {

namespace {

#ifdef SLUICE_STREAMING_STORES
constexpr size_t smallestStreamed = size_t{1} << 20; ///< bytes that a core's own cache may hold until they are read

void copyBytes(char *target, const char *source, size_t bytes) {
  if (bytes < smallestStreamed)
    return (void)memcpy(target, source, bytes);
  const size_t head = -reinterpret_cast<uintptr_t>(target) % 64, body = (bytes - head) / 64 * 64;
  memcpy(target, source, head);
  for (size_t at = head; at < head + body; at += 64) {
    __m128i line[4];
    memcpy(line, source + at, sizeof line);
    for (int i = 0; i < 4; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i *>(target + at) + i, line[i]);
  }
  memcpy(target + head + body, source + head + body, bytes - head - body);
  _mm_sfence(); // whoever waits for the copy's event sees them
}
#else
void copyBytes(char *target, const char *source, size_t bytes) { memcpy(target, source, bytes); }
#endif

void copy(Stream &stream, const Tensor &from, const Tensor &to, Node node, const char *op) {
  if (from.bytes() != to.bytes())
    throw std::invalid_argument(std::string("copy for '") + node + "' from " + std::to_string(from.bytes()) +
                                " bytes to " + std::to_string(to.bytes()) + " bytes");
  const char *source = stream.data<char>(from);
  char *target = stream.data<char>(to);
  const size_t bytes = from.bytes();
  stream.launch(node, op, [=] { copyBytes(target, source, bytes); }, bytes);
}

} // namespace

void clear(Stream &stream, const Tensor &tensor, Node node) {
  char *target = stream.data<char>(tensor);
  const size_t bytes = tensor.bytes();
  stream.launch(node, "clear", [=] { memset(target, 0, bytes); });
}

void copyToHost(Stream &stream, const Tensor &from, const Tensor &to, Node node) {
  copy(stream, from, to, node.as(OpRole::Offload), "copy to host");
}

void copyToDevice(Stream &stream, const Tensor &from, const Tensor &to, Node node) {
  copy(stream, from, to, node.as(OpRole::Prefetch), "copy to device");
}

} // namespace sluice
