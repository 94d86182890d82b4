// SPDX-License-Identifier: Apache-2.0
// What copies in pieces would gain: every tensor of 16 MiB and more becomes two or four buffers that the same ops use,
// so that the part that has left is free while the rest is under way, and a more urgent copy goes in between. Pieces
// may lie anywhere here, but kernels need them side by side: plans in pieces promise more than can run.
#include "tools/bench/reproduce/Outcome.h"
#include "tools/bench/reproduce/Pages.h"

#include "passes/planner/Simulate.h"
#include "passes/strategies/Registry.h"

namespace sluice::bench {

using namespace planner;

namespace {

constexpr Bytes leastSplit = Bytes(16) << 20;

class Splitter {
public:
  Splitter(const Problem &whole, int pieces) : problem(whole) {
    problem.buffers.clear();
    for (const Buffer &buffer : whole.buffers)
      add(buffer, buffer.offloadable && buffer.bytes >= leastSplit ? pieces : 1);
    for (Op &op : problem.ops) {
      op.reads = partsOf(op.reads);
      op.writes = partsOf(op.writes);
      if (op.rerun) {
        op.rerun->reads = partsOf(op.rerun->reads);
        op.rerun->writes = partsOf(op.rerun->writes);
      }
    }
  }
  Problem problem;

private:
  void add(const Buffer &buffer, int pieces) {
    parts.emplace_back();
    for (int i = 0; i < pieces; ++i) {
      Buffer piece = buffer;
      piece.bytes = (buffer.bytes + pieces - 1) / pieces;
      for (Encoding &form : piece.encodings) {
        form.bytes = (form.bytes + pieces - 1) / pieces;
        form.encodeSeconds /= pieces;
        form.decodeSeconds /= pieces;
      }
      parts.back().push_back(static_cast<int>(problem.buffers.size()));
      problem.buffers.push_back(piece);
    }
  }
  std::vector<int> partsOf(const std::vector<int> &buffers) const {
    std::vector<int> all;
    for (int b : buffers)
      all.insert(all.end(), parts[b].begin(), parts[b].end());
    return all;
  }
  std::vector<std::vector<int>> parts; ///< of each buffer that there was
};

Options exact(bool recompute) {
  Options options;
  options.executable = {Action::Keep, Action::Offload, Codec::Mask, Codec::Argmax, Codec::Counter};
  if (recompute)
    options.executable.add(Action::Recompute);
  return options;
}

/// Overhead over keep and of it what compute waits for copies, or - where there is no plan.
std::string overhead(const Problem &problem, Bytes budget, const std::string &strategy, Seconds keep) {
  const Answer answer = runStrategy(problem, budget, strategy, exact(strategy == "mixed"));
  const Plan *plan = std::get_if<Plan>(&answer);
  if (!plan)
    return "-";
  const Timeline timeline = simulate(problem, *plan);
  Seconds waits = 0;
  for (const Wait &wait : timeline.waits)
    waits += wait.seconds;
  return percent(timeline.makespan / keep - 1) + " (" + percent(waits / keep) + ")";
}

void sweep(std::ostream &page, const std::string &name, const Profile &profile) {
  const Problem whole = network(name, profile, 32, name == "unet_bn" ? 256 : 224);
  const Plan keep = std::get<Plan>(runStrategy(whole, Bytes(1) << 55, "keep"));
  const Seconds base = simulate(whole, keep).makespan;
  for (const char *strategy : {"mixed", "greedy"})
    for (double share : {0.4, 0.5, 0.6}) {
      const Bytes budget =
          whole.base + static_cast<Bytes>(share * static_cast<double>(keep.arenaBytes - whole.base)) / 256 * 256;
      page << "| " << name << " | " << strategy << " | " << digits(100 * share, 0) << " %";
      for (int pieces : {1, 2, 4})
        page << " | " << overhead(Splitter(whole, pieces).problem, budget, strategy, base);
      page << " |\n";
    }
}

} // namespace

void splitCopies(std::ostream &page) {
  page << "# Copies in pieces\n\n"
          "Predicted overhead over keep, batch 32, fp32, 224x224 (U-Net 256x256), exact actions. Budgets are shares of "
          "keep's "
          "activations. Tensors\n"
          "of 16 MiB and more are copied whole, in two and in four pieces, each free or there on its own; pieces may "
          "lie "
          "anywhere, which\n"
          "kernels do not allow, so that a plan in pieces may promise more than can run. In parentheses what compute "
          "waits for copies: no "
          "split of the\n"
          "same plan's copies saves more.\n\n";
  for (const char *device : {"titan-x", "v100-pcie"}) {
    page << "## " << device
         << "\n\n| network | strategy | budget | whole | two pieces | four pieces |\n|---|---|---|---|---|---|\n";
    for (const char *name : {"resnet50", "vgg19", "unet_bn"})
      sweep(page, name, profileOf(device));
    page << "\n";
  }
}

} // namespace sluice::bench
