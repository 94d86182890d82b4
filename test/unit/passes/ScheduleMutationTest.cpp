// SPDX-License-Identifier: Apache-2.0
// verify-schedule must notice every single thing that can go wrong in a placed program. Real models are planned,
// scheduled and placed by the real passes; then one wait is dropped, one lifetime shrunk, two dependent steps swapped
// or one buffer moved onto a live one, and each time verification must fail. What runs call is CallMutationTest's.
#include "test/unit/passes/ScheduledModel.h"

using namespace mlir;
using namespace sluice;
using sched::BufferOp;
using sched::CopyOp;
using sched::ProgramOp;
using sched::WaitOp;

namespace {

class ScheduleMutation : public ScheduledModel {};

TEST_P(ScheduleMutation, EveryWaitIsNeeded) {
  size_t count = all<WaitOp>(program()).size();
  EXPECT_GE(count, 2u); // the test would be empty otherwise
  for (size_t i = 0; i < count; ++i)
    EXPECT_NE(verifyWith([&](ProgramOp p) { all<WaitOp>(p)[i].erase(); }), "") << "without wait " << i;
}

TEST_P(ScheduleMutation, EveryLifetimeIsTight) {
  Builder b(&context);
  std::vector<BufferOp> buffers = all<BufferOp>(program());
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].getFirst())
      continue;
    IntegerAttr later = b.getI64IntegerAttr(*buffers[i].getFirst() + 1),
                earlier = b.getI64IntegerAttr(*buffers[i].getLast() - 1);
    std::string name = buffers[i].getName().str();
    EXPECT_NE(verifyWith([&](ProgramOp p) { all<BufferOp>(p)[i].setLastAttr(earlier); }), "") << name;
    EXPECT_NE(verifyWith([&](ProgramOp p) { all<BufferOp>(p)[i].setFirstAttr(later); }), "") << name;
  }
}

TEST_P(ScheduleMutation, DependentStepsKeepTheirOrder) {
  SmallVector<Operation *> steps = sched::steps(program());
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < steps.size(); ++i)
    for (size_t j = i + 1; j < steps.size(); ++j)
      if (depends(steps[i], steps[j]))
        pairs.push_back({i, j});
  EXPECT_GE(pairs.size(), steps.size() / 2);
  for (auto [i, j] : sample(pairs)) {
    auto swap = [&, i = i, j = j](ProgramOp p) {
      SmallVector<Operation *> own = sched::steps(p);
      OpBuilder builder(own[j]); // a placeholder, because the last step may have no successor
      auto placeholder = BufferOp::create(builder, own[j]->getLoc(), builder.getType<sched::BufferType>(), "x",
                                          sched::Space::Device, 1, {}, {}, {}, {}, {}, {}, {}, {}, {});
      own[j]->moveBefore(own[i]);
      own[i]->moveBefore(placeholder);
      placeholder.erase();
    };
    EXPECT_NE(verifyWith(swap), "") << "steps " << i + 1 << " and " << j + 1;
  }
}

TEST_P(ScheduleMutation, NoBufferMayMoveOntoAnother) {
  Builder b(&context);
  std::vector<BufferOp> buffers = all<BufferOp>(program());
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < buffers.size(); ++j)
      if (i != j && buffers[i].getSpace() == buffers[j].getSpace() &&
          buffers[i].getOffset() != buffers[j].getOffset() && liveTogether(buffers[i], buffers[j]))
        pairs.push_back({i, j});
  EXPECT_GE(pairs.size(), buffers.size());
  for (auto [i, j] : sample(pairs))
    EXPECT_NE(verifyWith([&, i = i, j = j](ProgramOp p) {
                std::vector<BufferOp> own = all<BufferOp>(p);
                own[i].setOffsetAttr(b.getI64IntegerAttr(*own[j].getOffset()));
              }),
              "")
        << buffers[i].getName().str() << " onto " << buffers[j].getName().str();
}

