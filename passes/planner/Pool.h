// SPDX-License-Identifier: Apache-2.0
// How large a memory pool must be in which an allocator places blocks as they come, as frameworks do at run time: what
// static packing (Pack.h) competes with. Heuristics and search of S. Shriram, A. Garg, P. Kulkarni, Dynamic Memory
// Management for GPU-Based Training of Deep Neural Networks, IPDPS 2019, Sections III-B and IV-B.
#pragma once

#include "passes/planner/Pack.h"

#include <optional>
#include <vector>

namespace sluice::planner {

/// One call of the allocator. Blocks have numbers from 0 on, each is allocated once and then freed at most once.
struct PoolRequest {
  enum class What {
    Allocate,     ///< best fit: the low end of the smallest free block that is large enough
    AllocateHigh, ///< the high end of the last free block that is large enough
    Free
  };
  What what = What::Allocate;
  int block = 0;
  Bytes bytes = 0; ///< of an allocation
};

/// Items as an allocator sees them: by time, frees before allocations of the same time, otherwise in their order; sizes
/// rounded up to the item's alignment. `high`: items that say so go to the high end. Fixed offsets are not looked at.
std::vector<PoolRequest> poolRequests(const std::vector<PackItem> &items, bool high);

/// Most bytes allocated at once: no pool is smaller.
Bytes poolLoad(const std::vector<PoolRequest> &requests);

/// What the first request that a pool of `bytes` cannot serve lacks: its size less the largest free block (for the high
/// end: the last one). 0 when all are served.
Bytes poolLacking(const std::vector<PoolRequest> &requests, Bytes bytes);

/// The paper's search: from poolLoad() on, the pool grows by what is lacking and the requests start anew. Not the
/// smallest pool: sizes between may serve, and larger ones fail. Nothing when no size up to `most` was found, or none
/// in a number of rounds that takes some seconds.
std::optional<Bytes> searchPool(const std::vector<PoolRequest> &requests, Bytes most);

/// Bytes of all pools of an allocator that starts with one of poolLoad() and adds a pool of a request's size wherever
/// no free block is large enough. Pools never merge.
Bytes grownPools(const std::vector<PoolRequest> &requests);

} // namespace sluice::planner
