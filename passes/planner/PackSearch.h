// SPDX-License-Identifier: Apache-2.0
// Exact packing by canonical depth-first search, after M. D. Moffitt, MiniMalloc: A Lightweight Memory Allocator for
// Hardware-Accelerated Machine Learning, ASPLOS 2023 (volume 4), Sections 4 and 5.
#pragma once

#include "passes/planner/Pack.h"

namespace sluice::planner {

/// Lowers `best` while the node limit lasts: asks for the target height first, then halves the interval between load
/// and best. Updates height, offsets, nodes, optimal and method; leaves `best` alone when nothing better is found.
void searchPacking(const std::vector<PackItem> &items, const PackOptions &options, Packing &best);

} // namespace sluice::planner
