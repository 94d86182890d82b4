// SPDX-License-Identifier: Apache-2.0
// Lists the ways to run a convolution and makes one of them, see ConvEngine.h.
#include "runtime/host/ConvEngine.h"

#include "runtime/host/BlockedConv.h"
#include "runtime/host/Dnnl.h"
#include "runtime/host/DnnlConv.h"
#include "runtime/host/TileForm.h"

#include <algorithm>

namespace sluice {

namespace {

const std::string rotatedForm = "rotated ", blocked = "blocked";

class BlockedEngine : public ConvEngine {
public:
  BlockedEngine(const ConvGeometry &geometry, int64_t parts) : pass(geometry.pass), conv(geometry, parts) {}
  size_t workspaceBytes() const override { return conv.workspaceBytes(); }
  void run(const float *first, const float *second, float *result, float *bias, char *scratch) const override {
    if (pass == ConvPass::Forward)
      conv.forward(first, second, bias, result, scratch);
    else if (pass == ConvPass::BackwardData)
      conv.backwardData(first, second, result, scratch);
    else
      conv.backwardWeight(first, second, result, bias, scratch);
  }

private:
  ConvPass pass;
  BlockedConv conv;
};

/// Arithmetic of one core by vector width; SSE has no fused multiply-add and half the loads.
double speedOf(const std::string &name) {
  return name.find("avx512") != std::string::npos ? 4 : name.find("avx") != std::string::npos ? 2 : 0.6;
}

double speedOfProcessor() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  if (isa == dnnl::cpu_isa::sse41)
    return 0.6;
  return isa == dnnl::cpu_isa::avx || isa == dnnl::cpu_isa::avx2 || isa == dnnl::cpu_isa::avx2_vnni ? 2 : 4;
}

/// Of an implementation that comes after `better` ones of the same instruction set: for window 1x1 and depthwise
/// geometries oneDNN has kernels of their own, and its general one is far behind in gradients. The factors are rough:
/// they only have to rank.
double familyOf(const ConvGeometry &g, const std::string &name, int better) {
  if (g.groups > 1 && g.w[1] == 1 && name.find("dw") == std::string::npos && name.find("dg") == std::string::npos)
    return 6;
  if (better == 0)
    return 1;
  if (name.compare(0, 4, "jit:") != 0)
    return 1.05;
  return g.pass == ConvPass::Forward ? 1.3 : 2.5;
}

/// Against oneDNN's best for the same vectors; rough, too.
double slownessOfOurs(const ConvGeometry &g) {
  const int64_t lanes = tile::form().lanes;
  const double vectors = speedOfProcessor() / (lanes == 16 ? 4 : lanes == 8 ? 2 : 0.6);
  const bool depthwise = g.groups > 1 && g.w[1] == 1, narrow = g.groups > 1 && g.w[1] < lanes;
  return std::max(0.4, vectors) * (depthwise ? 4 : narrow ? 8 : 1.6);
}

void addOffers(const ConvGeometry &g, bool bias, bool rotated, int64_t parts, std::vector<ConvCandidate> &candidates) {
  int better = 0;
  double speed = 0;
  for (const DnnlConvOffer &offer : dnnlConvOffers(g, bias, rotated, parts)) {
    better = speedOf(offer.name) == speed ? better + 1 : 0;
    speed = speedOf(offer.name);
    const double cut = 1 + 0.02 * static_cast<double>(parts - 1), form = rotated ? 0.5 : 1;
    candidates.push_back({(rotated ? rotatedForm : "") + offer.name, parts, offer.workspace,
                          cut * form * familyOf(g, offer.name, better) * speedOfProcessor() / speed});
  }
}

} // namespace

std::vector<ConvCandidate> convCandidates(const ConvGeometry &g, bool bias) {
  std::vector<ConvCandidate> candidates;
  for (int64_t parts = 1; parts <= g.x[0]; parts *= 2)
    if (g.x[0] % parts == 0)
      for (bool rotated : {false, true})
        if (!rotated || rotatesWeights(g))
          addOffers(g, bias, rotated, parts, candidates);
  // Parts of ours are of the channels; each gathers all pixels.
  for (int64_t parts = 1, most = BlockedConv(g).mostParts(); parts == 1 || parts <= std::min<int64_t>(most, 16);
       parts *= 4)
    candidates.push_back({blocked, parts, BlockedConv(g, parts).workspaceBytes(),
                          slownessOfOurs(g) * (1 + 0.15 * static_cast<double>(parts - 1))});
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const ConvCandidate &a, const ConvCandidate &b) { return a.slowness < b.slowness; });
  return candidates;
}

std::unique_ptr<ConvEngine> makeConvEngine(const ConvGeometry &g, bool bias, const Algorithm &algorithm) {
  const std::string name = algorithm.name;
  if (name == blocked)
    return std::make_unique<BlockedEngine>(g, std::max<int64_t>(1, algorithm.parts));
  const bool rotated = name.compare(0, rotatedForm.size(), rotatedForm) == 0;
  const bool possible = algorithm.parts > 0 && g.x[0] % algorithm.parts == 0 && (!rotated || rotatesWeights(g));
  auto engine = possible
                    ? makeDnnlConv(g, bias, rotated ? name.substr(rotatedForm.size()) : name, rotated, algorithm.parts)
                    : nullptr;
  if (!engine)
    throw MemoryNotAvailable("this processor does not offer the algorithm '" + name + "' in " +
                             std::to_string(algorithm.parts) + " parts; compile the model again on it");
  return engine;
}

} // namespace sluice
