// SPDX-License-Identifier: Apache-2.0
// Experiments 6 and 7: aggregates and pools of vDNN's modes, beside the paper's.
#include "tools/bench/reproduce/Outcome.h"
#include "tools/bench/reproduce/Pages.h"
#include "tools/bench/reproduce/VdnnPool.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace sluice::bench {

using namespace planner;

namespace {

constexpr double mebi = 1048576.0;

/// A mode as the tables name it. dyn offloads nothing there, with the fastest kernels.
struct Row {
  const char *network;
  int batch;
  const char *label, *mode;
  bool fastest;
};

/// "(p)" of a row: which layer's backward step has the workspace that the peak shows, and how much it is.
void addWorkspace(const Row &row, VdnnIteration &iteration) {
  const bool vgg = iteration.network == "vgg16";
  iteration.heavyLayer = convolution(iteration.network, vgg && row.batch == 16 ? 4 : 2);
  if (vgg) {
    iteration.workspace = winogradWorkspace(iteration.network, row.batch, iteration.heavyLayer);
    return;
  }
  // From conv(p)'s aggregate in the paper: what is missing beside everything else that is live there.
  VdnnIteration probe = iteration;
  probe.mode = "conv";
  probe.derivativeFirst = probe.highEnd = probe.inputStays = false;
  probe.workspace = Bytes(1) << 50;
  const Bytes others = poolLoad(vdnnRequests(probe)) - probe.workspace;
  iteration.workspace = static_cast<Bytes>((row.batch == 128 ? 1188 : 1934) * mebi) - others;
}

VdnnIteration iterationOf(const Row &row, bool derivativeFirst, bool highEnd, bool inputStays) {
  VdnnIteration iteration{row.network, row.batch, row.mode, derivativeFirst, inputStays, highEnd};
  if (row.fastest)
    addWorkspace(row, iteration);
  return iteration;
}

/// Counts entries by how far they are off.
struct Tally {
  int entries = 0, close = 0, near = 0;
  std::string far;

