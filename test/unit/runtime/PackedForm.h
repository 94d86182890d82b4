// SPDX-License-Identifier: Apache-2.0
// A tensor on its way through a codec in device memory, for tests of codecs.
#pragma once

#include "test/unit/runtime/Harness.h"

namespace sluice {

struct PackedForm {
  std::vector<char> bytes;
  std::vector<float> back;
};

/// The bytes that `codec` makes of x, and what it makes of these.
inline PackedForm through(const Codec &codec, const Shape &shape, Layout layout, const std::vector<float> &x) {
  Harness h(size_t(8) << 20);
  const Tensor raw = h.tensor(shape, layout), again = h.tensor(shape, layout);
  const Tensor packed = h.tensor({packedBytes(codec, raw)}, Layout::RowMajor, DataType::U8);
  h.session.write(raw, x.data());
  const Packing packing("x", codec, raw);
  packing.encode(h.session.compute, raw, packed);
  packing.decode(h.session.compute, packed, again);
  PackedForm result = {std::vector<char>(packed.bytes()), std::vector<float>(x.size())};
  h.session.read(packed, result.bytes.data());
  h.session.read(again, result.back.data());
  return result;
}

} // namespace sluice
