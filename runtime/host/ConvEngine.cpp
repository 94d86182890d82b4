// SPDX-License-Identifier: Apache-2.0
// Lists the ways to run a convolution and makes one of them, see ConvEngine.h.
#include "runtime/host/ConvEngine.h"

#include "runtime/host/BlockedConv.h"
#include "runtime/host/Dnnl.h"
#include "runtime/host/DnnlConv.h"
#include "runtime/host/TileForm.h"
#include "runtime/host/WideConv.h"

#include <algorithm>

namespace sluice {

namespace {

const std::string rotatedForm = "rotated ", wideForm = "wide ", blocked = "blocked";

class BlockedEngine : public ConvEngine {
public:
  BlockedEngine(const ConvGeometry &geometry, int64_t parts) : pass(geometry.pass), conv(geometry, parts) {}
  size_t workspaceBytes() const override { return conv.workspaceBytes(); }
  void run(const void *first, const void *second, void *result, float *bias, char *scratch) const override {
    const auto *from = static_cast<const float *>(first), *other = static_cast<const float *>(second);
    auto *to = static_cast<float *>(result);
    if (pass == ConvPass::Forward)
      conv.forward(from, other, bias, to, scratch);
    else if (pass == ConvPass::BackwardData)
      conv.backwardData(from, other, to, scratch);
    else
      conv.backwardWeight(from, other, to, bias, scratch);
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

/// Of ours of floats: parts are of the channels; each gathers all pixels.
void addBlocked(const ConvGeometry &g, std::vector<ConvCandidate> &candidates) {
  for (int64_t parts = 1, most = BlockedConv(g).mostParts(); parts == 1 || parts <= std::min<int64_t>(most, 16);
       parts *= 4)
    candidates.push_back({blocked, parts, BlockedConv(g, parts).workspaceBytes(),
                          slownessOfOurs(g) * (1 + 0.15 * static_cast<double>(parts - 1))});
}

/// The fastest one of floats, and ours, for as many images at a time as are asked for; rough, too.
void addWide(const ConvGeometry &g, bool bias, int64_t parts, std::vector<ConvCandidate> &candidates) {
  const ConvGeometry part = wideGeometry(g, parts);
  const size_t own = wideConvBytes(g, bias, parts);
  bool fastest = true;
  for (const ConvCandidate &c : convCandidates(part, bias)) {
    if (c.parts == 1 && (fastest || c.name == blocked))
      candidates.push_back({wideForm + c.name, parts, own + c.workspace,
                            2.5 * c.slowness * (1 + 0.02 * static_cast<double>(parts - 1))});
    fastest &= c.parts != 1;
  }
}

} // namespace

std::vector<ConvCandidate> convCandidates(const ConvGeometry &g, bool bias) {
  std::vector<ConvCandidate> candidates;
  const bool halves = isHalf(g.type);
  for (int64_t parts = 1; parts <= g.x[0]; parts *= 2)
    if (g.x[0] % parts == 0) {
      for (bool rotated : {false, true})
        if (!rotated || rotatesWeights(g))
          addOffers(g, bias, rotated, parts, candidates);
      const bool some = !candidates.empty() && candidates.front().name.compare(0, wideForm.size(), wideForm) != 0;
      if (halves && (!some || parts == g.x[0])) // those of the smallest workspace in any case: trials may fail
        addWide(g, bias, parts, candidates);
    }
  if (!halves)
    addBlocked(g, candidates);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const ConvCandidate &a, const ConvCandidate &b) { return a.slowness < b.slowness; });
  return candidates;
}

static bool hasForm(const std::string &name, const std::string &form) {
  return name.compare(0, form.size(), form) == 0;
}

/// Null where this processor does not offer it.
static std::unique_ptr<ConvEngine> findConvEngine(const ConvGeometry &g, bool bias, const std::string &name,
                                                  int64_t parts) {
  if (name == blocked && !isHalf(g.type))
    return std::make_unique<BlockedEngine>(g, std::max<int64_t>(1, parts));
  const bool rotated = hasForm(name, rotatedForm);
  if (parts < 1 || g.x[0] % parts != 0 || (rotated && !rotatesWeights(g)))
    return nullptr;
  if (!isHalf(g.type) || !hasForm(name, wideForm))
    return makeDnnlConv(g, bias, rotated ? name.substr(rotatedForm.size()) : name, rotated, parts);
  auto floats = findConvEngine(wideGeometry(g, parts), bias, name.substr(wideForm.size()), 1);
  return floats ? makeWideConv(g, bias, parts, std::move(floats)) : nullptr;
}

std::unique_ptr<ConvEngine> makeConvEngine(const ConvGeometry &g, bool bias, const Algorithm &algorithm) {
  auto engine = findConvEngine(g, bias, algorithm.name, algorithm.parts);
  if (!engine)
    throw MemoryNotAvailable(std::string("this processor does not offer the algorithm '") + algorithm.name + "' in " +
                             std::to_string(algorithm.parts) + " parts; compile the model again on it");
  return engine;
}

} // namespace sluice
