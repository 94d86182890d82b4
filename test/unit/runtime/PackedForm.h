// SPDX-License-Identifier: Apache-2.0
// A tensor on its way through a codec in device memory, for tests of codecs.
#pragma once

#include "test/unit/runtime/Harness.h"

namespace sluice {

struct PackedForm {
  std::vector<char> bytes;
  std::vector<float> back;
};

/// The bytes that `codec` makes of x, in the order of memory, as a tensor of floats or halves, and what it makes of
/// these.
inline PackedForm through(const Codec &codec, const Shape &shape, Layout layout, const std::vector<float> &x,
                          DataType type = DataType::F32) {
  Harness h(size_t(8) << 20);
  const Tensor raw = h.tensor(shape, layout, type), again = h.tensor(shape, layout, type);
  const Tensor packed = h.tensor({packedBytes(codec, raw)}, Layout::RowMajor, DataType::U8);
  const Tensor line = device(raw.offset, {shape.elements()}, Layout::RowMajor, type),
               lineAgain = device(again.offset, {shape.elements()}, Layout::RowMajor, type);
  h.write(line, Numbers(x.begin(), x.end()));
  const Packing packing("x", codec, raw);
  packing.encode(h.session.compute, raw, packed);
  packing.decode(h.session.compute, packed, again);
  PackedForm result = {std::vector<char>(packed.bytes()), {}};
  h.session.read(packed, result.bytes.data());
  const Numbers back = h.read(lineAgain);
  result.back.assign(back.begin(), back.end());
  return result;
}

} // namespace sluice
