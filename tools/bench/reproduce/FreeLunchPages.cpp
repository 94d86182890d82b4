// SPDX-License-Identifier: Apache-2.0
// Experiments 12 to 14: FreeLunch against swapping and recomputation (S. Patel et al., Figure 2, Tables I to III).
#include "tools/bench/reproduce/Outcome.h"
#include "tools/bench/reproduce/Pages.h"

#include <iterator>

namespace sluice::bench {

using namespace planner;

namespace {

/// `ratio`: raw bytes over those of zfp's stream; where gradients of ReLU ask for signs, a mask comes on top.
Problem packed(const std::string &name, const Profile &profile, int batch, double ratio) {
  NetworkOptions options;
  options.zfpBits = 32 / ratio;
  return network(name, profile, batch, name == "resnet32" ? 32 : name == "alexnet" ? 227 : 224, options);
}

/// As published: everything is packed, or everything that a convolution wrote.
Outcome freeLunch(const Problem &p, bool hybrid = false) {
  return outcome(p, "freelunch", {{"masks", "0"}, {"hybrid", hybrid ? "1" : "0"}});
}

std::string gigabytes(Bytes bytes) { return digits(bytes / 1e9, 2); }

} // namespace

void freeLunchBatches(std::ostream &page) {
  page
      << "# Experiment 12: ResNet-152 over the batch (FreeLunch, Figure 2)\n\n"
         "Titan X profile, ratio 5. images/s and GB of the arena. Paper, at batch 44: FreeLunch up to 70 % faster than "
         "synchronous swapping with up to\n35 % less memory, up to 32 % faster than recomputation, whose memory is "
         "larger for "
         "ResNet-152.\n\n| batch | liveness only | synchronous swapping | recomputation (chen) | FreeLunch | over "
         "swapping | over "
         "recomputation |\n|---|---|---|---|---|---|---|\n";
  const Profile profile = profileOf("titan-x");
  for (int batch : {8, 16, 24, 32, 44}) {
    const Problem p = packed("resnet152", profile, batch, 5);
    const Outcome keep = outcome(p, "keep"), swap = outcome(p, "vdnnpp", {{"mode", "1"}, {"synchronous", "1"}}),
                  again = leastOf(p, "chen"), packing = freeLunch(p);
    page << "| " << batch;
    for (const Outcome &o : {keep, swap, again, packing})
      page << " | " << digits(batch / o.seconds, 2) << ", " << gigabytes(o.arena) << " GB";
    page << " | " << percent(swap.seconds / packing.seconds - 1) << " | "
         << percent(again.seconds / packing.seconds - 1) << " |\n";
  }
  page << "\nSwapping is vdnnpp's `all` mode with synchronous=1, recomputation is chen at its smallest memory. "
          "FreeLunch's six "
          "raw tensors and packed forms are\nplanned lives here, see passes/strategies/FreeLunch.cpp. The codec's rate "
          "is the "
          "profile's estimate of 20 GB/s (page 13 has others).\nWhere ours differs: compute by the roofline is about "
          "five times as fast as "
          "the "
          "paper's (Table I: 11 images/s), so swapping loses more, and the codec\nstream, not compute, is what "
          "FreeLunch waits "
          "for, so it loses to recomputation. Our swapping keeps nothing but the layers at work and so needs less "
          "memory\nthan "
          "packed forms; the paper's system does not.\n";
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
                        {"resnet152", 24, 10.68, 11.1, 11.52}};

Outcome swapping(const Problem &p) { return outcome(p, "vdnnpp", {{"mode", "1"}}); }
Outcome hybridOf(const Row &row, const Profile &profile) {
  return freeLunch(packed(row.name, profile, row.batch, 8), true);
}

/// How much of the answer is the codec's rate, which nobody has published for this GPU.
void ratesOfTheCodec(std::ostream &page, Profile profile) {
  const double rates[] = {5e9, 10e9, 20e9, 40e9, 80e9, 160e9};
  page << "\n## The codec's rate\n\nNo rate of zfp on this GPU is published that we know of; the 20 GB/s above are the "
          "profile's "
          "estimate. Speed over asynchronous swapping,\nFreeLunch and hybrid, with a codec of so many GB/s of raw "
          "bytes in "
          "either direction; the codec takes nothing from compute here, which on a GPU\nit does:\n\n| network |";
  for (double rate : rates)
    page << ' ' << digits(rate * 1e-9, 0) << " |";
  page << "\n|---|";
  for (size_t i = 0; i < std::size(rates); ++i)
    page << "---|";
  page << '\n';
  for (const Row &row : rows) {
    page << "| " << row.name << " |";
    for (double rate : rates) {
      profile.codecs["zfp"] = rate;
      const Problem p = packed(row.name, profile, row.batch, 5);
      const Seconds swap = swapping(p).seconds;
      page << ' ' << digits(swap / freeLunch(p).seconds, 2) << ", " << digits(swap / hybridOf(row, profile).seconds, 2)
           << " |";
    }
    page << '\n';
  }
}

} // namespace

