// SPDX-License-Identifier: Apache-2.0
// What any transport between ranks has, made of its messages.
#include "runtime/Ranks.h"

#include "runtime/Errors.h"

#include <algorithm>
#include <cstring>

namespace sluice {

std::string Awaited::text() const {
  return what + (node ? " of '" + std::string(node) + "'" : "") + (step > 0 ? " in step " + std::to_string(step) : "");
}

std::string Ranks::nameOf(int rank) const {
  const auto at = static_cast<size_t>(rank);
  return sluice::text("rank ", rank, at < nodes.size() ? " on " + nodes[at] : "");
}

std::vector<char> Ranks::gather(const void *mine, size_t bytes, const Awaited &awaited) {
  std::vector<char> all(bytes * static_cast<size_t>(count));
  const auto placeOf = [&](int rank) { return all.data() + bytes * static_cast<size_t>(rank); };
  std::memcpy(placeOf(number), mine, bytes);
  std::vector<Message> messages;
  for (int peer = 0; peer < count; ++peer)
    if (peer != number) {
      messages.push_back({peer, placeOf(number), bytes, true});
      messages.push_back({peer, placeOf(peer), bytes, false});
    }
  exchange(messages, awaited);
  return all;
}

// Lengths first, then all padded to the longest.
std::vector<std::string> Ranks::gather(const std::string &mine, const Awaited &awaited) {
  const uint64_t own = mine.size();
  const std::vector<char> bytes = gather(&own, sizeof own, awaited);
  std::vector<uint64_t> lengths(static_cast<size_t>(count));
  std::memcpy(lengths.data(), bytes.data(), bytes.size());
  const size_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::string padded = mine;
  padded.resize(longest);
  const std::vector<char> all = gather(padded.data(), longest, awaited);
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < lengths.size(); ++rank)
    texts.emplace_back(all.data() + rank * longest, lengths[rank]);
  return texts;
}

} // namespace sluice
