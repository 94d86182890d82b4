// SPDX-License-Identifier: Apache-2.0
// Calibrates a profile to the tables of vDNN++'s paper, see VdnnProfile.h.
#include "tools/bench/reproduce/VdnnProfile.h"

#include "passes/strategies/Stages.h"
#include "tools/bench/reproduce/Networks.h"

namespace sluice::bench {

using namespace planner;

double tableOneInput() { return 128.0 * 64 * 112 * 112 * 4; }

double tableOneFlops(int kernel) { return 2.0 * 128 * 112 * 112 * 64 * 64 * kernel * kernel; }

/// Rates that are measured whole have no launch to add.
static Profile withLinkOfTableOne() {
  Profile profile = *loadProfile("gtx-1080ti");
  const double rate = 2 * tableOneInput() / (tableOneCopies / 1000);
  profile.link.d2h = profile.link.h2d = rate;
  return profile;
}

Profile smallestKernelProfile() {
  Profile profile = withLinkOfTableOne();
  for (const auto &[kernel, milliseconds] : tableOne) // forward, input's and weights' gradient
    profile.samples[{"conv", "fp32"}].push_back(
        {{double(kernel) * kernel}, 3 * tableOneFlops(kernel) / (milliseconds / 1000)});
  return profile;
}

Profile fastestKernelProfile() {
  Profile profile = withLinkOfTableOne();
  profile.samples[{"conv", "fp32"}] = {{{9}, 1}};
  Seconds others = 0, convolutions = 0; // at one operation a second, that is their operations
  for (const Op &op : network("vgg116", profile, 32, 224).ops)
    (op.kind == OpKind::Conv ? convolutions : others) += op.seconds;
  profile.samples[{"conv", "fp32"}] = {{{9}, convolutions / (computeOfVgg116() - others)}};
  return profile;
}

Chain layerChain(const std::string &name, const Profile &profile, int batch, int image) {
  const Problem problem = network(name, profile, batch, image);
  const Stages stages(problem);
  Chain chain = stages.chain();
  chain.saved.assign(chain.saved.size(), 0);
  chain.kinds.assign(chain.uF.size(), OpKind::Other);
  for (size_t k = problem.ops.size(); k-- > 0;)
    if (problem.ops[k].phase == Phase::Forward)
      chain.kinds[stages.ofOp(static_cast<int>(k))] = problem.ops[k].kind; // the first op of a stage has the last word
  return chain;
}

} // namespace sluice::bench
