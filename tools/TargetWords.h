// SPDX-License-Identifier: Apache-2.0
// The words of the flags that say what programs are built for.
#pragma once

#include "runtime/Result.h"
#include "tools/Driver.h"

#include <string>

namespace sluice {

/// The word of --target.
Status takeTarget(const std::string &word, Target &target);

/// The word of --cpu, which `options` has with the target; x86-64-v3 and v3 are the same.
Status takeCpu(DriverOptions &options);

/// Those of --launches and --epilogues (empty: the default), which are for the cuda target.
Status takeLaunches(const std::string &launches, const std::string &epilogues, PipelineOptions &options);

/// The words of --ranks, --reduce and --shard, as --help says them; empty: a program for one process.
constexpr const char
    *ranksHelp = "mpi, with --target=cuda nccl: a program that mpirun starts several times, to train one model "
                 "together; N with --interconnect: print what a step of so many is predicted to take, and make no "
                 "program (default: one process)",
    *interconnectHelp = "what is between the ranks of --ranks=N: a shipped name or a .json file",
    *reduceHelp = "with --ranks: ordered, gradients of all ranks are summed in one order, so that their number changes "
                  "no bit, of up to N batches of each with --accumulate; or fast, in the library's order (default "
                  "ordered, N 4)";
constexpr const char *shardHelp = "with --ranks: each of N ranks or more keeps its share of the optimizer's states "
                                  "alone, and updates its share of the parameters; with gradients it gets its share "
                                  "of their sums alone, too; with parameters it has its share of these alone as "
                                  "well, and gets all of one for what uses it (default: all of them in each)";
Status takeRanks(const std::string &ranks, const std::string &reduce, const std::string &shard, DriverOptions &options);

/// The words of --batch and --threads; empty: the model's batch, this machine's threads.
Status takeCounts(const std::string &batch, const std::string &threads, DriverOptions &options);

/// Of --dim.
constexpr const char *dimHelp = "fixes a dynamic dimension by its name; with several extents the program has a step "
                                "for each: tokens=128,256 or, of "
                                "dimensions that vary together, height,width=32x48,48x32";
Status takeDims(const std::vector<std::string> &words, DriverOptions &options);
/// Of --loss.
constexpr const char *lossHelp =
    "softmax-cross-entropy (classes are dimension 1; the default), token-cross-entropy (they are the last), mse, "
    "bce-with-logits, ctc, or none where the model ends in its own; several: a weighted sum, each of its output";
/// Of --turn.
constexpr const char *turnHelp =
    "given several times: steps with a loss and parameters of their own, which alternate, as a GAN's: K steps (default "
    "1) that change what REGEX matches by the loss OUTPUT, then those of the next turn: docs/training.md";
/// Of --kv-cache.
constexpr const char *keyCacheHelp = "room for keys and values of a whole batch of texts, so that the program's "
                                     "--generate computes one token of each at a time instead of whole texts (host)";

/// --emit, and --data-formats, which goes with one of its words.
Status takeEmit(const std::string &word, DriverOptions &options);

/// An error for what a program with a step for each of several shapes, or turns, or with a cache of keys, cannot do
/// yet.
Status refuseNotYet(const DriverOptions &options);

} // namespace sluice
