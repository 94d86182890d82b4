// SPDX-License-Identifier: Apache-2.0
// See CodecBench.h.
#include "tools/bench/CodecBench.h"

#include "runtime/Random.h"

#include <cstdio>
#include <string>
#include <vector>

namespace sluice {

namespace {

double gigabytesPerSecond(const Tensor &x, double seconds) { return static_cast<double>(x.bytes()) / seconds * 1e-9; }

void packings(int64_t batch) {
  const Tensor x = device(0, {batch, 64, 56, 56}, Layout::NHWC);
  Session session(2 * x.bytes(), 0, 0);
  Stream &stream = session.compute;
  const int64_t elements = x.shape.elements();
  std::vector<float> values(static_cast<size_t>(elements));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::max(0.0f, normal(1, i));
  session.write(x, values.data());
  puts("codec: bits a value, GB/s of raw bytes packed and unpacked");
  for (const char *name : {"fp16", "bf16", "int8", "mask+fp16", "mask+int8", "zfp:4", "zfp:8", "zfp:16", "mask+zfp:4",
                           "mask+zfp:8", "mask+zfp:16"}) {
    const Codec codec = *parseCodec(name);
    const Tensor packed = device(x.bytes(), {packedBytes(codec, x)}, Layout::RowMajor, DataType::U8);
    const Packing packing(name, codec, x);
    const double pack = bestSeconds(session, [&] { packing.encode(stream, x, packed); });
    const double unpack = bestSeconds(session, [&] { packing.decode(stream, packed, x); });
    printf("%-12s %6.3f %7.3f %7.3f\n", name, 8.0 * static_cast<double>(packed.bytes()) / static_cast<double>(elements),
           gigabytesPerSecond(x, pack), gigabytesPerSecond(x, unpack));
  }
}

/// Words of this type, a share of them zero.
std::vector<char> words(const Tensor &x, double zeros) {
  const auto count = static_cast<size_t>(x.shape.elements()), width = x.bytes() / count;
  std::vector<char> bytes(x.bytes());
  for (size_t i = 0; i < count; ++i)
    if (uniform(2, i) >= zeros)
      for (size_t k = 0; k < width; ++k)
        bytes[width * i + k] = 0x3c; // a normal number of either type
  return bytes;
}

void copies(int64_t batch, DataType type, const char *name, const Codec &codec, double zeros) {
  const Tensor x = device(0, {batch, 64, 56, 56}, Layout::NHWC, type);
  const bool packs = codec.kind != Codec::None;
  const auto form = static_cast<size_t>(packs ? packedBytes(codec, x) : static_cast<int64_t>(x.bytes()));
  Session session(x.bytes(), form, 0);
  session.write(x, words(x, zeros).data());
  const Tensor slot =
      packs ? host(0, {static_cast<int64_t>(form)}, Layout::RowMajor, DataType::U8) : host(0, x.shape, x.layout, type);
  const double out = bestSeconds(session, [&] {
    packs ? copyToHost(session.toHost, x, slot, name, codec) : copyToHost(session.toHost, x, slot, name);
  });
  const double back = bestSeconds(session, [&] {
    packs ? copyToDevice(session.toDevice, slot, x, name, codec) : copyToDevice(session.toDevice, slot, x, name);
  });
  const Session::PackedBytes packed = session.packedBytes();
  const double kept = packed.raw > 0 ? static_cast<double>(packed.packed) / static_cast<double>(packed.raw)
                                     : static_cast<double>(form) / static_cast<double>(x.bytes());
  printf("%-12s %4.2f %6.3f %7.3f %7.3f\n", name, zeros,
         8.0 * kept * static_cast<double>(x.bytes()) / static_cast<double>(x.shape.elements()),
         gigabytesPerSecond(x, out), gigabytesPerSecond(x, back));
}

} // namespace

void benchCodecs(int64_t batch) {
  packings(batch);
  puts("copies: share of zeros, bits a value, GB/s of raw bytes to the host and back");
  copies(batch, DataType::F32, "raw", {}, 0.5);
  copies(batch, DataType::F32, "fp16", Codec{Codec::Fp16}, 0.5);
  for (double zeros : {0.0, 0.5, 0.9})
    copies(batch, DataType::F32, "zvc", Codec{Codec::Zvc}, zeros);
  if (runtimeTarget() == Target::Cuda)
    for (double zeros : {0.0, 0.5, 0.9})
      copies(batch, DataType::BF16, "zvc bf16", Codec{Codec::Zvc}, zeros);
}

} // namespace sluice
