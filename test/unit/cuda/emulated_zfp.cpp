// SPDX-License-Identifier: Apache-2.0
// The kernels' zfp stream is libzfp's, bit for bit, and what they unpack is what libzfp unpacks. On the emulator alone:
// machines with a GPU need no libzfp.
#include "test/unit/runtime/Harness.h"
#include "test/unit/runtime/ZfpReference.h"

namespace sluice {
namespace {

TEST(ZfpStream, IsThatOfLibzfp) {
  for (const Tensor &like : {device(0, {2, 64, 8, 8}, Layout::NHWC), device(0, {3, 5, 7, 9}, Layout::NHWC),
                             device(0, {1, 3, 33, 31}, Layout::NHWC), device(0, {17, 100}), device(0, {7}),
                             device(0, {1, 1, 409, 1}, Layout::NHWC)})
    for (int rate : {2, 3, 8, 16, 31}) {
      Harness h(size_t(1) << 20);
      const Codec codec{Codec::Zfp, rate};
      const Tensor x = h.tensor(like.shape, like.layout);
      const Tensor packed = h.tensor({packedBytes(codec, x)}, Layout::RowMajor, DataType::U8);
      std::vector<float> values;
      for (double v : randomNumbers(x.shape.elements(), 3, 1e3))
        values.push_back(static_cast<float>(values.size() % 5 ? v : 1e-9 * v));
      h.session.write(x, values.data());
      Packing("x", codec, x).encode(h.session.compute, x, packed);
      std::vector<char> stream(packed.bytes());
      h.session.read(packed, stream.data());
      const ZfpGrid grid = zfpGrid(x);
      const auto used = static_cast<size_t>(grid.blocks() * 2 * rate);
      EXPECT_EQ(memcmp(stream.data(), zfpReference(values, grid, rate).data(), used), 0)
          << grid.rows << " x " << grid.columns << " at " << rate;
    }
}

} // namespace
} // namespace sluice
