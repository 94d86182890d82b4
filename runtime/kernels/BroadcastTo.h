// SPDX-License-Identifier: Apache-2.0
// BroadcastTo as a region of one multiplication. Included by one file of each runtime, which compiles it for its
// target.
#pragma once

#include "runtime/Fused.h"
#include "runtime/kernels/Strides.h"

namespace sluice {

namespace detail {

template <bool Steps, DataType From, DataType To> struct Scaled {
  static constexpr int inputs = 1, outputs = 1, sums = 0;
  static constexpr bool steps[1] = {Steps};
  static constexpr DataType types[2] = {From, To};
  float scale = 1;
  SLUICE_KERNEL Values<1> operator()(float x) const { return {{x * scale}}; }
};

} // namespace detail

struct BroadcastTo::Impl {
  virtual ~Impl() = default;
  virtual void run(Stream &stream, const Tensor &x, const Tensor &y) const = 0;
};

namespace detail {

template <typename F> struct BroadcastRegion : BroadcastTo::Impl {
  BroadcastRegion(Node node, const Tensor &x, const Tensor &y, float scale)
      : region(node, y.shape, y.layout, {x}, {y}, {}, F{scale}) {}
  void run(Stream &stream, const Tensor &x, const Tensor &y) const override { region.run(stream, {x}, {y}, {}, none); }
  Fused<F> region;
};

template <DataType From, DataType To>
std::shared_ptr<BroadcastTo::Impl> broadcastRegion(Node node, const Tensor &x, const Tensor &y, float scale) {
  const int missing = y.shape.rank - x.shape.rank, last = y.shape.rank ? physicalOrder(y).back() - missing : -1;
  if (last >= 0 && x.shape[last] > 1)
    return std::make_shared<BroadcastRegion<Scaled<true, From, To>>>(node, x, y, scale);
  return std::make_shared<BroadcastRegion<Scaled<false, From, To>>>(node, x, y, scale);
}

/// Where either is Half, and the other one that or F32.
template <DataType Half> auto broadcastOfHalf(const Tensor &x, const Tensor &y) {
  return x.type == y.type          ? broadcastRegion<Half, Half>
         : x.type == DataType::F32 ? broadcastRegion<DataType::F32, Half>
                                   : broadcastRegion<Half, DataType::F32>;
}

} // namespace detail

BroadcastTo::BroadcastTo(Node node, const Tensor &x, const Tensor &y, float scale) : Kernel(node) {
  auto region = detail::broadcastRegion<DataType::F32, DataType::F32>;
  if (x.type == DataType::BF16 || y.type == DataType::BF16)
    region = detail::broadcastOfHalf<DataType::BF16>(x, y);
#if defined(__CUDACC__)
  if (x.type == DataType::F16 || y.type == DataType::F16)
    region = detail::broadcastOfHalf<DataType::F16>(x, y);
#endif
  impl = region(node, x, y, scale);
}

void BroadcastTo::run(Stream &stream, const Tensor &x, const Tensor &y) const { impl->run(stream, x, y); }

} // namespace sluice
