// SPDX-License-Identifier: Apache-2.0
// Experiment 14: the buffers that FreeLunch names (S. Patel et al.).
#include "tools/bench/reproduce/Outcome.h"
#include "tools/bench/reproduce/Pages.h"

namespace sluice::bench {

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
