// SPDX-License-Identifier: Apache-2.0
// A cross-entropy with its gradient, as join-losses leaves them: the bits of two kernels, also where the gradient takes
// the bytes of the logits.
#include "runtime/Errors.h"
#include "runtime/LossAndGradient.h"

#include "test/unit/cuda/Halves.h"

namespace sluice {
namespace {

enum class Way { Two, One, InPlace };

/// The gradient, and the loss behind it.
Numbers run(const Shape &shape, DataType type, const std::vector<int64_t> &target, int64_t ignored, int64_t classes,
            Way way) {
  Harness h;
  h.session.state.labelSmoothing = 0.1f;
  h.session.state.mixShare = 0.75f;
  h.session.state.mixBatch = 3;
  const Tensor x = h.tensor(shape, Layout::RowMajor, randomHalves(shape.elements(), 1), type),
               wanted = h.classes(target), value = h.tensor({}),
               dx = way == Way::InPlace ? x : h.tensor(shape, Layout::RowMajor, type);
  if (way == Way::Two) {
    const Loss loss("loss", LossKind::SoftmaxCrossEntropy, shape, ignored, classes);
    loss.forward(h.session.compute, x, wanted, value, h.workspace(loss));
    loss.backward(h.session.compute, x, wanted, dx, h.workspace(loss));
  } else {
    const LossAndGradient loss("loss", shape, ignored, classes);
    loss.run(h.session.compute, x, wanted, dx, value, h.workspace(loss));
  }
  Numbers found = h.read(dx);
  found.push_back(h.read(value)[0]);
  return found;
}

/// Samples of one thread, of a warp, of a block that reads one by one and of one that reads eight at once; as many as
/// there are parts of the sum, and more.
TEST(HALF(LossAndGradient), HasTheBitsOfTwoKernels) {
  for (const Shape &shape : {Shape{12, 5, 2, 3}, Shape{600, 70}, Shape{12, 5003}, Shape{3, 4104}})
    for (const int64_t ignored : {Loss::none, int64_t(-100)})
      for (const int64_t classes : {int64_t(0), shape[1] - 2}) {
        std::vector<int64_t> target;
        for (int64_t s = 0; s < shape.elements() / shape[1]; ++s)
          target.push_back(ignored != Loss::none && s % 5 < 2 ? ignored : s * 7 % (shape[1] - 2));
        for (const DataType type : {half, full}) {
          const Numbers want = run(shape, type, target, ignored, classes, Way::Two);
          EXPECT_EQ(run(shape, type, target, ignored, classes, Way::One), want);
          EXPECT_EQ(run(shape, type, target, ignored, classes, Way::InPlace), want);
        }
      }
}

TEST(HALF(LossAndGradient), NotesClassesThatAreNone) {
  Harness h;
  const LossAndGradient loss("/net/loss", {2, 3});
  const Tensor x = h.tensor({2, 3}, Layout::RowMajor, randomHalves(6, 1), half),
               dx = h.tensor({2, 3}, Layout::RowMajor, half), value = h.tensor({});
  EXPECT_THROW(
      {
        loss.run(h.session.compute, x, h.classes({1, 3}), dx, value, h.workspace(loss));
        h.session.synchronize();
      },
      DataError);
}

} // namespace
} // namespace sluice
