// SPDX-License-Identifier: Apache-2.0
// See Packings.h.
#include "passes/planner/Packings.h"

#include <algorithm>

namespace sluice::planner {

/// Of the codec, with a mask or without.
static std::optional<Seconds> secondsOf(const CodecFacts &codec, bool mask, Bytes raw, const Profile &profile) {
  const auto rate = [&](const std::string &name) {
    const auto found = profile.codecs.find(name);
    return found == profile.codecs.end() ? 0 : found->second;
  };
  const auto bytes = static_cast<double>(raw);
  if (const double measured = mask ? rate(std::string(maskPrefix) + codec.name) : 0; measured > 0)
    return bytes / measured;
  if (const double alone = rate(codec.name); alone > 0)
    return bytes / alone + (mask ? profile.estimate(OpKind::Activation, bytes / 4, 2 * bytes) : 0);
  return std::nullopt;
}

std::vector<Encoding> packingsOf(Bytes raw, Comparison compared, const Profile &profile,
                                 const std::function<Bytes(const std::string &)> &bytesOf, bool rates) {
  std::vector<std::string> names;
  for (const CodecFacts &codec : codecTable)
    if (const std::string name = packedForm(codec, compared); !name.empty())
      names.push_back(name);
  std::stable_partition(names.begin(), names.end(), [](const std::string &name) { return !hasMask(name); });
  if (rates)
    for (const std::string &name : ratedForms(compared))
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  std::vector<Encoding> forms;
  for (const std::string &name : names) {
    const std::optional<Seconds> seconds = secondsOf(*findCodec(name), hasMask(name), raw, profile);
    if (const Bytes packed = seconds ? bytesOf(name) : 0; packed > 0)
      forms.push_back({name, packed, *seconds, *seconds});
  }
  return forms;
}

std::vector<std::pair<std::string, double>> ratesOfCopies(const Profile &profile, bool zerosStay) {
  std::vector<std::pair<std::string, double>> rates;
  for (const CodecFacts &codec : codecTable) {
    const auto measured = profile.codecs.find(codec.name);
    if (packsByRawBytes(codec.name) && measured != profile.codecs.end())
      rates.emplace_back(codec.name, measured->second);
    else if (codec.kind == Codec::Zvc && zerosStay && profile.rates.memoryBandwidth > 0)
      rates.emplace_back(codec.name, profile.rates.memoryBandwidth * profile.rates.bandwidthEfficiency / 2);
  }
  return rates;
}

} // namespace sluice::planner
