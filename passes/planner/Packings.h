// SPDX-License-Identifier: Apache-2.0
// Which packed forms in device memory an activation can have, for whoever builds a Problem.
#pragma once

#include "passes/planner/Problem.h"
#include "passes/planner/Profile.h"

#include <functional>

namespace sluice::planner {

/// Packed forms of a tensor that has `raw` bytes as floats (rates are of those, and kernels widen halves), of every
/// codec that packs in device memory and whose rate the profile has: with a mask where gradients compare the tensor
/// with 0 and the codec does not keep signs; nothing of such a codec where they compare it with anything else. Those
/// with a mask come last. `bytesOf` gives the size of a form, 0 where the tensor has none. Times with a mask are the
/// profile's, or else those of the codec and of one more pass over the tensor. With `rates`, appends the forms of
/// ratedForms() that are not among these; all rates of a codec take the same time.
std::vector<Encoding> packingsOf(Bytes raw, Comparison compared, const Profile &profile,
                                 const std::function<Bytes(Codec)> &bytesOf, bool rates = false);

/// The codec at this rate, where it takes one and has none.
constexpr Codec withRate(Codec codec, int rate) {
  codec.rate = codec.kind == Codec::Zfp && codec.rate == 0 ? rate : codec.rate;
  return codec;
}

/// The codecs that copies can apply, with raw bytes per second: those whose rate the profile has, and zvc where zeros
/// stay on the device and the profile says how fast memory is. Kernels look at a tensor twice to pack it, for its bits
/// and for what is not zero, and write it twice to unpack it, as zeros and then what is not zero; so at the share of
/// the memory's bandwidth that kernels reach, half of it. The link, which carries what is not zero, is nearly always
/// slower than that.
std::vector<std::pair<Codec, double>> ratesOfCopies(const Profile &profile, bool zerosStay);

} // namespace sluice::planner
