// SPDX-License-Identifier: Apache-2.0
// Convolutions whose engines do not fit the workspace for a whole batch.
#include "test/unit/runtime/ConvCases.h"

#include <cudnn_frontend.h>

namespace sluice {
namespace {

struct Passes {
  Numbers y, dx, dw, left; ///< left: dw in 16 bits
  int runs;                ///< of engines
};

/// All passes of a case under a limit.
Passes run(const ConvCase &c, DataType type, Precision precision, size_t limit) {
  setKernelPolicy(limit, precision);
  const Shape ys = outputOf(c);
  const Layout order = isHalf(type) ? Layout::NHWC : Layout::RowMajor;
  Harness h;
  const Tensor x = h.tensor(c.x, Layout::NHWC, randomNumbers(c.x.elements(), 1), type),
               w = h.tensor(c.w, order, randomNumbers(c.w.elements(), 2), type),
               dy = h.tensor(ys, Layout::NHWC, randomNumbers(ys.elements(), 3), type);
  const Tensor y = h.image(ys, type), dx = h.image(c.x, type), dw = h.tensor(c.w);
  auto conv = [&](ConvPass pass) {
    return Conv("conv", pass, c.x, c.w, ys, windowOf(c), ConvOptions().withGroups(c.groups).withType(type));
  };
  const Conv forward = conv(ConvPass::Forward), data = conv(ConvPass::BackwardData),
             weight = conv(ConvPass::BackwardWeight);
  const int before = cudnn_frontend::executions;
  forward.forward(h.session.compute, x, w, none, y, h.workspace(forward));
  data.backwardData(h.session.compute, dy, w, dx, h.workspace(data));
  weight.backwardWeight(h.session.compute, dy, x, dw, none, h.workspace(weight));
  const int runs = cudnn_frontend::executions - before;
  const Tensor left = h.image(c.w, type);
  if (isHalf(type))
    weight.backwardWeight(h.session.compute, dy, x, left, none, h.workspace(weight));
  setKernelPolicy(size_t(64) << 20, Precision::FP32);
  return {h.read(y), h.read(dx), h.read(dw), isHalf(type) ? h.read(left) : h.read(dw), runs};
}

/// The emulator's fast engines pad each image to 16 KiB, the best takes 64 KiB more; rotated weights take up to 10 KiB.
constexpr size_t enough = size_t(64) << 20, some = size_t(108) << 10, scarce = size_t(44) << 10,
                 nothing = size_t(12) << 10;
constexpr ConvCase stem = {"stem", {8, 3, 32, 32}, {16, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, 1, false};

TEST(ConvParts, CutsTheBatchWhereTensorCoresNeedIt) {
  for (auto [type, precision] : {std::pair{DataType::F32, Precision::TF32},
                                 {DataType::BF16, Precision::BF16},
                                 {DataType::F16, Precision::FP16}}) {
    const Passes whole = run(stem, type, precision, enough);
    EXPECT_EQ(whole.runs, 3);
    const Passes parts = run(stem, type, precision, scarce);
    EXPECT_EQ(parts.runs, 12);
    EXPECT_EQ(parts.y, whole.y);
    EXPECT_EQ(parts.dx, whole.dx);
    EXPECT_CLOSE(parts.dw, whole.dw, type == DataType::F32 ? 1e-6 : 4e-3);
    EXPECT_EQ(whole.left, whole.dw);
    EXPECT_CLOSE(parts.left, whole.left, type == DataType::F32 ? 1e-6 : 1e-2);
    EXPECT_EQ(run(stem, type, precision, nothing).runs, 3); // no image fits
  }
}

/// Kernels of both halves in one process, whatever precision is set, have engines of their own.
TEST(ConvEngines, AreNotSharedByHalvesOfTwoKinds) {
  const Passes one = run(stem, DataType::BF16, Precision::BF16, enough),
               other = run(stem, DataType::F16, Precision::BF16, enough);
  EXPECT_CLOSE(other.y, one.y, 1e-2);
  EXPECT_CLOSE(other.dx, one.dx, 1e-2);
}

TEST(ConvParts, CutsTheBatchForTheBestEngineWithoutTensorCores) {
  const Passes whole = run(stem, DataType::F32, Precision::FP32, enough),
               parts = run(stem, DataType::F32, Precision::FP32, some);
  EXPECT_EQ(whole.runs, 3);
  EXPECT_EQ(parts.runs, 12);
  EXPECT_EQ(parts.y, whole.y);
  EXPECT_CLOSE(parts.dw, whole.dw, 1e-6);
}

TEST(ConvParts, LeavesTheBatchWholeWhereTheBestEngineTakesTooMuchAnyway) {
  EXPECT_EQ(run(stem, DataType::F32, Precision::FP32, scarce).runs, 3);
  const ConvCase grouped = {"grouped", {8, 6, 32, 32}, {16, 3, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 2, false};
  EXPECT_EQ(run(grouped, DataType::F32, Precision::TF32, scarce).runs, 3);
}

} // namespace
} // namespace sluice
