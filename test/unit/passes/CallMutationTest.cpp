// SPDX-License-Identifier: Apache-2.0
// What a placed program computes must be what was planned: one run at a time is given another shape, operand, type,
// layout, scratch or codec, or dropped, with everything else as consistent as a program can say it, and each time
// verification must fail. All changes are wrong by construction.
#include "test/unit/passes/ScheduledModel.h"

#include "ir/Train.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::CopyOp;
using sched::ProgramOp;
using sched::RunOp;

namespace {

BufferOp slot(Value buffer) { return buffer.getDefiningOp<BufferOp>(); }

class CallMutation : public ScheduledModel {
protected:
  /// For each run of the program: `changes(run)` lists changes by their number, `apply(run, n)` makes the n-th one.
  /// Gives back how many there were.
  template <typename Count, typename Apply> size_t expectRefused(Count count, Apply apply) {
    std::vector<RunOp> runs = all<RunOp>(program());
    size_t total = 0;
    for (size_t r = 0; r < runs.size(); ++r)
      for (size_t n = 0, end = count(runs[r]); n < end; ++n, ++total)
        EXPECT_NE(verifyWith([&](ProgramOp p) { apply(all<RunOp>(p)[r], n); }), "")
            << "change " << n << " of " << runs[r].getKernel().str() << " of " << train::nodeName(runs[r].getLoc());
    return total;
  }

