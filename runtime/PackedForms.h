// SPDX-License-Identifier: Apache-2.0
// Which packed forms a tensor can have: what plans choose from under an error budget, and programs measure for it.
// Standard library only.
#pragma once

#include "runtime/CodecTable.h"

#include <vector>

namespace sluice {

/// What gradients compare a tensor with, by how much it asks of a codec. AboveZero: only whether a value is above 0, as
/// those of ReLU and LeakyReLU ask. Otherwise: with other bounds too, as that of Clip does.
enum class Comparison : uint8_t { None, AboveZero, Otherwise };

/// The form of a codec for a tensor that gradients compare so, with a mask or without; None where it has none: the
/// codec does not pack in device memory, or moves values across a bound that is asked for.
constexpr Codec packedForm(const CodecFacts &codec, Comparison compared) {
  if (!codec.onDevice || (compared == Comparison::Otherwise && !codec.keepsSigns))
    return {};
  Codec form{codec.kind};
  form.mask = compared == Comparison::AboveZero && !codec.keepsSigns;
  return form;
}

/// Bits a value at which zfp competes under an error budget, unless a strategy is given its rate.
constexpr int zfpRates[] = {4, 6, 8, 12, 16};

/// All packed forms of such a tensor with their rates: `fp16`, `mask+zfp:4` and so on.
inline std::vector<Codec> ratedForms(Comparison compared) {
  std::vector<Codec> forms;
  for (const CodecFacts &codec : codecTable) {
    Codec form = packedForm(codec, compared);
    if (form && form.kind != Codec::Zfp)
      forms.push_back(form);
    for (const int rate : zfpRates)
      if (form.kind == Codec::Zfp) {
        form.rate = rate;
        forms.push_back(form);
      }
  }
  return forms;
}

} // namespace sluice
