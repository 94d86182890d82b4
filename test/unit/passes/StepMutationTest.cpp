// SPDX-License-Identifier: Apache-2.0
// What ScheduleMutationTest does to waits, lifetimes and places, done to single steps, events and sizes: contents that
// are another version's, steps that are left out, steps and events of another stream, waits that come too late and
// records too early, copies back that come before their bytes are free, ranges that are shifted. Each change is wrong
// by construction, for the reason that stands at it.
#include "test/unit/passes/ScheduledModel.h"

#include "mlir/IR/Verifier.h"
#include "gmock/gmock.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::CopyOp;
using sched::ProgramOp;
using sched::RecordOp;
using sched::RunOp;
using sched::Stream;
using sched::WaitOp;

namespace {

class StepMutation : public ScheduledModel {
protected:
  /// Applies `change` to every op of a kind for which it says true, and expects each of them to be refused.
  template <typename Op, typename Change> void expectRefused(const char *what, Change change) {
    size_t tried = 0;
    const size_t count = all<Op>(program()).size();
    for (size_t i = 0; i < count; ++i) {
      bool changed = false, isRefusedAlone = false;
      const std::string message = verifyWith([&](ProgramOp p) {
        Op op = all<Op>(p)[i];
        changed = change(op);
        ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
        if constexpr (std::is_same_v<Op, RunOp>) // on a stream of copies, where it may be in order still
          isRefusedAlone = changed && failed(mlir::verify(op));
      });
      if (!changed)
        continue;
      ++tried;
      EXPECT_TRUE(isRefusedAlone || !message.empty()) << what << " of " << Op::getOperationName().str() << " " << i;
    }
    total += tried;
    RecordProperty(std::string(what), static_cast<int>(tried += triedOf[what]));
    triedOf[what] = tried;
  }

  static DenseI64ArrayAttr plus(DenseI64ArrayAttr versions, size_t i, int64_t more) {
    SmallVector<int64_t> list(versions.asArrayRef());
    list[i] += more;
    return DenseI64ArrayAttr::get(versions.getContext(), list);
  }

  /// The next or the step before of the stream, waits and records left out; null at the end.
  static Operation *neighbour(Operation *op, Stream stream, bool forward) {
    const auto streamOf = [](Operation *step) -> std::optional<Stream> {
      if (auto run = dyn_cast<RunOp>(step))
        return run.getStream();
      if (auto copy = dyn_cast<CopyOp>(step))
        return copy.getStream();
      return std::nullopt;
    };
    for (op = forward ? op->getNextNode() : op->getPrevNode(); op && streamOf(op) != stream;)
      op = forward ? op->getNextNode() : op->getPrevNode();
    return op;
  }

  static Stream other(Stream stream) { return stream == Stream::Compute ? Stream::Codec : Stream::Compute; }