TEST_P(ScheduleMutation, ThePoolIsWhatCopiesSay) {
  if (!program().getPool())
    return;
  Builder b(&context);
  auto set = [&](int64_t pool, int64_t host) {
    return verifyWith([&](ProgramOp p) {
      p.setPoolAttr(b.getI64IntegerAttr(pool));
      SmallVector<int64_t> arenas(*p.getArenas());
      arenas[static_cast<size_t>(sched::Space::Host)] = host;
      p.setArenas(arenas);
    });
  };
  const int64_t pool = *program().getPool(), host = program().bytesOf(sched::Space::Host);
  EXPECT_EQ(set(pool - 1, host - 1), "");
  EXPECT_NE(set(pool, host - 256), "") << "a staging slot ends in the pool";
  EXPECT_NE(set(pool + 1, host + 1), "") << "more than was asked for";
}

TEST_P(ScheduleMutation, PackedCopiesAgreeAboutTheirForm) {
  Builder b(&context);
  std::vector<CopyOp> copies = all<CopyOp>(program());
  for (size_t i = 0; i < copies.size(); ++i) {
    if (!copies[i].getCodec())
      continue;
    const bool toHost = copies[i].getFrom().getDefiningOp<BufferOp>().onDevice();
    for (int64_t more : {-8, 8, 64})
      EXPECT_NE(verifyWith([&](ProgramOp p) {
                  CopyOp copy = all<CopyOp>(p)[i];
                  auto slot = (toHost ? copy.getTo() : copy.getFrom()).getDefiningOp<BufferOp>();
                  slot.setBytes(slot.getBytes() + more);
                }),
                "")
          << "slot of " << copies[i].getTo().getDefiningOp<BufferOp>().getName().str() << " with " << more;
    for (const char *other : {"fp16", "zfp:16", "int8"})
      if (copies[i].getCodec() != other) {
        EXPECT_NE(verifyWith([&](ProgramOp p) { all<CopyOp>(p)[i].setCodecAttr(b.getStringAttr(other)); }), "")
            << copies[i].getCodec()->str() << " as " << other;
      }
    EXPECT_NE(verifyWith([&](ProgramOp p) { all<CopyOp>(p)[i].removeCodecAttr(); }), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ScheduleMutation,
    testing::Values(
        Case{"resnet", "vdnn-all", ""}, Case{"vgg", "superneurons", "65%act"}, Case{"resnet", "chen", "90%act"},
        Case{"densenet", "vdnn-conv", ""}, Case{"densenet", "superneurons", "65%act"}, Case{"unet", "vdnn-all", ""},
        Case{"unet", "capuchin", "70%act"}, Case{"vgg", "gist", ""}, Case{"vgg", "vdnn-all,codec=zvc:pool=4KiB", ""},
        Case{"vgg", "vdnn-all,codec=zfp,rate=6", ""}, Case{"resnet", "vdnn-all,codec=fp16", ""},
        Case{"resnet", "vdnn-all,codec=int8", ""}, Case{"resnet", "freelunch,buffers=2,hybrid=1", ""},
        Case{"leaky", "hascoet", ""}, Case{"slabs", "vdnn-all", ""}, Case{"vgg", "vdnn-all", "", Space::Storage},
        Case{"mlp", "keep", "", Space::Host, Space::Storage}, Case{"vgg", "vdnn-all", "", Space::Host, Space::Storage},
        Case{"vgg", "keep", "", Space::Host, Space::Storage, 1, Space::Storage},
        Case{"vgg", "chen", "", Space::Host, Space::Device, 1, Space::Storage},
        Case{"bottleneck", "mixed", "60%act", Space::Host, Space::Storage, 1, Space::Storage},
        Case{"vgg", "vdnn-all", "", Space::Host, Space::Host},
        Case{"vgg", "keep", "", Space::Host, Space::Host, 1, Space::Host},
        inHalves({"vgg", "keep", "", Space::Host, Space::Host, 1, Space::Host}),
        Case{"vgg", "mixed", "70%act", Space::Host, Space::Host, 1, Space::Host},
        Case{"densenet", "superneurons", "65%act", Space::Storage},
        Case{"gpt", "vdnn-all", "", Space::Host, Space::Device, 2},
        Case{"resnet", "mixed", "70%act", Space::Host, Space::Device, 1, Space::Device, 2},
        Case{"vgg", "mixed", "70%act", Space::Host, Space::Device, 1, Space::Device, 2, CutAlong::Image},
        withRows({"vgg", "mixed", "70%act"}, 8192)),
    nameOf);

} // namespace
