// SPDX-License-Identifier: Apache-2.0
// Builds planner::Problem, see ProblemOfStep.h.
#include "passes/plan/ProblemOfStep.h"

#include "passes/analysis/InvertedStorages.h"
#include "passes/analysis/Masks.h"
#include "passes/planner/Errors.h"

#include "ir/RuntimeTypes.h"

#include <cmath>

using namespace mlir;
using namespace sluice;
using namespace sluice::train;

namespace {

/// Smaller tensors, most of them statistics of normalizations, neither move nor are packed: what they free is less than
/// the latency costs.
constexpr int64_t smallestMoved = 4096;

class Bridge {
public:
  Bridge(const Storages &storages) : storages(storages), bufferOf(storages.all().size(), -1) {}

  planner::Problem build(ModuleOp module, func::FuncOp step, const planner::Profile &profile, Target target, int rate,
                         std::optional<double> errorBudget, Space home) {
    problem.errorBudget = errorBudget;
    problem.home = home;
    problem.base = persistentBytes(module);
    problem.alignment = slotAlignment;
    problem.link = *profile.linkTo(home);
    if (!problem.link.contention)
      problem.link.contention = profile.link.contention;
    problem.codecContention = profile.codecContention.value_or(0);
    problem.zerosStay = factsOf(target).zerosStay;
    if (factsOf(home).packs)
      problem.codecRates = planner::ratesOfCopies(profile, problem.zerosStay);
    for (auto [index, storage] : llvm::enumerate(storages.all()))
      if (storage.kind == Storage::Kind::Transient)
        addBuffer(index, storage);
    for (Operation *op : plannedOps(step))
      addOp(op);
    markActivations();
    markRoundedWeights(step);
    markPackable(step);
    expectZeros(step, profile);
    addEncodings(step, profile, rate);
    addInversions(step, profile);
    if (errorBudget)
      addErrors(profile, Codec(Codec::Zfp, rate).bits());
    return std::move(problem);
  }

private:
  void addBuffer(int index, const Storage &storage) {
    bufferOf[index] = problem.buffers.size();
    planner::Buffer buffer;
    buffer.id = index;
    buffer.name = storage.name;
    buffer.bytes = storage.bytes;
    problem.buffers.push_back(buffer);
  }

  std::vector<int> transient(ArrayRef<int> storages) const {
    std::vector<int> list;
    for (int storage : storages)
      if (bufferOf[storage] >= 0 && !llvm::is_contained(list, bufferOf[storage]))
        list.push_back(bufferOf[storage]);
    return list;
  }

  void addOp(Operation *op) {
    positions[op] = problem.ops.size();
    planner::Op planned;
    planned.name = nodeName(op->getLoc()) + " " + op->getName().stripDialect().str();
    planned.kind = cast<HasKernel>(op).opKind();
    planned.phase = isForward(op)                     ? planner::Phase::Forward
                    : isa<UpdateOp, AccumulateOp>(op) ? planner::Phase::Update
                                                      : planner::Phase::Backward;
    if (auto stage = attr::get<attr::Stage>(op))
      planned.stage = stage.getInt();
    if (auto cost = attr::get<attr::Cost>(op)) {
      planned.seconds = cost.getSeconds().getValueAsDouble();
      planned.workspace = cost.getWorkspace();
      for (CostAttr other : cost.getAlternatives())
        planned.alternatives.push_back({other.getSeconds().getValueAsDouble(), other.getWorkspace()});
    }
    planned.reads = transient(storages.reads(op));
    planned.writes = transient(storages.writes(op));
    planned.recomputable = isForward(op) && isa<Recomputable>(op);
    problem.ops.push_back(std::move(planned));
  }