  Builder b{&context};
};

/// The constructors' arguments of all calls that are lists of numbers: (call, argument).
SmallVector<std::pair<size_t, size_t>> shapesOf(RunOp run) {
  SmallVector<std::pair<size_t, size_t>> found;
  for (auto [c, call] : llvm::enumerate(run.getCalls().getAsRange<sched::CallAttr>()))
    for (auto [a, argument] : llvm::enumerate(call.getArguments()))
      if (auto shape = dyn_cast<DenseI64ArrayAttr>(argument); shape && !shape.empty())
        found.push_back({c, a});
  return found;
}

void setCall(RunOp run, size_t index, sched::CallAttr call) {
  SmallVector<Attribute> calls(run.getCalls().begin(), run.getCalls().end());
  calls[index] = call;
  run.setCallsAttr(ArrayAttr::get(run.getContext(), calls));
}

sched::CallAttr withArguments(sched::CallAttr call, ArrayRef<Attribute> arguments) {
  return sched::CallAttr::get(call.getContext(), call.getKernel(), ArrayAttr::get(call.getContext(), arguments),
                              call.getMethod(), call.getOperands());
}

TEST_P(CallMutation, ShapesAreTheOps) {
  EXPECT_GE(expectRefused([](RunOp run) { return shapesOf(run).size(); },
                          [&](RunOp run, size_t n) {
                            auto [c, a] = shapesOf(run)[n];
                            auto call = cast<sched::CallAttr>(run.getCalls()[c]);
                            SmallVector<Attribute> arguments(call.getArguments().begin(), call.getArguments().end());
                            auto shape = llvm::to_vector(cast<DenseI64ArrayAttr>(arguments[a]).asArrayRef());
                            shape.back() += 1;
                            arguments[a] = b.getDenseI64ArrayAttr(shape);
                            setCall(run, c, withArguments(call, arguments));
                          }),
            5u);
}

TEST_P(CallMutation, RolesAreThePlans) {
  EXPECT_GE(expectRefused([](RunOp) { return size_t{2}; },
                          [](RunOp run, size_t n) {
                            const sched::Role others[] = {sched::Role::Compute, sched::Role::Rerun,
                                                          sched::Role::Rebuild};
                            const bool same = run.getRole() == others[n];
                            run.setRole(same ? others[2] : others[n]);
                          }),
            10u);
}

TEST_P(CallMutation, IdsAreTheOps) {
  size_t ids = 0;
  for (RunOp run : all<RunOp>(program()))
    ids += run.getIdsAttr() ? 1 : 0;
  EXPECT_EQ(expectRefused([](RunOp run) { return run.getIdsAttr() ? size_t{2} : size_t{0}; },
                          [](RunOp run, size_t n) {
                            const sched::IdsAttr is = run.getIdsAttr();
                            run.setIdsAttr(n == 0 ? sched::IdsAttr()
                                                  : sched::IdsAttr::get(run.getContext(), is.getIn(), is.getLimit() + 1,
                                                                        is.getIgnored()));
                          }),
            2 * ids);
}

/// Pairs of a call's operands that differ.
SmallVector<std::array<size_t, 3>> operandPairs(RunOp run) {
  SmallVector<std::array<size_t, 3>> pairs;
  for (auto [c, call] : llvm::enumerate(run.getCalls().getAsRange<sched::CallAttr>()))
    for (size_t i = 0; i < call.getOperands().size(); ++i)
      for (size_t j = i + 1; j < call.getOperands().size(); ++j)
        if (call.getOperands()[i] != call.getOperands()[j])
          pairs.push_back({c, i, j});
  return pairs;
}

TEST_P(CallMutation, OperandsOfCallsKeepTheirPlaces) {
  EXPECT_GE(expectRefused([](RunOp run) { return operandPairs(run).size(); },
                          [&](RunOp run, size_t n) {
                            auto [c, i, j] = operandPairs(run)[n];
                            auto call = cast<sched::CallAttr>(run.getCalls()[c]);
                            SmallVector<sched::OperandAttr> operands(call.getOperands());
                            std::swap(operands[i], operands[j]);
                            setCall(run, c,
                                    sched::CallAttr::get(&context, call.getKernel(), call.getArguments(),
                                                         call.getMethod(), operands));
                          }),
            10u);
}

/// Other ins of as many bytes: the run would read the wrong one.
TEST_P(CallMutation, BuffersOfARunKeepTheirPlaces) {
  auto pairs = [](RunOp run) {
    SmallVector<std::pair<unsigned, unsigned>> found;
    for (unsigned i = 0; i < run.getIns().size(); ++i)
      for (unsigned j = i + 1; j < run.getIns().size(); ++j)
        if (run.getIns()[i] != run.getIns()[j])
          found.push_back({i, j});
    return found;
  };
  EXPECT_GE(expectRefused([&](RunOp run) { return pairs(run).size(); },
                          [&](RunOp run, size_t n) {
                            auto [i, j] = pairs(run)[n];
                            Value first = run.getIns()[i], second = run.getIns()[j];
                            SmallVector<int64_t> versions(run.getInVersions());
                            SmallVector<Attribute> types(run.getInTypes().begin(), run.getInTypes().end());
                            std::swap(versions[i], versions[j]);
                            std::swap(types[i], types[j]);
                            run.getInsMutable()[i].assign(second);
                            run.getInsMutable()[j].assign(first);
                            run.setInVersions(versions);
                            run.setInTypesAttr(b.getArrayAttr(types));
                          }),
            5u);
}

/// How often steps before this one wrote the buffer.
int64_t versionBefore(Operation *step, Value buffer) {
  int64_t version = 0;
  for (Operation *before : sched::steps(step->getParentOfType<ProgramOp>())) {
    if (before == step)
      break;
    if (auto run = dyn_cast<RunOp>(before))
      version += llvm::count(run.getOuts(), buffer);
    else
      version += cast<CopyOp>(before).getTo() == buffer;
  }
  return version;
}

/// Three other buffers of the device that have as many bytes and hold something.
SmallVector<Value> others(RunOp run, Value buffer) {
  SmallVector<Value> found;
  for (auto other : run->getParentOfType<ProgramOp>().getBody().getOps<BufferOp>())
    if (other.getBuffer() != buffer && other.onDevice() && other.getBytes() == slot(buffer).getBytes() &&
        (other.outlivesStep() || versionBefore(run, other.getBuffer()) > 0))
      found.push_back(other.getBuffer());
  found.truncate(std::min<size_t>(3, found.size()));
  return found;
}

TEST_P(CallMutation, NoOtherBufferIsRead) {
  auto candidates = [](RunOp run) {
    SmallVector<std::pair<unsigned, Value>> found;
    for (auto [i, in] : llvm::enumerate(run.getIns()))
      for (Value other : others(run, in))
        found.push_back({static_cast<unsigned>(i), other});
    return found;
  };
  EXPECT_GE(expectRefused([&](RunOp run) { return candidates(run).size(); },
                          [&](RunOp run, size_t n) {
                            auto [i, other] = candidates(run)[n];
                            SmallVector<int64_t> versions(run.getInVersions());
                            versions[i] = versionBefore(run, other);
                            run.getInsMutable()[i].assign(other);
                            run.setInVersions(versions);
                          }),
            10u);
}

/// Later steps name the versions that there are then.
void renumber(ProgramOp program) {
  llvm::DenseMap<Value, int64_t> writes;
  for (Operation *step : sched::steps(program)) {
    auto run = dyn_cast<RunOp>(step);
    if (!run) {
      auto copy = cast<CopyOp>(step);
      copy.setFromVersion(writes.lookup(copy.getFrom()));
      copy.setToVersion(++writes[copy.getTo()]);
      continue;
    }
    SmallVector<int64_t> ins, outs;
    for (Value in : run.getIns())
      ins.push_back(writes.lookup(in));
    for (Value out : run.getOuts())
      outs.push_back(++writes[out]);
    run.setInVersions(ins);
    run.setOutVersions(outs);
  }
}

TEST_P(CallMutation, NoInputIsWritten) {
  auto candidates = [](RunOp run) {
    SmallVector<std::pair<unsigned, unsigned>> found;
    for (auto [o, out] : llvm::enumerate(run.getOuts()))
      for (auto [i, in] : llvm::enumerate(run.getIns()))
        if (slot(in).getBytes() == slot(out).getBytes() && !llvm::is_contained(run.getOuts(), in))
          found.push_back({static_cast<unsigned>(o), static_cast<unsigned>(i)});
    return found;
  };
  EXPECT_GE(expectRefused([&](RunOp run) { return candidates(run).size(); },
                          [&](RunOp run, size_t n) {
                            auto [o, i] = candidates(run)[n];
                            run.getOutsMutable()[o].assign(run.getIns()[i]);
                            renumber(run->getParentOfType<ProgramOp>());
                          }),
            3u);
}

/// A program in which every step of the same kernel is still there in order, but for one.
TEST_P(CallMutation, NoRunIsDropped) {
  EXPECT_GE(expectRefused([](RunOp) { return 1; },
                          [&](RunOp run, size_t) {
                            auto program = run->getParentOfType<ProgramOp>();
                            run.erase();
                            renumber(program);
                          }),
            10u);
}

/// f32 as i32, and the layout of a tensor turned or dropped.
RankedTensorType changedType(RankedTensorType type, bool layout) {
  if (!layout)
    return RankedTensorType::get(type.getShape(), IntegerType::get(type.getContext(), 32), type.getEncoding());
  if (type.getEncoding())
    return RankedTensorType::get(type.getShape(), type.getElementType());
  SmallVector<int64_t> turned(type.getShape());
  std::reverse(turned.begin(), turned.end());
  return RankedTensorType::get(turned, type.getElementType());
}

TEST_P(CallMutation, TypesAndLayoutsAreTheOps) {
  struct Change {
    bool in, layout;
    unsigned index;
  };
  auto candidates = [](RunOp run) {
    SmallVector<Change> found;
    for (bool in : {true, false})
      for (unsigned i = 0; i < (in ? run.getIns().size() : run.getOuts().size()); ++i)
        for (bool layout : {true, false}) {
          RankedTensorType type = in ? run.inType(i) : run.outType(i);
          if (layout ? changedType(type, true) != type : type.getElementType().isF32())
            found.push_back({in, layout, i});
        }
    return found;
  };
  EXPECT_GE(expectRefused([&](RunOp run) { return candidates(run).size(); },
                          [&](RunOp run, size_t n) {
                            Change change = candidates(run)[n];
                            ArrayAttr old = change.in ? run.getInTypesAttr() : run.getOutTypesAttr();
                            SmallVector<Attribute> types(old.begin(), old.end());
                            auto type = cast<RankedTensorType>(cast<TypeAttr>(types[change.index]).getValue());
                            types[change.index] = TypeAttr::get(changedType(type, change.layout));
                            if (change.in)
                              run.setInTypesAttr(b.getArrayAttr(types));
                            else
                              run.setOutTypesAttr(b.getArrayAttr(types));
                          }),
            20u);
}

TEST_P(CallMutation, ScratchIsWhatKernelsAskFor) {
  EXPECT_GE(expectRefused([](RunOp run) { return run.getScratch() ? 3 : 0; },
                          [&](RunOp run, size_t n) {
                            BufferOp scratch = slot(run.getScratch());
                            const int64_t bytes = static_cast<int64_t>(scratch.getBytes());
                            if (n == 0)
                              run.getScratchMutable().clear();
                            else
                              scratch.setBytes(n == 1 ? bytes - 1 : (bytes + 1) / 2);
                          }),
            3u);
}

/// Copies bring back what they took away.
TEST_P(CallMutation, CopiesMoveWhatWasPlanned) {
  const std::vector<CopyOp> copies = all<CopyOp>(program());
  size_t total = 0;
  for (size_t i = 0; i < copies.size(); ++i)
    for (size_t j = 0; j < copies.size(); ++j) {
      CopyOp one = copies[i], other = copies[j];
      if (one.getFrom() == other.getFrom() || one.getStream() != other.getStream() ||
          slot(one.getFrom()).getBytes() != slot(other.getFrom()).getBytes())
        continue; // a parameter is fetched as it is for each op that reads it
      ++total;
      EXPECT_NE(verifyWith([&](ProgramOp p) {
                  std::vector<CopyOp> own = all<CopyOp>(p);
                  own[i].getFromMutable().assign(own[j].getFrom());
                  renumber(p);
                }),
                "")
          << "copy " << i << " takes what copy " << j << " does";
    }
  for (size_t i = 0; i < copies.size(); ++i, ++total)
    EXPECT_NE(verifyWith([&](ProgramOp p) {
                all<CopyOp>(p)[i].erase();
                renumber(p);
              }),
              "")
        << "without copy " << i;
  EXPECT_GE(total, 1u); // the next batch's
}

INSTANTIATE_TEST_SUITE_P(
    Models, CallMutation,
    testing::Values(Case{"resnet", "vdnn-all", ""}, Case{"vgg", "superneurons", "65%act"},
                    Case{"unet", "capuchin", "70%act"}, Case{"vgg", "vdnn-all,codec=zvc:pool=4KiB", ""},
                    Case{"resnet", "freelunch,buffers=2,hybrid=1", ""}, Case{"leaky", "hascoet", ""},
                    Case{"gpt", "mixed", "70%act"}, Case{"lstm", "mixed", "90%act"},
                    Case{"vgg", "vdnn-all", "", Space::Host, Space::Storage},
                    Case{"vgg", "keep", "", Space::Host, Space::Storage, 1, Space::Storage},
                    Case{"vgg", "keep", "", Space::Host, Space::Host, 1, Space::Host},
                    inHalves({"vgg", "keep", "", Space::Host, Space::Host, 1, Space::Host}),
                    Case{"vgg", "chen", "", Space::Host, Space::Device, 1, Space::Storage},
                    Case{"bottleneck", "mixed", "60%act", Space::Host, Space::Storage, 1, Space::Storage},
                    Case{"gpt", "vdnn-all", "", Space::Host, Space::Device, 2},
                    Case{"resnet", "mixed", "70%act", Space::Host, Space::Device, 1, Space::Device, 2},
                    Case{"vgg", "mixed", "70%act", Space::Host, Space::Device, 1, Space::Device, 2, CutAlong::Image},
                    withRows({"vgg", "mixed", "70%act"}, 8192)),
    nameOf);

} // namespace