  size_t total = 0;
  std::map<std::string, size_t> triedOf;
};

/// Each read sees one write, and each write is one more than that before.
TEST_P(StepMutation, VersionsAreThoseThatStepsSee) {
  for (int64_t more : {-1, 1}) {
    size_t operands = 0;
    for (RunOp run : all<RunOp>(program()))
      operands = std::max<size_t>({operands, run.getInVersions().size(), run.getOutVersions().size()});
    for (size_t k = 0; k < operands; ++k) {
      expectRefused<RunOp>("version that is read", [&](RunOp run) {
        if (k >= run.getInVersions().size())
          return false;
        run.setInVersionsAttr(plus(run.getInVersionsAttr(), k, more));
        return true;
      });
      expectRefused<RunOp>("version that is written", [&](RunOp run) {
        if (k >= run.getOutVersions().size())
          return false;
        run.setOutVersionsAttr(plus(run.getOutVersionsAttr(), k, more));
        return true;
      });
    }
    expectRefused<CopyOp>("version that is copied", [&](CopyOp copy) {
      copy.setFromVersion(copy.getFromVersion() + static_cast<uint64_t>(more));
      return true;
    });
    expectRefused<CopyOp>("version that a copy leaves", [&](CopyOp copy) {
      copy.setToVersion(copy.getToVersion() + static_cast<uint64_t>(more));
      return true;
    });
  }
  EXPECT_GE(total, 50u);
}

/// What nobody writes is missed by who reads it; CallMutationTest leaves runs out.
TEST_P(StepMutation, CopiesMayNotBeLeftOut) {
  expectRefused<CopyOp>("lack", [](CopyOp copy) {
    copy.erase();
    return true;
  });
}

/// Done twice, an update is another one.
TEST_P(StepMutation, StepsMayNotBeRepeated) {
  const auto repeat = [](Operation *step) {
    step->getBlock()->getOperations().insertAfter(step->getIterator(), step->clone());
    return true;
  };
  expectRefused<CopyOp>("repetition", repeat);
  expectRefused<RunOp>("repetition", repeat);
  EXPECT_GE(total, 10u);
}

/// A stream's steps are ordered by nothing with those of another; a direction has its stream.
TEST_P(StepMutation, StepsStayOnTheirStream) {
  expectRefused<CopyOp>("stream", [](CopyOp copy) {
    copy.setStream(copy.getStream() == Stream::ToHost ? Stream::ToDevice : Stream::ToHost);
    return true;
  });
  for (Stream stream : {Stream::ToHost, Stream::ToDevice, Stream::Storage})
    expectRefused<RunOp>("stream", [&](RunOp run) {
      const bool changes = run.getStream() != stream; // codecs may be there already
      run.setStream(stream);
      return changes;
    });
  // An event of another stream, or a wait of another one, orders others than the schedule needs ordered: every wait of
  // it is needed (ScheduleMutationTest), and this drops it.
  expectRefused<WaitOp>("stream of wait", [&](WaitOp wait) {
    const Stream own = wait.getStream();
    wait.setStream(own == Stream::ToHost ? Stream::ToDevice : own == Stream::ToDevice ? Stream::ToHost : other(own));
    return wait.getEvent().getDefiningOp<RecordOp>().getStream() != wait.getStream();
  });
  EXPECT_GE(total, 10u);
}

/// The scheduler puts a wait right before the step that needs it.
TEST_P(StepMutation, WaitsMayNotComeLater) {
  expectRefused<WaitOp>("wait after its step", [](WaitOp wait) {
    Operation *next = neighbour(wait, wait.getStream(), true);
    if (!next)
      return false;
    wait->moveAfter(next);
    return true;
  });
}

/// An event stands right after the step that it is recorded for.
TEST_P(StepMutation, RecordsMayNotComeEarlier) {
  expectRefused<RecordOp>("record before its step", [](RecordOp record) {
    Operation *before = neighbour(record, record.getStream(), false);
    if (!before || record.getEvent().use_empty())
      return false;
    record->moveBefore(before);
    return true;
  });
}

/// A copy back is issued no earlier than its bytes are free and its host bytes written: before the copy out that writes
/// them, with its lifetime as long as that asks for, it brings the content of the step before.
TEST_P(StepMutation, CopiesBackMayNotComeBeforeTheCopyOut) {
  expectRefused<CopyOp>("early return", [&](CopyOp back) {
    for (CopyOp out : all<CopyOp>(back->getParentOfType<ProgramOp>())) {
      if (out.getTo() != back.getFrom())
        continue;
      back->moveBefore(out);
      return true;
    }
    return false;
  });
}

/// Copies reach the arena that the plan names, though another has room for what they bring.
TEST_P(StepMutation, WhatIsOffloadedStaysInItsArena) {
  size_t moved = 0;
  std::vector<BufferOp> buffers = all<BufferOp>(program());
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].onDevice() || buffers[i].outlivesStep() || buffers[i].getSpace() == sched::Space::Spill)
      continue;
    ++moved;
    EXPECT_THAT(verifyWith([&](ProgramOp p) {
                  BufferOp buffer = all<BufferOp>(p)[i];
                  const bool stored = buffer.getSpace() == sched::Space::Storage;
                  buffer.setSpace(stored ? sched::Space::Host : sched::Space::Storage);
                  SmallVector<int64_t> arenas(*p.getArenas());
                  int64_t &size = arenas[static_cast<size_t>(buffer.getSpace())];
                  buffer.setOffset(static_cast<uint64_t>(size));
                  size += static_cast<int64_t>(buffer.getBytes() + 255) / 256 * 256;
                  p.setArenas(arenas);
                }),
                testing::HasSubstr("V8"))
        << buffers[i].getName().str();
  }
  const auto putsAway = [](CopyOp copy) { // what is at home elsewhere is copied there, too
    return copy.getFrom().getDefiningOp<BufferOp>().onDevice() &&
           !copy.getTo().getDefiningOp<BufferOp>().outlivesStep();
  };
  if (llvm::any_of(all<CopyOp>(program()), putsAway)) {
    EXPECT_GE(moved, 1u);
  }
}