  /// Of what the forward half writes last: as measured, where regions of one name stand one after the other, or as
  /// expected. Casts and other orders keep zeros, the largest of a window is zero where all of it are.
  void expectZeros(func::FuncOp step, const planner::Profile &profile) {
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
        if (int b = bufferOf[storages.of(result)]; b >= 0)
          problem.buffers[b].zeroFraction = zeros;
      }
    }
  }

  /// An activation is written by forward ops and read by backward ops.
  void markActivations() {
    std::vector<bool> restorable(problem.buffers.size(), true);
    for (size_t position = 0; position < problem.ops.size(); ++position) {
      const planner::Op &op = problem.ops[position];
      if (op.phase == planner::Phase::Forward) {
        for (int b : op.writes) {
          planner::Buffer &buffer = problem.buffers[b];
          if (buffer.producers.empty())
            buffer.stage = op.stage;
          buffer.producers.push_back(position);
          restorable[b] = restorable[b] && op.recomputable;
        }
        continue;
      }
      for (int b : op.reads)
        if (!problem.buffers[b].producers.empty())
          problem.buffers[b].activation = true;
    }
    for (size_t b = 0; b < problem.buffers.size(); ++b) {
      problem.buffers[b].offloadable = problem.buffers[b].bytes >= smallestMoved;
      if (!restorable[b] || !problem.buffers[b].activation)
        problem.buffers[b].producers.clear();
    }
  }

  /// A weight rounded for the step is no feature map: rounding it again costs less than any copy.
  void markRoundedWeights(func::FuncOp step) {
    for (auto cast : step.getOps<CastOp>())
      if (int buffer = bufferOf[storages.of(cast.getY())]; buffer >= 0 && cast.getX().getDefiningOp<ReadOp>())
        problem.buffers[buffer].offloadable = false;
  }

  /// What copies can pack, by the size of an element.
  void markPackable(func::FuncOp step) {
    SmallVector<Value> contents = forwardContents(step, storages);
    for (planner::Buffer &buffer : problem.buffers) {
      auto type = contents[buffer.id] ? dyn_cast<RankedTensorType>(contents[buffer.id].getType()) : nullptr;
      buffer.elementBytes = type && packedType(type, Codec::Zvc) ? type.getElementTypeBitWidth() / 8 : 0;
    }
  }

  /// Masks for what gradients only compare with 0; packed forms for floats that have them.
  void addEncodings(func::FuncOp step, const planner::Profile &profile, int rate) {
    SmallVector<Value> contents = forwardContents(step, storages);
    for (planner::Buffer &buffer : problem.buffers) {
      Value content = contents[buffer.id];
      if (!buffer.activation || !content || !isReal(content.getType()))
        continue;
      auto type = cast<RankedTensorType>(content.getType());
      if (maskIsPositive(content, storages)) {
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
      buffer.compared = comparisonOf(content, storages);
      const bool rates = problem.errorBudget && rate == 0; // unless one is given
      for (planner::Encoding &form : planner::packingsOf(asFloats, *buffer.compared, profile, bytesOf, rates)) {
        if (form.codec.mask)
          form.maskReaders = maskReaders(content);
        buffer.encodings.push_back(std::move(form));
      }
    }
  }

  /// Of packed forms. A tensor that was measured has no errors but those that were: the codec refused others.
  void addErrors(const planner::Profile &profile, int rate) {
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

  std::vector<int> maskReaders(Value content) const {
    std::vector<int> readers;
    for (Value value : storages[storages.of(content)].values)
      for (Operation *reader : value.getUsers())
        if (readsMaskOnly(reader, content, storages))
          readers.push_back(positions.lookup(reader));
    llvm::sort(readers);
    readers.erase(llvm::unique(readers), readers.end());
    return readers;
  }

  void addInversions(func::FuncOp step, const planner::Profile &profile) {
    for (auto &[s, found] : invertedStorages(step, storages)) {
      planner::Buffer &buffer = problem.buffers[bufferOf[s]];
      RankedTensorType saved = found.op.savedType(found.operand);
      planner::Inversion inversion;
      for (int source : found.sources)
        inversion.sources.push_back(bufferOf[source]);
      inversion.latest = found.latest;
      inversion.sideBytes = saved ? bytes(saved) : 0;
      inversion.workspace = found.workspace;
      inversion.fromHalves = !!saved;
      const double n = elements(found.op->getResult(0).getType());
      // BatchNorm and leaky ReLU: reads one tensor and writes one. Sums: also the other addend, and a look at both for
      // cancellation.
      inversion.seconds =
          profile.estimate(OpKind::Norm, 6 * n, saved ? 2.0 * buffer.bytes + inversion.sideBytes : 5.0 * buffer.bytes);
      for (Operation *again : found.reruns)
        if (auto cost = attr::get<attr::Cost>(again))
          inversion.seconds += cost.getSeconds().getValueAsDouble();
      // The most that guards let through: see InversionRules.h.
      const bool floats = buffer.elementBytes == sizeof(float);
      inversion.error = saved ? (floats ? 1e-5 : 2e-2) : (floats ? 6.2e-5 : 1.6e-2);
      buffer.inversion = inversion;
      if (saved)
        keepOperands(found);
    }
  }

  /// What else such an inversion reads stays as it is: the planner does not know of it, and it must not be made from
  /// what is rebuilt.
  void keepOperands(const StorageInversion &found) {
    for (auto [i, operand] : llvm::enumerate(found.op->getOperands()))
      if (int small = i == found.operand ? -1 : bufferOf[storages.of(operand)]; small >= 0) {
        problem.buffers[small].producers.clear();
        problem.buffers[small].encodings.clear();
        problem.buffers[small].offloadable = false;
        for (planner::Op &writer : problem.ops)
          writer.recomputable &= !llvm::is_contained(writer.writes, small);
      }
  }

  const Storages &storages;
  llvm::DenseMap<Operation *, int> positions; ///< in `problem.ops`
  std::vector<int> bufferOf;                  ///< storage -> buffer of the problem, -1 for what outlives the step
  planner::Problem problem;
};

} // namespace

planner::Problem sluice::problemOfStep(ModuleOp module, func::FuncOp step, const Storages &storages,
                                       const planner::Profile &profile, Target target, bool oneMemory, int rate,
                                       std::optional<double> errorBudget, Space home) {
  planner::Problem problem = Bridge(storages).build(module, step, profile, target, rate, errorBudget, home);
  problem.base += oneMemory ? stagingBytes(module) : 0;
  return problem;
}