void freeLunchTables(std::ostream &page) {
  page << "# Experiment 13: asynchronous swapping, FreeLunch and the hybrid (FreeLunch, Tables I and III)\n\n"
          "Titan X profile; images/s. FreeLunch packs all activations at ratio 5, the hybrid those of convolutions at "
          "ratio 8 and swaps the rest, as in the\npaper; where a ReLU's gradient asks for signs, ours keeps a mask of "
          "1.125 bits a value in front of the packed form, the paper's system does without. Ratios\nto asynchronous "
          "swapping "
          "(vdnnpp, mode all) are what can be compared. Table II, FreeLunch with an allocation and a copy for every "
          "tensor, is a matter\nof allocators and cannot be simulated; ResNet-256 has no published definition.\n\n"
          "| network (batch) | paper: swap -> FreeLunch -> hybrid | ratios | ours: swap -> FreeLunch -> hybrid | "
          "ratios | GB: swap, FreeLunch, hybrid |\n|---|---|---|---|---|---|\n";
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
         << " |\n";
  }
  page << "\nThe paper's ratios are those of whole systems (PyTorch with malloc and copies); ours hold everything but "
          "the schedule "
          "equal. With compute as\nfast as the roofline says, swapping is bound by the link on the residual networks, "
          "which it was "
          "not in the paper. The hybrid\nswaps what BatchNorm and joins write, so there the link bounds it, too.\n";
  ratesOfTheCodec(page, profile);
}

void freeLunchSizes(std::ostream &page) {
  page
      << "# Experiment 14: sizes of FreeLunch's buffers\n\nMiB, paper / ours. Rule behind the figures: a fifth of all "
         "activations, plus 6 of 32 bits for the largest as the codec's worst case;\nthree (linear) or six (residual) "
         "raw tensors "
         "of the largest size. Activations are the outputs of all layers, LRN, dropout and in-place ReLUs included.\n\n"
         "| network (batch) | activations | largest | workspace | raw tensors | saved |\n|---|---|---|---|---|---|\n";
  const struct {
    const char *name;
    int batch, image, raw;
    const char *activations, *largest, *workspace, *buffers, *saved;
  } rows[] = {{"alexnet_lrn", 128, 227, 3, "940.5", "141.8", "214.5", "425.3", "31 %"},
              {"resnet152_v1", 24, 224, 6, "4600", "76.1", "933", "456.8", "-"}};
  for (const auto &row : rows) {
    const LayerBytes bytes = layerBytes(row.name, row.batch, row.image);
    const double all = bytes.total / 1048576.0, largest = bytes.largest / 1048576.0;
    const double workspace = all / 5 + largest * 6 / 32, raw = row.raw * largest;
    page << "| " << row.name << " (" << row.batch << ") | " << row.activations << " / " << digits(all, 1) << " | "
         << row.largest << " / " << digits(largest, 1) << " | " << row.workspace << " / " << digits(workspace, 1)
         << " | " << row.buffers << " / " << digits(raw, 1) << " | " << row.saved << " / "
         << percent(1 - (workspace + raw) / all) << " |\n";
  }
  page << "\nResNet-152's largest tensor in the paper is the stem's output padded by one pixel on every side, "
          "24x64x114x114; ours is "
          "not padded. Which of its\nlayers make the paper's 4.6 GB is not published; all of them are more. From 4600 "
          "MiB and "
          "76.1 the rule gives "
       << digits(4600.0 / 5 + 76.1 * 6 / 32, 1) << " and " << digits(6 * 76.1, 1) << ".\n";
}

} // namespace sluice::bench
