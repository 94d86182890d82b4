// SPDX-License-Identifier: Apache-2.0
// See Packings.h.
#include "passes/planner/Packings.h"

#include <algorithm>

namespace sluice::planner {

/// Of packing and of unpacking, at any rate.
static std::optional<Seconds> secondsOf(Codec form, Bytes raw, const Profile &profile) {
  const auto rate = [&](Codec codec) {
    const auto found = profile.codecs.find(codec);
    return found == profile.codecs.end() ? 0 : found->second;
  };
  form.rate = 0;
  const auto bytes = static_cast<double>(raw);
  if (const double measured = rate(form); measured > 0)
    return bytes / measured;
  if (const double alone = rate(form.kind); alone > 0)
    return bytes / alone + (form.mask ? profile.estimate(OpKind::Activation, bytes / 4, 2 * bytes) : 0);
  return std::nullopt;
}

/// Forms with a mask come last, so that of two that save as much the one whose readers need nothing is found first. A
/// form whose speed the profile does not know is none.
std::vector<Encoding> packingsOf(Bytes raw, Comparison compared, const Profile &profile,
                                 const std::function<Bytes(Codec)> &bytesOf, bool rates) {
  std::vector<Codec> packed;
  for (const CodecFacts &codec : codecTable)
    if (const Codec form = packedForm(codec, compared))
      packed.push_back(form);
  std::stable_partition(packed.begin(), packed.end(), [](Codec form) { return !form.mask; });
  if (rates)
    for (const Codec form : ratedForms(compared))
      if (std::find(packed.begin(), packed.end(), form) == packed.end())
        packed.push_back(form);
  std::vector<Encoding> forms;
  for (const Codec form : packed) {
    const std::optional<Seconds> seconds = secondsOf(form, raw, profile);
    if (const Bytes bytes = seconds ? bytesOf(form) : 0; bytes > 0)
      forms.push_back({form, bytes, *seconds, *seconds});
  }
  return forms;
}

std::vector<std::pair<Codec, double>> ratesOfCopies(const Profile &profile, bool zerosStay) {
  std::vector<std::pair<Codec, double>> rates;
  for (const CodecFacts &codec : codecTable) {
    const auto measured = profile.codecs.find(codec.kind);
    if (packsByRawBytes(codec.kind) && measured != profile.codecs.end())
      rates.emplace_back(codec.kind, measured->second);
    else if (codec.kind == Codec::Zvc && zerosStay && profile.rates.memoryBandwidth > 0)
      rates.emplace_back(codec.kind, profile.rates.memoryBandwidth * profile.rates.bandwidthEfficiency / 2);
  }
  return rates;
}

} // namespace sluice::planner
