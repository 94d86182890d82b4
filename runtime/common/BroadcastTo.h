// SPDX-License-Identifier: Apache-2.0
// BroadcastTo as a region of one multiplication. Included by one file of each runtime, which compiles it for its target.
#pragma once

#include "runtime/Fused.h"
#include "runtime/common/Strides.h"

#include <optional>

namespace sluice {

namespace detail {

template <bool Steps> struct Scaled {
  static constexpr int inputs = 1, outputs = 1, sums = 0;
  static constexpr bool steps[] = {Steps};
  float scale = 1;
  SLUICE_KERNEL Values<1> operator()(float x) const { return {{x * scale}}; }
};

} // namespace detail

struct BroadcastTo::Impl {
  std::optional<Fused<detail::Scaled<true>>> advancing;
  std::optional<Fused<detail::Scaled<false>>> constant;
};

BroadcastTo::BroadcastTo(const char *node, const Tensor &x, const Tensor &y, float scale) : Kernel(node) {
  auto plan = std::make_shared<Impl>();
  const int missing = y.shape.rank - x.shape.rank;
  const int last = y.shape.rank ? physicalOrder(y).back() - missing : -1;
  if (last >= 0 && x.shape[last] > 1)
    plan->advancing.emplace(node, y.shape, y.layout, std::initializer_list<Tensor>{x}, std::initializer_list<Tensor>{y},
                            std::initializer_list<Tensor>{}, detail::Scaled<true>{scale});
  else
    plan->constant.emplace(node, y.shape, y.layout, std::initializer_list<Tensor>{x}, std::initializer_list<Tensor>{y},
                           std::initializer_list<Tensor>{}, detail::Scaled<false>{scale});
  impl = plan;
}

void BroadcastTo::run(Stream &stream, const Tensor &x, const Tensor &y) const {
  if (impl->advancing)
    impl->advancing->run(stream, {x}, {y}, {}, none);
  else
    impl->constant->run(stream, {x}, {y}, {}, none);
}

} // namespace sluice
