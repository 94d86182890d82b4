// SPDX-License-Identifier: Apache-2.0
// The pages of the reproduction: one function an experiment, each writes Markdown with our figure beside the paper's.
#pragma once

#include <ostream>

namespace sluice::bench {

/// Beaumont et al. (Euro-Par 2020), Figure 2: makespan over lower bound, ten networks, budgets from the smallest
/// feasible to the peak.
void chainRatios(std::ostream &page);

/// The same, Figure 3: throughput over memory at one, two and three times the bandwidth, beside rematerialization; and
/// planning times.
void throughput(std::ostream &page);

/// Figure 2's orderings at images of 500 and 1000.
void imageSizes(std::ostream &page);

/// dynprog with whole-tensor release against its optimum with partial release, over 2,000 random chains.
void releaseRatio(std::ostream &page);

/// vDNN++ (IPDPS 2019), Table I: layers against the copy of their input.
void layerTimes(std::ostream &page);

/// The same, Tables III and IV: an iteration of vDNN and of vDNN++.
void vdnnTimes(std::ostream &page);

/// Hascoet et al. (2019): ablation, networks, and VGG-19 of the abstract.
void hascoetTables(std::ostream &page);

/// FreeLunch: ResNet-152 over the batch; its tables; sizes of its buffers.
void freeLunchBatches(std::ostream &page);
void freeLunchTables(std::ostream &page);
void freeLunchSizes(std::ostream &page);

/// vDNN++ (IPDPS 2019): pinned memory by its rule.
void pinnedMemory(std::ostream &page);

/// Mixed against every other strategy on op-level programs, and time to plan.
void mixedSweep(std::ostream &page);

/// The same: aggregates and pool sizes of vDNN modes.
void vdnnPools(std::ostream &page);

/// Processor time and memory of planning over the number of ops. The first page that is written: its processes begin
/// with the memory of this one.
void planningGrowth(std::ostream &page);

/// What copies in pieces could gain at most.
void splitCopies(std::ostream &page);

/// How much of the copies' time runs beside compute, by strategy.
void hiddenCopies(std::ostream &page);

} // namespace sluice::bench
