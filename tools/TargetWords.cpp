// SPDX-License-Identifier: Apache-2.0
// See TargetWords.h.
#include "tools/TargetWords.h"

#include "codegen/Toolchain.h"
#include "passes/kernels/HostKernels.h"
#include "passes/planner/Words.h"
#include "runtime/CpuTable.h"
#include "runtime/Ranks.h"
#include "runtime/TargetTable.h"
#include "runtime/host/Processor.h"

#include "llvm/ADT/STLExtras.h"

#include <charconv>
#include <limits>
#include <thread>

namespace sluice {

Status takeTarget(const std::string &word, Target &target) {
  std::string known;
  for (const TargetFacts &facts : targetTable) {
    if (word == facts.name) {
      target = facts.target;
      return Success{};
    }
    known += (known.empty() ? "" : " and ") + std::string(facts.name);
  }
  return Error{"--target knows no '" + word + "'; there are " + known};
}

Status takeCpu(DriverOptions &o) {
  if (o.cpu == "native") { // a compiler for many machines was built for less than most of them have
    const int level = processorLevel();
    if (!factsOf(o.pipeline.target).levels || codegen::ownLevel() == 0 || level <= codegen::ownLevel())
      return Success{};
    o.cpu = factsOfCpu(level).name;
  }
  std::string known = "native";
  for (int level = firstLevel; level <= lastLevel; ++level) {
    const CpuFacts &facts = factsOfCpu(level);
    known += (level < lastLevel ? ", " : " and ") + std::string(facts.name);
    if (o.cpu == facts.name || o.cpu == facts.brief) {
      o.cpu = facts.name;
      o.pipeline.level = level;
    }
  }
  if (o.pipeline.level == 0)
    return Error{"--cpu knows no '" + o.cpu + "'; there are " + known};
  return factsOf(o.pipeline.target).levels ? Status(Success{}) : Error{"--cpu=" + o.cpu + " is for --target=host"};
}

/// A flag of the cuda target: its word, the first of these where it is not given; for other targets the last one.
static Result<std::string> takeOfCuda(const char *flag, const std::string &word, llvm::ArrayRef<const char *> words,
                                      Target target) {
  if (!word.empty() && !llvm::is_contained(words, word)) {
    std::string known = words.front();
    for (const char *other : words.drop_front())
      known += (other == words.back() ? " and " : ", ") + std::string(other);
    return Error{std::string(flag) + " knows no '" + word + "'; there are " + known};
  }
  if (target == Target::Cuda)
    return word.empty() ? std::string(words.front()) : word;
  return word.empty() ? Result<std::string>(std::string(words.back()))
                      : Error{std::string(flag) + "=" + word + " is for --target=cuda"};
}

Status takeLaunches(const std::string &launches, const std::string &epilogues, PipelineOptions &o) {
  const Result<std::string> launch = takeOfCuda("--launches", launches, {"grouped", "single"}, o.target);
  if (!launch)
    return Error{launch.error()};
  const Result<std::string> epilogue = takeOfCuda("--epilogues", epilogues, {"products", "fused", "none"}, o.target);
  if (!epilogue)
    return Error{epilogue.error()};
  o.groupLaunches = *launch == "grouped";
  o.convEpilogues = *epilogue == "fused";
  o.productEpilogues = *epilogue != "none";
  return Success{};
}

/// The whole of `text` as a number from 1 to `most`.
static bool isNumber(const std::string &text, int64_t most, int64_t &value) {
  auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && stop == text.data() + text.size() && value >= 1 && value <= most;
}

/// The most batches of a rank that an ordered sum takes: a power of two, whose exponent is the number of sums.
static Status takeMostBatches(const std::string &word, TrainingSpec &spec) {
  constexpr int64_t most = int64_t{1} << 20;
  int64_t batches = 4;
  if (!word.empty() && (!isNumber(word, most, batches) || batches < 2 || (batches & (batches - 1)) != 0))
    return Error{"--reduce=ordered,batches takes a power of two from 2 to " + std::to_string(most) + ", not '" + word +
                 "'"};
  if (!word.empty() && !spec.accumulate)
    return Error{"--reduce=ordered,batches=" + word + " is for --accumulate, with which a step has several batches"};
  for (spec.batchSums = 0; int64_t{1} << spec.batchSums < batches;)
    ++spec.batchSums;
  return Success{};
}

/// What an update does by elements alone has shares. The word is WHAT,ranks=N.
static Status takeShares(const std::string &word, TrainingSpec &spec) {
  const std::string least = ",ranks=";
  const size_t comma = std::min(word.find(','), word.size());
  const std::string what = word.substr(0, comma), rest = word.substr(comma);
  int64_t ranks = 0;
  if ((what != "states" && what != "gradients" && what != "parameters") || rest.compare(0, least.size(), least) != 0 ||
      !isNumber(rest.substr(least.size()), mostRanks, ranks) || ranks < 2)
    return Error{"--shard takes states,ranks=N, gradients,ranks=N or parameters,ranks=N, N from 2 to " +
                 std::to_string(mostRanks) +
                 ", the least number of "
                 "ranks that the program is started with, not '" +
                 word + "'"};
  spec.shares = static_cast<int>(ranks);
  spec.sharesGradients = what != "states";
  spec.sharesParameters = what == "parameters";
  if (spec.optimizer == Optimizer::Lamb)
    return Error{"--shard=" + what + " is not for --optimizer=lamb, whose rates follow from norms of whole parameters"};
  if (spec.average)
    return Error{"--shard=" + what + " is not for --ema, whose averages evaluation reads whole"};
  if (spec.sharesGradients && spec.precision == "fp16")
    return Error{"--shard=" + what +
                 " is not available yet with --precision=fp16, whose gradients are checked whole; "
                 "--shard=states is"};
  return Success{};
}

/// What a program for several ranks is not.
static Status refuseRanks(const std::string &norm, const DriverOptions &o) {
  if (!norm.empty() && o.spec.precision == "fp16")
    return Error{"--batch-norm=" + norm + " is not available yet with --precision=fp16"};
  if (o.emit == Emit::Library)
    return Error{"--ranks is for programs, which mpirun starts; --emit=library makes none"};
  return Success{};
}

Status takeRanks(const std::string &ranks, const std::string &reduce, const std::string &shard, DriverOptions &o) {
  const std::string ordered = "ordered,batches=";
  const std::string norm = o.spec.normRanks > 0 ? "synchronized,ranks=" + std::to_string(o.spec.normRanks) : "";
  const bool cuda = o.pipeline.target == Target::Cuda;
  const std::string own = cuda ? "nccl" : "mpi";
  if (ranks.empty())
    for (const auto &[flag, word] : {std::pair("--reduce=", reduce),
                                     {"--shard=", shard},
                                     {"--interconnect=", o.pipeline.interconnect},
                                     {"--batch-norm=", norm}})
      if (!word.empty())
        return Error{flag + word + " is for --ranks=" + own + ", a program for several processes"};
  if (ranks.empty())
    return Success{};
  int64_t count = 0;
  const bool counts = isNumber(ranks, mostRanks, count);
  if (counts == o.pipeline.interconnect.empty())
    return Error{counts ? "--ranks=" + ranks +
                              " predicts a step of so many; it takes --interconnect=NAME|FILE, what is "
                              "between them. --ranks=" +
                              own + " makes a program"
                        : "--interconnect=" + o.pipeline.interconnect +
                              " is for --ranks=N, so many ranks whose step is "
                              "predicted"};
  if (counts)
    o.pipeline.ranks = static_cast<int>(count);
  if (!counts && ranks != "mpi" && ranks != "nccl")
    return Error{"--ranks knows no '" + ranks + "'; there are mpi, nccl, and numbers up to " +
                 std::to_string(mostRanks)};
  if (!counts && ranks != own)
    return Error{"--ranks=" + ranks + " is for --target=" + (cuda ? "host" : "cuda") +
                 "; processes of --target=" + factsOf(o.pipeline.target).name + " talk through --ranks=" + own};
  if (counts && !norm.empty() && count % o.spec.normRanks != 0)
    return Error{"--batch-norm=" + norm + ": so many ranks do not divide those of --ranks=" + ranks};
  if (Status fits = refuseRanks(norm, o); !fits)
    return fits;
  const bool limits = reduce.compare(0, ordered.size(), ordered) == 0;
  if (!reduce.empty() && reduce != "ordered" && reduce != "fast" && !limits)
    return Error{"--reduce knows no '" + reduce + "'; there are ordered, ordered,batches=N and fast"};
  o.spec.ranks = reduce == "fast" ? "fast" : "ordered";
  if (Status taken = shard.empty() ? Status(Success{}) : takeShares(shard, o.spec); !taken)
    return taken;
  return o.spec.ranks == "fast" ? Status(Success{})
                                : takeMostBatches(limits ? reduce.substr(ordered.size()) : "", o.spec);
}

Status takeCounts(const std::string &batch, const std::string &threads, DriverOptions &o) {
  if (!batch.empty() && !isNumber(batch, std::numeric_limits<int64_t>::max(), o.spec.batch.emplace()))
    return Error{"--batch takes a positive number, not '" + batch + "'"};
  const int level = o.pipeline.level; // of processors
  int64_t count = isForeign(level) ? factsOfCpu(level).threads : std::max(1u, std::thread::hardware_concurrency());
  if (!threads.empty() && !isNumber(threads, mostThreads, count))
    return Error{"--threads takes a number from 1 to " + std::to_string(mostThreads) + ", not '" + threads + "'"};
  o.pipeline.threads = static_cast<int>(count);
  return Success{};
}

Status takeDims(const std::vector<std::string> &words, DriverOptions &o) {
  for (const std::string &word : words)
    if (Status status = parseDims(word, o.spec, o.buckets); !status)
      return status;
  return Success{};
}

/// What turns say themselves, and what they do not go with.
static Status refuseTurns(const DriverOptions &o) {
  for (const auto &[given, flag] : {std::pair{!o.spec.losses.empty(), "--loss"}, {!o.spec.output.empty(), "--output"}})
    if (given)
      return Error{std::string(flag) + " and --turn say both what is trained; a turn says it by loss=OUTPUT"};
  for (const auto &[given, flag] :
       {std::pair{!o.buckets.names.empty(), "--dim with several shapes"},
        {o.spec.adapter.has_value(), "--adapter"},
        {o.maxBatch, "--max-batch"},
        {o.pipeline.stateHome != Space::Device, "--state-home"},
        {o.pipeline.parameterHome != Space::Device, "--parameter-home"},
        {o.pipeline.errorBudget > 0, "--error-budget"},
        {o.pipeline.hasParts(), "--parts"},
        {o.emit == Emit::Report, "--emit=report"},
        {o.spec.precision == "fp16", "--precision=fp16, whose loss has one scale for all steps"}})
    if (given)
      return Error{std::string("--turn is not available yet with ") + flag};
  return Success{};
}

static Status refuseBuckets(const DriverOptions &o) {
  const bool turns = !o.spec.turns.empty();
  if (o.buckets.names.empty() && !turns)
    return Success{};
  if (Status fits = turns ? refuseTurns(o) : Status(Success{}); !fits)
    return fits;
  const std::pair<bool, const char *> others[] = {{!o.spec.ranks.empty(), "--ranks"},
                                                  {!o.pipeline.profile.empty(), "--profile"},
                                                  {o.emit == Emit::Library, "--emit=library"}};
  for (const auto &[given, flag] : others)
    if (given)
      return Error{turns ? std::string("--turn is not available yet with ") + flag
                         : std::string("--dim with several shapes is not available yet with ") + flag +
                               "; give one shape: --dim " + o.buckets.nameOf(o.buckets.extents.size() - 1)};
  return Success{};
}

static Status refuseKeyCache(const DriverOptions &o) {
  if (!o.pipeline.keyCache)
    return Success{};
  const std::pair<bool, const char *> others[] = {{o.pipeline.target != Target::Host, "--target=cuda"},
                                                  {!o.spec.turns.empty(), "--turn"},
                                                  {!o.spec.ranks.empty(), "--ranks"},
                                                  {o.pipeline.hasParts(), "--parts"},
                                                  {o.emit == Emit::Library, "--emit=library"},
                                                  {o.emit == Emit::Report, "--emit=report"}};
  for (const auto &[given, flag] : others)
    if (given)
      return Error{std::string("--kv-cache is not available yet with ") + flag +
                   "; without it --generate computes the whole text for each token"};
  return Success{};
}

Status takeEmit(const std::string &word, DriverOptions &o) {
  static const std::vector<std::string> names = {"forward", "training", "linearized", "planned", "scheduled", "placed",
                                                 "source",  "project",  "binary",     "library", "report"};
  const auto found = llvm::find(names, word);
  if (found == names.end())
    return Error{"--emit knows no '" + word + "'; there are " + listed(names)};
  o.emit = static_cast<Emit>(found - names.begin());
  if (o.dataFormats && o.emit != Emit::Library)
    return Error{"--data-formats is for --emit=library; programs always read files"};
  return Success{};
}

Status refuseNotYet(const DriverOptions &o) {
  if (o.pipeline.weightsAbove > 0 && !o.spec.ranks.empty())
    return Error{"--parts=weights=SIZE is not available yet with --ranks, which add up whole gradients; leave one of "
                 "them out"};
  if (o.pipeline.choosesHomes() && (!o.buckets.names.empty() || o.emit == Emit::Report))
    return Error{std::string("--state-home=auto and --parameter-home=auto are not available yet with ") +
                 (o.emit == Emit::Report ? "--emit=report" : "several shapes") + "; name a home"};
  const Status buckets = refuseBuckets(o);
  return buckets ? refuseKeyCache(o) : buckets;
}

} // namespace sluice