  std::string cell(double paper, double ours, const std::string &what) {
    const double off = std::abs(ours / paper - 1);
    ++entries;
    close += off <= 0.01;
    near += off <= 0.05;
    if (off > 0.05)
      far += (far.empty() ? "" : "; ") + what + " (" + percent(ours / paper - 1) + ")";
    return digits(paper, 0) + " / " + digits(ours, 0);
  }
  std::string line() const {
    return std::to_string(close) + " of " + std::to_string(entries) + " entries within 1 %, " + std::to_string(near) +
           " within 5 %" + (far.empty() ? "" : "; further off: " + far) + ".\n";
  }
};

std::string nameOf(const Row &row) {
  return std::string(row.network) + " (" + std::to_string(row.batch) + ") | " + row.label;
}

Bytes loadOf(const Row &row) { return poolLoad(vdnnRequests(iterationOf(row, false, false, false))); }

void tableTwo(std::ostream &page) {
  const struct {
    Row row;
    double expected, actual;
  } rows[] = {
      {{"alexnet", 128, "conv(m)", "conv", false}, 710, 1121}, {{"alexnet", 128, "all(m)", "all", false}, 667, 987},
      {{"alexnet", 128, "dyn", "none", true}, 1188, 1803},     {{"alexnet", 128, "conv(p)", "conv", true}, 1188, 1844},
      {{"alexnet", 128, "all(p)", "all", true}, 1113, 1769},   {{"vgg16", 16, "conv(m)", "conv", false}, 1323, 1893},
      {{"vgg16", 16, "all(m)", "all", false}, 1323, 1697},     {{"vgg16", 16, "dyn", "none", true}, 1853, 2423},
      {{"vgg16", 16, "conv(p)", "conv", true}, 1610, 2231},    {{"vgg16", 16, "all(p)", "all", true}, 1414, 2035}};
  auto grown = [](const Row &row) { return grownPools(vdnnRequests(iterationOf(row, false, false, false))) / mebi; };
  const double outside = rows[0].actual - grown(rows[0].row);
  page << "## Table II\n\n`expected`: most bytes allocated at once. `actual`: a pool of that size to begin with, and "
          "another one, never merged, for every request that finds\nno room. What the paper measured is more than our "
          "pools by "
       << digits(outside, 0)
       << " MiB in the first row, which is no pool's (the GPU's context and libraries); the "
          "other rows\nhave that added, too, so that `pools, ours` is what is not fitted.\n\n"
          "| network | mode | expected | pools, ours | actual |\n|---|---|---|---|---|\n";
  Tally tally;
  for (const auto &[row, expected, actual] : rows) {
    const double pools = grown(row);
    page << "| " << nameOf(row) << " | "
         << tally.cell(expected, loadOf(row) / mebi, std::string(row.label) + " expected") << " | " << digits(pools, 0)
         << " | " << tally.cell(actual, pools + outside, std::string(row.label) + " actual") << " |\n";
  }
  page << "\n" << tally.line() << "\n";
}

const char *const variants[] = {"PF BF", "DF BF", "PF HE", "DF HE"};

/// The variants with the smallest pool.
std::string winners(const std::array<double, 4> &pools) {
  std::string names;
  for (int v = 0; v < 4; ++v)
    if (pools[v] <= *std::min_element(pools.begin(), pools.end()) + 0.5)
      names += (names.empty() ? "" : ", ") + std::string(variants[v]);
  return names;
}

struct PoolRow {
  Row row;
  double aggregate;
  std::array<double, 4> pools;
};

void poolRow(std::ostream &page, const PoolRow &line, Tally &tally, int &agree) {
  std::array<double, 4> ours;
  page << "| " << nameOf(line.row) << " | "
       << tally.cell(line.aggregate, loadOf(line.row) / mebi, nameOf(line.row) + " aggregate");
  for (int v = 0; v < 4; ++v) {
    const std::optional<Bytes> pool = searchPool(vdnnRequests(iterationOf(line.row, v % 2 == 1, v >= 2, true)),
                                                 std::numeric_limits<Bytes>::max() / 4);
    if (!pool)
      throw std::runtime_error("no pool found");
    ours[v] = *pool / mebi;
    page << " | " << tally.cell(line.pools[v], ours[v], nameOf(line.row) + " " + variants[v]);
  }
  agree += winners(line.pools) == winners(ours);
  page << " | " << winners(line.pools) << " / " << winners(ours) << " |\n";
}

void tableFive(std::ostream &page) {
  const PoolRow rows[] = {{{"alexnet", 256, "dyn", "none", true}, 1934, {2011, 2011, 1974, 1974}},
                          {{"alexnet", 256, "conv(p)", "conv", true}, 1934, {2101, 2185, 2177, 2114}},
                          {{"alexnet", 256, "conv(m)", "conv", false}, 1184, {1452, 1476, 1427, 1465}},
                          {{"alexnet", 256, "all(p)", "all", true}, 1783, {2126, 2050, 2037, 2020}},
                          {{"alexnet", 256, "all(m)", "all", false}, 1100, {1375, 1361, 1570, 1362}},
                          {{"alexnet", 256, "aconv(p)", "aconv", true}, 1934, {2162, 2162, 2121, 2183}},
                          {{"alexnet", 256, "aconv(m)", "aconv", false}, 1184, {1374, 1379, 1472, 1534}},
                          {{"vgg16", 64, "dyn", "none", true}, 7243, {7243, 7243, 7439, 7439}},
                          {{"vgg16", 64, "conv(p)", "conv", true}, 7243, {7831, 7439, 8223, 7372}},
                          {{"vgg16", 64, "conv(m)", "conv", false}, 3715, {4302, 4107, 4106, 3751}},
                          {{"vgg16", 64, "all(p)", "all", true}, 7243, {7341, 8105, 7341, 7519}},
                          {{"vgg16", 64, "all(m)", "all", false}, 3715, {3812, 4795, 3812, 4795}},
                          {{"vgg16", 64, "aconv(p)", "aconv", true}, 7243, {8027, 7829, 7635, 7831}},
                          {{"vgg16", 64, "aconv(m)", "aconv", false}, 4010, {4155, 4073, 4302, 4106}}};
  page
      << "## Table V\n\nPools by the paper's search (`sluice-plan --pool` does the same for any buffers). PF: prefetch "
         "first, DF: derivative first; BF: best fit, HE: high\nend. `least`: the variants with the smallest pool.\n\n"
         "| network | mode | aggregate | PF BF | DF BF | PF HE | DF HE | least |\n|---|---|---|---|---|---|---|---|\n";
  Tally tally;
  int agree = 0;
  for (const PoolRow &row : rows)
    poolRow(page, row, tally, agree);
  page << "\n" << tally.line() << "The same variants are best in " << agree << " of " << std::size(rows) << " rows.\n";
}

/// Most bytes at once in each half. A forward half has no workspace here, so the modes of least workspace alone.
void figureFive(std::ostream &page) {
  page << "\n## Figure 5, AlexNet (256)\n\nMost bytes allocated at once in either half of an iteration. The figure's "
          "bars carry no numbers and do not say which mode they are of; the text\nsays that \"the peak GPU memory "
          "consumed in forward propagation in vDNN is much less than the peak GPU memory consumed in "
          "back-propagation\". Workspaces are\nthose of backward steps here, so the modes with the fastest kernels are "
          "left out. What pool a forward half needs is not on this page; the\ntext says that \"forward propagation "
          "never required any more memory than aggregate peak memory\".\n\n| mode | forward | backward | forward of "
          "backward |\n|---|---|---|---|\n";
  for (const Row &row : {Row{"alexnet", 256, "all(m)", "all", false},
                         {"alexnet", 256, "conv(m)", "conv", false},
                         {"alexnet", 256, "aconv(m)", "aconv", false}}) {
    VdnnIteration half = iterationOf(row, false, false, false);
    half.forwardOnly = true;
    const Bytes forward = poolLoad(vdnnRequests(half)), both = loadOf(row);
    if (both <= forward)
      throw std::runtime_error("the peak is not in the backward half");
    page << "| " << row.label << " | " << digits(forward / mebi, 0) << " | " << digits(both / mebi, 0) << " | "
         << percent(double(forward) / both) << " |\n";
  }
}

} // namespace

