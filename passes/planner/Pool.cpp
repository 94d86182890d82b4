// SPDX-License-Identifier: Apache-2.0
// Replays requests in an allocator with one list of free blocks, see Pool.h.
#include "passes/planner/Pool.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace sluice::planner {

namespace {

using What = PoolRequest::What;

/// Free blocks by offset, for merging and for the high end, and by size, for best fit. Pools lie one byte apart, so
/// that blocks of two never touch.
class Allocator {
public:
  /// A pool of its own: it touches no other, so that their blocks never merge.
  void addPool(Bytes bytes) {
    insert(end, bytes);
    end += bytes + 1;
  }

  /// A freed block merges with the free ones on both sides.
  void release(int block) {
    const auto used = blocks.find(block);
    auto [offset, bytes] = used->second;
    blocks.erase(used);
    if (bytes == 0)
      return;
    if (auto after = free.find(offset + bytes); after != free.end()) {
      bytes += after->second;
      remove(after);
    }
    if (auto before = free.lower_bound(offset); before != free.begin())
      if (--before; before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        remove(before);
      }
    insert(offset, bytes);
  }

  /// False when no free block is large enough.
  bool allocate(const PoolRequest &request) {
    if (request.bytes == 0) {
      blocks[request.block] = {0, 0};
      return true;
    }
    const bool high = request.what == What::AllocateHigh;
    auto place = free.end();
    if (high) {
      const auto last = std::find_if(free.rbegin(), free.rend(), [&](auto &f) { return f.second >= request.bytes; });
      place = last == free.rend() ? free.end() : std::prev(last.base());
    } else if (auto best = bySize.lower_bound({request.bytes, 0}); best != bySize.end()) {
      place = free.find(best->second);
    }
    if (place == free.end())
      return false;
    const auto [offset, bytes] = *place;
    remove(place);
    const Bytes rest = bytes - request.bytes;
    blocks[request.block] = {high ? offset + rest : offset, request.bytes};
    if (rest > 0)
      insert(high ? offset : offset + request.bytes, rest);
    return true;
  }

  /// The free block that the request is compared with.
  Bytes nearest(const PoolRequest &request) const {
    if (free.empty())
      return 0;
    return request.what == What::AllocateHigh ? free.rbegin()->second : bySize.rbegin()->first;
  }

private:
  using Blocks = std::map<Bytes, Bytes>; ///< offset to size

  void insert(Bytes offset, Bytes bytes) {
    if (bytes > 0) {
      free[offset] = bytes;
      bySize.insert({bytes, offset});
    }
  }
  void remove(Blocks::iterator at) {
    bySize.erase({at->second, at->first});
    free.erase(at);
  }

  Blocks free;
  std::set<std::pair<Bytes, Bytes>> bySize;
  std::map<int, std::pair<Bytes, Bytes>> blocks; ///< offset and size of what is in use
  Bytes end = 0;
};

} // namespace

std::vector<PoolRequest> poolRequests(const std::vector<PackItem> &items, bool high) {
  struct Event {
    int64_t time;
    bool allocates;
    int item;
  };
  std::vector<Event> events;
  for (int i = 0; i < static_cast<int>(items.size()); ++i) {
    events.push_back({items[i].lower, true, i});
    events.push_back({items[i].upper, false, i});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    return a.time != b.time ? a.time < b.time : a.allocates < b.allocates;
  });
  std::vector<PoolRequest> requests;
  for (const Event &e : events) {
    const PackItem &item = items[e.item];
    const Bytes rounded = (item.size + item.alignment - 1) / item.alignment * item.alignment;
    requests.push_back({!e.allocates        ? What::Free
                        : high && item.high ? What::AllocateHigh
                                            : What::Allocate,
                        e.item, e.allocates ? rounded : 0});
  }
  return requests;
}

Bytes poolLoad(const std::vector<PoolRequest> &requests) {
  std::map<int, Bytes> live;
  Bytes now = 0, most = 0;
  for (const PoolRequest &r : requests) {
    now += r.what == What::Free ? -live[r.block] : r.bytes;
    live[r.block] = r.bytes;
    most = std::max(most, now);
  }
  return most;
}

Bytes poolLacking(const std::vector<PoolRequest> &requests, Bytes bytes) {
  Allocator allocator;
  allocator.addPool(bytes);
  for (const PoolRequest &r : requests)
    if (r.what == What::Free)
      allocator.release(r.block);
    else if (!allocator.allocate(r))
      return r.bytes - allocator.nearest(r);
  return 0;
}

std::optional<Bytes> searchPool(const std::vector<PoolRequest> &requests, Bytes most) {
  Bytes pool = poolLoad(requests);
  for (size_t round = 0; round <= 100'000'000 / (requests.size() + 1); ++round) {
    if (pool > most)
      return std::nullopt;
    const Bytes lacking = poolLacking(requests, pool);
    if (lacking == 0)
      return pool;
    pool += lacking;
  }
  return std::nullopt;
}

// What CNMeM does when a pool is full: it asks for another one.
Bytes grownPools(const std::vector<PoolRequest> &requests) {
  Allocator allocator;
  Bytes total = poolLoad(requests);
  allocator.addPool(total);
  for (const PoolRequest &r : requests)
    if (r.what == What::Free) {
      allocator.release(r.block);
    } else if (!allocator.allocate(r)) {
      allocator.addPool(r.bytes);
      total += r.bytes;
      allocator.allocate(r);
    }
  return total;
}

} // namespace sluice::planner
