// SPDX-License-Identifier: Apache-2.0
// Lists the ways to run a convolution and makes one of them, see ConvEngine.h.
#include "runtime/host/ConvEngine.h"

#include "runtime/host/BlockedConv.h"
#include "runtime/host/Dnnl.h"
#include "runtime/host/DnnlConv.h"
#include "runtime/host/Processor.h"
#include "runtime/host/ProductConv.h"
#include "runtime/host/TileForm.h"
#include "runtime/host/WideConv.h"

#include <algorithm>

namespace sluice {

namespace {

const std::string rotatedForm = "rotated ", wideForm = "wide ", productForm = "product ", blocked = "blocked";

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

/// Of its best kernels, on this processor or the one that is planned for.
double speedOfProcessor() {
  if (!tile::asksVendor())
    return 0.6; // ours, of four floats
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

/// Those whose time is that of products of bf16: oneDNN's kernels for other groups wait for memory as much.
bool isDenseInHalves(const ConvGeometry &g) { return isHalf(g.type) && g.groups == 1; }

/// What the conversions of a convolution in floats take beside its own time, in operations of the latter: of each
/// element of images, of the weights in each part, and of starting one. As measured with AVX-512.
double slownessOfConversions(const ConvGeometry &g, int64_t parts) {
  const double pixels = static_cast<double>(g.x.elements() + g.y.elements()), cuts = static_cast<double>(parts);
  const double weights = static_cast<double>(g.w.elements()) * (g.pass == ConvPass::BackwardWeight ? 120 : 60);
  const double operations = 2.0 * static_cast<double>(g.y.elements()) * static_cast<double>(g.w.elements() / g.w[0]);
  return 1 + (48 * pixels + cuts * (weights + 4e7)) / operations;
}

void addOffers(const ConvGeometry &g, bool bias, bool rotated, int64_t parts, std::vector<ConvCandidate> &candidates) {
  int better = 0;
  double speed = 0;
  if (!tile::asksVendor())
    return;
  for (const DnnlConvOffer &offer : dnnlConvOffers(g, bias, rotated, parts)) {
    better = speedOf(offer.name) == speed ? better + 1 : 0;
    speed = speedOf(offer.name);
    const double cut = 1 + 0.02 * static_cast<double>(parts - 1), form = rotated ? 0.5 : 1;
    const double halves = isDenseInHalves(g) ? slownessOfHalves(offer.name.c_str()) : 1;
    candidates.push_back({(rotated ? rotatedForm : "") + offer.name, parts, offer.workspace,
                          cut * form * halves * familyOf(g, offer.name, better) * speedOfProcessor() / speed});
  }
}

/// Of the time of oneDNN's convolution with AMX, as measured for ResNet-50: its weight gradient is the slowest of all.
void addProduct(const ConvGeometry &g, bool bias, std::vector<ConvCandidate> &candidates) {
  const ProductConvOffer offer = tile::asksVendor() ? productConvOffer(g, bias) : ProductConvOffer();
  if (!offer.name.empty())
    candidates.push_back({productForm + offer.name, 1, offer.workspace,
                          slownessOfHalves(offer.name.c_str()) * (g.pass == ConvPass::BackwardWeight ? 0.5 : 0.8)});
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
  const double slowness =
      isDenseInHalves(g) ? slownessOfConversions(g, parts) : 2.5 * (1 + 0.02 * static_cast<double>(parts - 1));
  bool fastest = true;
  for (const ConvCandidate &c : convCandidates(part, bias)) {
    if (c.parts == 1 && (fastest || c.name == blocked))
      candidates.push_back({wideForm + c.name, parts, own + c.workspace, slowness * c.slowness});
    fastest &= c.parts != 1;
  }
}

} // namespace

/// Whether there are kernels for the geometry that floats could not beat.
static bool isFast(const std::vector<ConvCandidate> &candidates) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const ConvCandidate &c) { return c.slowness <= 1 && c.name.rfind(wideForm, 0) != 0; });
}

std::vector<ConvCandidate> convCandidates(const ConvGeometry &g, bool bias) {
  std::vector<ConvCandidate> candidates;
  const bool halves = isHalf(g.type);
  addProduct(g, bias, candidates);
  for (int64_t parts = 1; parts <= g.x[0]; parts *= 2)
    if (g.x[0] % parts == 0) {
      for (bool rotated : {false, true})
        if (!rotated || rotatesWeights(g))
          addOffers(g, bias, rotated, parts, candidates);
      if (halves && (!isFast(candidates) || parts == g.x[0])) // the smallest workspace in any case: trials may fail
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
  if (hasForm(name, productForm))
    return parts == 1 ? makeProductConv(g, bias, name.substr(productForm.size())) : nullptr;
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
