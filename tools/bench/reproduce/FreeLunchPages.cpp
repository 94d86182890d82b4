// SPDX-License-Identifier: Apache-2.0
// Experiments 12 and 13: FreeLunch against swapping and recomputation (S. Patel et al., Figure 2, Tables I to III).
#include "tools/bench/reproduce/Outcome.h"
#include "tools/bench/reproduce/Pages.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

namespace sluice::bench {

using namespace planner;

namespace {

/// `ratio`: raw bytes over those of zfp's stream; where gradients of ReLU ask for signs, a mask comes on top.
Problem packed(const std::string &name, const Profile &profile, int batch, double ratio) {
  NetworkOptions options;
  options.zfpBits = 32 / ratio;
  return network(name, profile, batch, name == "resnet32" ? 32 : name == "alexnet" ? 227 : 224, options);
}

using Knobs = std::map<std::string, std::string>;

/// As published: everything is packed, or everything that a convolution wrote.
Outcome freeLunch(const Problem &p, bool hybrid = false) {
  return outcome(p, "freelunch", {{"masks", "0"}, {"hybrid", hybrid ? "1" : "0"}});
}

/// Kernels that take so many times as long.
Problem slower(Problem p, double factor) {
  for (Op &op : p.ops) {
    op.seconds *= factor;
    if (op.rerun)
      op.rerun->seconds *= factor;
    for (Alternative &a : op.alternatives)
      a.seconds *= factor;
  }
  return p;
}

std::string gigabytes(Bytes bytes) { return digits(bytes / 1e9, 2); }

/// GB/s of the fastest link, one way at a time, with which `ratio` of the profile is `wanted` at least, to 2 %.
template <typename Ratio> std::string linkFor(Profile profile, double wanted, Ratio ratio) {
  const auto enough = [&](double rate) {
    profile.link.d2h = profile.link.h2d = rate;
    return ratio(profile) >= wanted;
  };
  double low = 0.1e9, high = 100e9;
  if (!enough(low))
    return "none";
  while (high / low > 1.02) {
    const double middle = std::sqrt(low * high);
    (enough(middle) ? low : high) = middle;
  }
  return digits(low * 1e-9, 1);
}

/// ResNet-152 at a batch under the paper's four policies.
struct Policies {
  int batch;
  Outcome keep, swap, again, both, packing;
  double overSwap() const { return swap.seconds / packing.seconds - 1; }
  double overAgain() const { return again.seconds / packing.seconds - 1; }
  double overBoth() const { return both.seconds / packing.seconds - 1; }
};

Policies policies(const Problem &p, int batch) {
  const Outcome packing = freeLunch(p);
  return {batch,
          outcome(p, "keep"),
          outcome(p, "vdnnpp", {{"mode", "1"}, {"synchronous", "1"}}),
          leastOf(p, "chen"),
          within(p, packing.arena, "superneurons"),
          packing};
}

void policyRow(std::ostream &page, const std::string &head, const Policies &found) {
  page << "| " << head;
  for (const Outcome &o : {found.keep, found.swap, found.again, found.both, found.packing})
    page << " | " << digits(found.batch / o.seconds, 2) << ", " << gigabytes(o.arena) << " GB";
  page << " | " << percent(found.overSwap()) << " | " << percent(found.overAgain()) << " | "
       << percent(found.overBoth()) << " |\n";
}

constexpr char policyColumns[] =
    "liveness only | synchronous swapping | recomputation (chen) | superneurons | FreeLunch | over swapping "
    "| over recomputation | over superneurons |\n|---|---|---|---|---|---|---|---|---|\n";

/// The least and the most of some figures, as percentages.
std::string range(std::pair<double, double> figures) {
  return percent(figures.first) + " to " + percent(figures.second);
}

/// How many times as fast as synchronous swapping FreeLunch is at batch 44, with kernels that take so many times as
/// long.
double overSwapping(const Profile &profile, double factor) {
  const Problem p = slower(packed("resnet152", profile, 44, 5), factor);
  return outcome(p, "vdnnpp", {{"mode", "1"}, {"synchronous", "1"}}).seconds / freeLunch(p).seconds;
}

/// Compute as slow as the paper's, and what the codec takes from it.
void calibrated(std::ostream &page, const Profile &profile) {
  constexpr double published = 11.1; // images/s of FreeLunch at batch 24, Table I
  const Seconds roofline = outcome(packed("resnet152", profile, 24, 5), "keep").seconds;
  const double factor = 24 / published / roofline;
  page << "\n## Kernels as slow as the paper's\n\nThe paper's FreeLunch trains 11.1 images/s at batch 24, so its "
          "kernels take "
       << digits(24 / published, 2) << " s at most, " << digits(factor, 1)
       << " times the roofline. With all of ours that much slower, so that the codec could\nhide, and a codec that "
          "takes nothing, half or all of its time from compute:\n\n| batch, contention | "
       << policyColumns;
  std::pair<double, double> overSwap{1e9, -1e9}, overAgain = overSwap, overBoth = overSwap;
  auto widen = [](std::pair<double, double> &figures, double figure) {
    figures = {std::min(figures.first, figure), std::max(figures.second, figure)};
  };
  for (int batch : {24, 44})
    for (double contention : {0.0, 0.5, 1.0}) {
      Problem p = slower(packed("resnet152", profile, batch, 5), factor);
      p.codecContention = contention;
      const Policies found = policies(p, batch);
      policyRow(page, std::to_string(batch) + ", " + digits(contention, 1), found);
      widen(overSwap, found.overSwap());
      widen(overAgain, found.overAgain());
      widen(overBoth, found.overBoth());
    }
  Profile beside = profile;
  beside.codecContention = 0;
  page << "\nOver recomputation FreeLunch gains " << range(overAgain)
       << " (paper: up to 32 %; a forward half costs a third of a step). At the roofline's speed, above, a forward "
          "half\ntakes less time than the codec does, so that there recomputation is ahead. Over swapping it gains "
       << range(overSwap) << " (paper: up to 70 %), over superneurons " << range(overBoth)
       << ", where a negative figure is a loss.\n70 % at batch 44 would take a link of "
       << linkFor(profile, 1.7, [&](const Profile &p) { return overSwapping(p, 1); })
       << " GB/s at most at the roofline's speed; with kernels as slow as the paper's "
       << linkFor(profile, 1.7, [&](const Profile &p) { return overSwapping(p, factor); }) << ", or "
       << linkFor(beside, 1.7, [&](const Profile &p) { return overSwapping(p, factor); })
       << "\nwhere the codec's kernels run beside others for nothing. Page 5's bus has "
       << digits(profile.link.d2h * 1e-9, 2) << ": what the paper's swapping loses is not its bytes at that rate.\n";
}

} // namespace

void freeLunchBatches(std::ostream &page) {
  page
      << "# Experiment 12: ResNet-152 over the batch (FreeLunch, Figure 2)\n\n"
         "Titan X profile, ratio 5. images/s and GB of the arena. Paper, at batch 44: FreeLunch up to 70 % faster than "
         "synchronous swapping with up to\n35 % less memory, up to 32 % faster than recomputation, whose memory is "
         "larger for ResNet-152.\n\n| batch | "
      << policyColumns;
  const Profile profile = profileOf("titan-x");
  for (int batch : {8, 16, 24, 32, 44})
    policyRow(page, std::to_string(batch), policies(packed("resnet152", profile, batch, 5), batch));
  page << "\nSwapping is vdnnpp's `all` mode with synchronous=1, recomputation is chen at its smallest memory. "
          "FreeLunch's six raw tensors and packed forms are\nplanned lives here, see passes/strategies/FreeLunch.cpp. "
          "The codec's rate is the profile's estimate of 20 GB/s (page 13 has others), and its kernels\noccupy the "
          "device: compute waits for as long as they run. Our swapping keeps nothing but the layers at work and so "
          "needs less memory than packed\nforms; the paper's system does not. The paper's rivals are two policies of "
          "SuperNeurons, each alone: one swaps, synchronously, what does not fit, which\non 12 GB would be nothing "
          "here, the "
          "other runs pools, activations and BatchNorm again. superneurons has both together, with copies beside "
          "compute,\nwithin the bytes of FreeLunch's arena. In the paper images/s\nfall "
          "with the batch and recomputation needs more memory than FreeLunch; here they rise, and it needs less.\n";
  calibrated(page, profile);
}

namespace {

/// images/s of the paper.
struct Row {
  const char *name;
  int batch;
  double swap, packing, hybrid;
};
constexpr Row rows[] = {{"resnet32", 128, 314, 327, 318},
                        {"alexnet", 128, 290, 383, 366},
                        {"vgg16", 24, 19.9, 26.3, 23.3},
                        {"resnet152", 24, 10.68, 11.1, 11.52},
                        {"resnet256", 24, 6.12, 6.9, 6.9}};

Outcome swapping(const Problem &p) { return outcome(p, "vdnnpp", {{"mode", "1"}}); }
Outcome hybridOf(const Row &row, const Profile &profile) {
  return freeLunch(packed(row.name, profile, row.batch, 8), true);
}

/// How many times as long kernels take where FreeLunch trains as fast as the paper's.
double factorOf(const Row &row, const Problem &p) {
  double low = 0.1, high = 100;
  while (high / low > 1.0001) {
    const double middle = std::sqrt(low * high);
    (row.batch / freeLunch(slower(p, middle)).seconds > row.packing ? low : high) = middle;
  }
  return high;
}

/// Swapping and hybrid where FreeLunch is as fast as the paper's.
void calibratedTable(std::ostream &page, Profile profile) {
  page << "\n## Kernels as slow as the paper's\n\nAll kernels, but not codec and link, take so many times as long "
          "that FreeLunch trains as fast as in the paper; swapping and the hybrid follow.\nThe codec's kernels occupy "
          "the device (1) or run beside others for nothing (0).\n\n| network, contention | factor | ratios, paper | "
          "ours: swap -> FreeLunch -> hybrid | ratios, ours |\n|---|---|---|---|---|\n";
  for (const Row &row : rows)
    for (double contention : {1.0, 0.0}) {
      profile.codecContention = contention;
      const Problem p = packed(row.name, profile, row.batch, 5);
      const double factor = factorOf(row, p);
      const Seconds swap = swapping(slower(p, factor)).seconds, packing = freeLunch(slower(p, factor)).seconds,
                    hybrid = freeLunch(slower(packed(row.name, profile, row.batch, 8), factor), true).seconds;
      page << "| " << row.name << ", " << digits(contention, 0) << " | " << digits(factor, 1) << " | "
           << digits(row.packing / row.swap, 2) << ", " << digits(row.hybrid / row.swap, 2) << " | "
           << digits(row.batch / swap, 1) << " -> " << digits(row.batch / packing, 1) << " -> "
           << digits(row.batch / hybrid, 1) << " | " << digits(swap / packing, 2) << ", " << digits(swap / hybrid, 2)
           << " |\n";
    }
  page << "\nThere copies hide as well as packing does: the two are about level where the codec's kernels cost "
          "nothing, as "
          "on the paper's residual networks,\nand swapping is ahead where they occupy the device. That the paper's "
          "AlexNet "
          "and VGG-16 gain a third is, with kernels of this speed, not the\nwork of link and codec as they are here.\n";
}

/// How much of the answer is the codec's rate, which nobody has published for this GPU, and what it takes from compute.
void ratesOfTheCodec(std::ostream &page, Profile profile) {
  const double rates[] = {5e9, 10e9, 20e9, 40e9, 80e9, 160e9};
  page
      << "\n## The codec's rate\n\nNo rate of zfp on this GPU is published that we know of; the 20 GB/s above are the "
         "profile's estimate. Speed over asynchronous swapping,\nFreeLunch and hybrid, with a codec of so many GB/s of "
         "raw bytes in either direction, whose kernels occupy the device (1, as above) or run beside\nothers for "
         "nothing (0):\n\n| network, contention |";
  for (double rate : rates)
    page << ' ' << digits(rate * 1e-9, 0) << " |";
  page << "\n|---|";
  for (size_t i = 0; i < std::size(rates); ++i)
    page << "---|";
  page << '\n';
  for (const Row &row : rows)
    for (double contention : {1.0, 0.0}) {
      page << "| " << row.name << ", " << digits(contention, 0) << " |";
      for (double rate : rates) {
        profile.codecs[Codec::Zfp] = rate;
        profile.codecContention = contention;
        const Problem p = packed(row.name, profile, row.batch, 5);
        const Seconds swap = swapping(p).seconds;
        page << ' ' << digits(swap / freeLunch(p).seconds, 2) << ", "
             << digits(swap / hybridOf(row, profile).seconds, 2) << " |";
      }
      page << '\n';
    }
}

/// A plan's seconds over keep's, less one.
double overKeep(const Row &row, Profile profile, const Knobs &knobs, double rate, double contention) {
  profile.codecs[Codec::Zfp] = rate;
  profile.codecContention = contention;
  const Problem p = packed(row.name, profile, row.batch, 4);
  return outcome(p, "freelunch", knobs).seconds / outcome(p, "keep").seconds - 1;
}

/// GB/s of the slowest codec with which a plan takes at most a tenth more than keep, to 2 %.
std::string rateForATenth(const Row &row, const Profile &profile, const Knobs &knobs, double contention) {
  double low = 1e9, high = 1e12;
  if (overKeep(row, profile, knobs, high, contention) > 0.1)
    return "none";
  while (high / low > 1.02) {
    const double middle = std::sqrt(low * high);
    (overKeep(row, profile, knobs, middle, contention) > 0.1 ? low : high) = middle;
  }
  return digits(high * 1e-9, 1);
}

/// What plans save and cost, how much of the cost is that the codec occupies the device, and what codec would do.
void aTenthMore(std::ostream &page, const Profile &profile) {
  page << "\n## A tenth more time than keep\n\n8 bits a value, codec of 20 GB/s. `contention`: how much of the "
          "time over keep is that the codec's kernels occupy the device. The last\ncolumns: GB/s of the slowest codec "
          "with which the plan takes at most 10 % more than keep, where its kernels occupy the device and where\nthey "
          "run beside others for nothing.\n\n| network (batch) | plan | below keep | over keep | contention | GB/s, "
          "occupying | GB/s, beside |\n|---|---|---|---|---|---|---|\n";
  const std::pair<const char *, Knobs> plans[] = {{"all packed, as published", {{"masks", "0"}}},
                                                  {"masks where they are enough", {}},
                                                  {"masks, and what the peak has room for stays", {{"stay", "1"}}},
                                                  {"the same, hybrid", {{"hybrid", "1"}, {"stay", "1"}}}};
  for (const Row &row : rows) {
    const Problem p = packed(row.name, profile, row.batch, 4);
    const Bytes keep = outcome(p, "keep").arena;
    for (const auto &[name, knobs] : plans) {
      const double saved = 1 - static_cast<double>(outcome(p, "freelunch", knobs).arena) / keep;
      const double over = overKeep(row, profile, knobs, 20e9, 1), alone = overKeep(row, profile, knobs, 20e9, 0);
      page << "| " << row.name << " (" << row.batch << ") | " << name << " | " << percent(saved) << " | "
           << percent(over) << " | " << percent(over - alone) << " | " << rateForATenth(row, profile, knobs, 1) << " | "
           << rateForATenth(row, profile, knobs, 0) << " |\n";
    }
  }
  page << "\nWhere the codec's kernels occupy the device, compute and codec together are what a step takes at least, "
          "whatever the order of packing and unpacking:\nonly less to pack makes it shorter. Where they run beside "
          "others, compute waits because a raw buffer is not free yet or a tensor not back yet.\nAt `none` it is not "
          "zfp that takes the tenth: the pass that writes and reads masks on ResNet-32, the link of what the hybrid "
          "swaps.\n";
}

} // namespace

void freeLunchTables(std::ostream &page) {
  page << "# Experiment 13: asynchronous swapping, FreeLunch and the hybrid (FreeLunch, Tables I and III)\n\n"
          "Titan X profile; images/s. FreeLunch packs all activations at ratio 5, the hybrid those of convolutions at "
          "ratio 8 and swaps the rest, as in the\npaper; where a ReLU's gradient asks for signs, ours keeps a mask of "
          "1.125 bits a value in front of the packed form, the paper's system does without. Ratios\nto asynchronous "
          "swapping "
          "(vdnnpp, mode all) are what can be compared. Table II, FreeLunch with an allocation and a copy for every "
          "tensor, is a matter\nof allocators and cannot be simulated; of ResNet-256 no blocks are published, ours are "
          "page 17's.\n\n"
          "| network (batch) | paper: swap -> FreeLunch -> hybrid | ratios | ours: swap -> FreeLunch -> hybrid | "
          "ratios | GB: swap, FreeLunch, hybrid | link |\n|---|---|---|---|---|---|---|\n";
  int ahead = 0, hybridAhead = 0;
  const Profile profile = profileOf("titan-x");
  for (const Row &row : rows) {
    const Problem p = packed(row.name, profile, row.batch, 5);
    const Outcome swap = swapping(p), packing = freeLunch(p), hybrid = hybridOf(row, profile);
    auto rate = [&](const Outcome &o) { return digits(row.batch / o.seconds, 1); };
    page << "| " << row.name << " (" << row.batch << ") | " << digits(row.swap, 1) << " -> " << digits(row.packing, 1)
         << " -> " << digits(row.hybrid, 1) << " | " << digits(row.packing / row.swap, 2) << ", "
         << digits(row.hybrid / row.swap, 2) << " | " << rate(swap) << " -> " << rate(packing) << " -> " << rate(hybrid)
         << " | " << digits(swap.seconds / packing.seconds, 2) << ", " << digits(swap.seconds / hybrid.seconds, 2)
         << " | " << gigabytes(swap.arena) << ", " << gigabytes(packing.arena) << ", " << gigabytes(hybrid.arena)
         << " | "
         << linkFor(profile, row.packing / row.swap,
                    [&](const Profile &other) {
                      const Problem q = packed(row.name, other, row.batch, 5);
                      return swapping(q).seconds / freeLunch(q).seconds;
                    })
         << " |\n";
    ahead += packing.seconds < swap.seconds;
    hybridAhead += hybrid.seconds < swap.seconds;
  }
  page << "\n`link`: GB/s, one way at a time, of the fastest link with which FreeLunch would have the paper's ratio; "
          "the "
          "profile has "
       << digits(profile.link.d2h * 1e-9, 2)
       << ", from\npage 5, and the codec's rates that would do are further below. FreeLunch is ahead of swapping on "
       << ahead << " of five networks, in the paper on all; the hybrid on\n"
       << hybridAhead
       << ". The paper's ratios are those of whole systems (PyTorch with malloc and copies); ours hold everything but "
          "the schedule equal.\n";
  calibratedTable(page, profile);
  ratesOfTheCodec(page, profile);
  aTenthMore(page, profile);
}

} // namespace sluice::bench
