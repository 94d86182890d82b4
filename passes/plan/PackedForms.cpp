// SPDX-License-Identifier: Apache-2.0
// Packed forms of buffers: sizes, times, readers that can use them as they are, errors.
#include "passes/plan/BufferActions.h"

#include "passes/analysis/InvertedStorages.h"
#include "passes/analysis/Masks.h"
#include "passes/planner/Errors.h"
#include "passes/planner/Packings.h"

#include "ir/RuntimeTypes.h"

#include <cmath>

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// Fills in what the planner has to know of the bytes of a problem's buffers, which are there with their ops already.
class PackedForms {
public:
  PackedForms(planner::Problem &problem, func::FuncOp step, const PlannedBuffers &buffers,
              const planner::Profile &profile, int rate)
      : problem(problem), step(step), buffers(buffers), profile(profile), rate(rate),
        contents(forwardContents(step, buffers.storages)) {}

  void add() {
    markPackable();
    expectZeros();
    addEncodings();
    if (problem.errorBudget)
      addErrors(Codec(Codec::Zfp, rate).bits());
  }

private:
  /// Of what the forward half writes last: as measured, where regions of one name stand one after the other, or as
  /// expected. Casts and other orders keep zeros, the largest of a window is zero where all of it are.
  void expectZeros() {
    llvm::StringMap<size_t> written; // full tensors so far, by node
    llvm::DenseMap<Value, double> shares;
    for (Operation *op : plannedOps(step)) {
      if (!isForward(op))
        continue;
      auto fused = dyn_cast<FusedOp>(op);
      for (OpResult result : op->getResults()) {
        double zeros = 0;
        if (isa<CastOp, ReorderOp, MaxPoolOp>(op) && result.getResultNumber() == 0)
          zeros = shares.lookup(viewedValue(op->getOperand(0)));
        if (auto pool = dyn_cast<MaxPoolOp>(op))
          for (int64_t extent : pool.getKernel())
            zeros = std::pow(zeros, static_cast<double>(extent));
        if (unsigned i = result.getResultNumber(); fused && i < fused.fullResults()) {
          const std::string node = nodeName(op->getLoc());
          const planner::MeasuredOp *measured = profile.measured(node, cast<HasKernel>(op).launchName());
          const size_t place = written[node]++;
          zeros = measured && place < measured->zeros.size() ? measured->zeros[place] : fused.expectedZeros(i);
        }
        shares[result] = zeros;
        if (int b = buffers.bufferOf[buffers.storages.of(result)]; b >= 0)
          problem.buffers[b].zeroFraction = zeros;
      }
    }
  }

  /// What copies can pack, by the size of an element.
  void markPackable() {
    for (planner::Buffer &buffer : problem.buffers) {
      auto type = contents[buffer.id] ? dyn_cast<RankedTensorType>(contents[buffer.id].getType()) : nullptr;
      buffer.elementBytes = type && packedType(type, Codec::Zvc) ? type.getElementTypeBitWidth() / 8 : 0;
    }
  }

  /// Masks for what gradients only compare with 0; packed forms for floats that have them.
  void addEncodings() {
    for (planner::Buffer &buffer : problem.buffers) {
      Value content = contents[buffer.id];
      if (!buffer.activation || !content || !isReal(content.getType()))
        continue;
      auto type = cast<RankedTensorType>(content.getType());
      if (maskIsPositive(content, buffers.storages)) {
        int64_t size = bytes(packedType(type, Codec::Mask));
        double seconds = profile.estimate(OpKind::Activation, elements(type), buffer.bytes + size);
        buffer.encodings.push_back({Codec::Mask, size, seconds, 0});
      }
      if (!buffer.offloadable) // small, or a weight that was rounded for the step
        continue;
      const auto bytesOf = [&](Codec codec) -> planner::Bytes {
        RankedTensorType packed = packedType(type, planner::withRate(codec, rate));
        return packed && bytes(packed) < buffer.bytes ? bytes(packed) : 0; // of halves zfp at a high rate makes more
      };
      const planner::Bytes asFloats = elements(type) * static_cast<planner::Bytes>(sizeof(float));
      buffer.compared = comparisonOf(content, buffers.storages);
      const bool rates = problem.errorBudget && rate == 0; // unless one is given
      for (planner::Encoding &form : planner::packingsOf(asFloats, *buffer.compared, profile, bytesOf, rates)) {
        if (form.codec.mask)
          form.maskReaders = maskReaders(content);
        buffer.encodings.push_back(std::move(form));
      }
    }
  }

  /// Of packed forms. A tensor that was measured has no errors but those that were: the codec refused others.
  void addErrors(int rate) {
    const size_t tensors =
        llvm::count_if(problem.buffers, [](const planner::Buffer &buffer) { return buffer.compared.has_value(); });
    for (planner::Buffer &buffer : problem.buffers) {
      if (!buffer.compared)
        continue;
      std::vector<Codec> codecs = {Codec::Fp16};
      for (const planner::Encoding &form : buffer.encodings)
        if (!planner::readDirectly(form.codec) && form.codec != Codec::Fp16)
          codecs.push_back(form.codec);
      const auto measured = profile.errors.find(buffer.name);
      problem.errorsAreDefaults |= measured == profile.errors.end();
      for (const Codec codec : codecs) {
        const Codec rated = planner::withRate(codec, rate);
        if (const std::optional<double> error = measured != profile.errors.end()
                                                    ? measuredError(measured->second, rated)
                                                    : planner::usualError(rated, tensors))
          buffer.errors.emplace_back(codec, *error);
      }
    }
  }

  /// A rate that was not measured has the error of the next lower one that was.
  static std::optional<double> measuredError(const std::map<Codec, double> &errors, Codec codec) {
    do {
      if (const auto found = errors.find(codec); found != errors.end())
        return std::isfinite(found->second) ? std::optional(found->second) : std::nullopt;
    } while (codec.kind == Codec::Zfp && --codec.rate >= 2);
    return std::nullopt;
  }

  /// Positions, increasing, each once: what reads through two views reads once.
  std::vector<int> maskReaders(Value content) const {
    std::vector<int> readers;
    for (Value value : buffers.storages[buffers.storages.of(content)].values)
      for (Operation *reader : value.getUsers())
        if (readsMaskOnly(reader, content, buffers.storages))
          readers.push_back(buffers.positions.lookup(reader));
    llvm::sort(readers);
    readers.erase(llvm::unique(readers), readers.end());
    return readers;
  }

  planner::Problem &problem;
  func::FuncOp step;
  const PlannedBuffers &buffers;
  const planner::Profile &profile;
  const int rate;
  const SmallVector<Value> contents; ///< by storage
};

} // namespace

void sluice::addPackedForms(planner::Problem &problem, func::FuncOp step, const PlannedBuffers &buffers,
                            const planner::Profile &profile, int rate) {
  PackedForms(problem, step, buffers, profile, rate).add();
}