void vdnnPools(std::ostream &page) {
  page
      << "# Experiments 6 and 7: memory of vDNN's modes (Shriram et al., IPDPS 2019, Tables II and V, Figure 5)\n\n"
         "MiB, paper / ours. fp32; weights stay, gradients of weights live for their layer. The order of calls within "
         "a "
         "layer is not published; with this one\nboth tables follow: prefetched input, gradient of the input, gradient "
         "of the weights, workspace (derivative first: the prefetched input before\nthe workspace); then workspace and "
         "weights' gradient are freed, the layer's output, its gradient. In Table II the batch leaves the pool with\n"
         "its copy; in Table V, which comes of the paper's simulation, its bytes stay and its prefetch takes others. "
         "At "
         "the high end are the inputs that are\n*not* offloaded, as the heuristic's name says and Section IV-B's text "
         "reverses. dyn offloads nothing, with the fastest kernels: its aggregates\nare those of that.\n\n"
         "Workspaces (p). cuDNN 7's are not published. VGG-16's peak has the non-fused Winograd kernel F(4x4, 3x3), "
         "whose workspace follows from its shapes:\nconv1_2's backward step at batch 64, conv2_2's at 16 (conv1_2's "
         "would not fit the table there). AlexNet's is taken from\nthe tables, from conv(p)'s "
         "aggregate at either batch: a workspace in conv2's backward step of "
      << digits(iterationOf({"alexnet", 128, "", "conv", true}, false, false, false).workspace / mebi, 0)
      << " MiB at batch 128 and "
      << digits(iterationOf({"alexnet", 256, "", "conv", true}, false, false, false).workspace / mebi, 0)
      << " at 256;\ndyn, all, aconv and all pools follow.\n\n";
  tableTwo(page);
  tableFive(page);
  page << "\nPools are not monotone (a larger one may fail), so the search depends on the byte: one block elsewhere "
          "changes an entry by hundreds of MiB. The\npaper's two examples, a larger pool that fails and fragmentation "
          "that no allocator avoids, are unit tests (`planner_tests\n--gtest_filter='Pool*'`).\n";
  figureFive(page);
}

} // namespace sluice::bench