/// A buffer is as large as what it holds, and begins where no other has begun or ended yet.
TEST_P(StepMutation, RangesMayNotShift) {
  Builder b(&context);
  expectRefused<BufferOp>("size", [&](BufferOp buffer) {
    // Packed forms are as large as the copies' own constraint says.
    const bool packs = llvm::any_of(buffer->getUsers(), [](Operation *user) {
      auto copy = dyn_cast<CopyOp>(user);
      return copy && copy.getCodec();
    });
    if (packs || buffer->use_empty() || buffer.getBytes() < 8)
      return false;
    buffer.setBytes(buffer.getBytes() / 2);
    return true;
  });
  for (int64_t shift : {-256, 256})
    expectRefused<BufferOp>("shift", [&](BufferOp buffer) {
      const auto begin = static_cast<int64_t>(*buffer.getOffset()) + shift,
                 end = begin + static_cast<int64_t>(buffer.getBytes());
      bool meets = begin < 0;
      for (BufferOp each : all<BufferOp>(buffer->getParentOfType<ProgramOp>())) {
        const auto from = static_cast<int64_t>(*each.getOffset()), to = from + static_cast<int64_t>(each.getBytes());
        meets |= each != buffer && each.getSpace() == buffer.getSpace() && liveTogether(each, buffer) && begin < to &&
                 from < end;
      }
      buffer.setOffsetAttr(b.getI64IntegerAttr(begin));
      return meets;
    });
  EXPECT_GE(total, 10u);
}

INSTANTIATE_TEST_SUITE_P(
    Models, StepMutation,
    testing::Values(Case{"resnet", "vdnn-all", ""}, Case{"vgg", "superneurons", "65%act"},
                    Case{"densenet", "superneurons", "65%act"}, Case{"unet", "capuchin", "70%act"},
                    Case{"resnet", "freelunch,buffers=2,hybrid=1", ""}, Case{"leaky", "hascoet", ""},
                    Case{"vgg", "gist", ""}, Case{"leaky", "greedy,every=1,min-copy=1", "30%act"},
                    Case{"slabs", "vdnn-all", ""}, Case{"vgg", "vdnn-all", "", Space::Storage},
                    Case{"mlp", "keep", "", Space::Host, Space::Storage},
                    Case{"vgg", "vdnn-all", "", Space::Host, Space::Storage},
                    Case{"vgg", "keep", "", Space::Host, Space::Storage, 1, Space::Storage},
                    Case{"vgg", "keep", "", Space::Host, Space::Host, 1, Space::Host},
                    inHalves({"vgg", "keep", "", Space::Host, Space::Host, 1, Space::Host}),
                    Case{"vgg", "chen", "", Space::Host, Space::Device, 1, Space::Storage},
                    Case{"bottleneck", "mixed", "60%act", Space::Host, Space::Storage, 1, Space::Storage},
                    Case{"vgg", "vdnn-all", "", Space::Host, Space::Host},
                    Case{"densenet", "superneurons", "65%act", Space::Storage},
                    Case{"gpt", "vdnn-all", "", Space::Host, Space::Device, 2},
                    Case{"resnet", "mixed", "70%act", Space::Host, Space::Device, 1, Space::Device, 2},
                    withRows({"vgg", "mixed", "70%act"}, 8192)),
    nameOf);

} // namespace
