// SPDX-License-Identifier: Apache-2.0
// Which engines the installed cuDNN would choose on an H200, asked without a GPU: h200.json describes one as cuDNN
// writes it, by NVIDIA's published numbers.
#include "runtime/cuda/ConvEngine.h"
#include "runtime/kernels/Windows.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace sluice {
namespace {

constexpr int64_t limit = int64_t{64} << 20;

struct Case {
  const char *name;
  int64_t n, c, h, o, k, stride, pad, groups;
};

std::ostream &operator<<(std::ostream &out, const Case &c) { return out << c.name; }

/// Of ResNet-50, VGG-16, DenseNet-121, MobileNet-v2, a ResNeXt, and odd ones.
constexpr Case cases[] = {{"resnet_stem", 256, 3, 224, 64, 7, 2, 3, 1},
                          {"resnet_expand", 256, 64, 56, 256, 1, 1, 0, 1},
                          {"resnet_3x3", 256, 128, 28, 128, 3, 1, 1, 1},
                          {"resnet_stride", 256, 128, 56, 128, 3, 2, 1, 1},
                          {"resnet_downsample", 256, 256, 56, 512, 1, 2, 0, 1},
                          {"vgg_first", 64, 3, 224, 64, 3, 1, 1, 1},
                          {"vgg_3x3", 64, 64, 224, 64, 3, 1, 1, 1},
                          {"dense_growth", 64, 128, 56, 32, 3, 1, 1, 1},
                          {"dense_bottleneck", 64, 224, 28, 128, 1, 1, 0, 1},
                          {"mobile_depthwise", 64, 96, 112, 96, 3, 2, 1, 96},
                          {"mobile_project", 64, 96, 56, 24, 1, 1, 0, 1},
                          {"resnext", 64, 256, 28, 256, 3, 1, 1, 32},
                          {"odd_channels", 7, 13, 31, 21, 3, 1, 1, 1},
                          {"one_image", 1, 64, 56, 64, 3, 1, 1, 1}};

class Engines : public testing::Test {
protected:
  void SetUp() override {
    std::ifstream file("test/unit/cuda/h200.json");
    std::stringstream text;
    text << file.rdbuf();
    device = text.str();
    ASSERT_FALSE(device.empty());
  }

  std::unique_ptr<ConvEngine> choose(const Case &c, ConvPass pass, Precision precision, int64_t bytes,
                                     Epilogue epilogue = Epilogue::None) {
    const int64_t out = (c.h + 2 * c.pad - c.k) / c.stride + 1;
    const DataType type = precision == Precision::BF16   ? DataType::BF16
                          : precision == Precision::FP16 ? DataType::F16
                                                         : DataType::F32;
    const ConvGeometry geometry = {pass,
                                   {c.n, c.c, c.h, c.h},
                                   {c.o, c.c / c.groups, c.k, c.k},
                                   {c.n, c.o, out, out},
                                   {{c.k, c.k}, {c.stride, c.stride}, {c.pad, c.pad, c.pad, c.pad}, {1, 1}},
                                   c.groups,
                                   type};
    return ConvEngine::choose({geometry, bytes, precision, epilogue}, reason, device);
  }

  std::string device, reason;
};

class ConvEngines : public Engines, public testing::WithParamInterface<Case> {
protected:
  std::unique_ptr<ConvEngine> choose(ConvPass pass, Precision precision, int64_t bytes) {
    return Engines::choose(GetParam(), pass, precision, bytes);
  }
};

TEST_P(ConvEngines, AreFoundWithinTheWorkspaceTheSameOnesEveryTime) {
  for (Precision precision : {Precision::FP32, Precision::TF32, Precision::BF16, Precision::FP16})
    for (ConvPass pass : {ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardWeight}) {
      SCOPED_TRACE("precision " + std::to_string(static_cast<int>(precision)) + ", pass " +
                   std::to_string(static_cast<int>(pass)));
      const auto engine = choose(pass, precision, limit);
      ASSERT_TRUE(engine) << reason;
      EXPECT_LE(engine->workspaceBytes(), limit);
      EXPECT_EQ(GetParam().n % engine->parts(), 0);
      const auto again = choose(pass, precision, limit);
      ASSERT_TRUE(again);
      EXPECT_EQ(again->name(), engine->name());
      EXPECT_EQ(again->parts(), engine->parts());
    }
}

TEST_P(ConvEngines, NeedNoPartsWhereTheWorkspaceIsLarge) {
  for (ConvPass pass : {ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardWeight}) {
    const auto engine = choose(pass, Precision::BF16, int64_t{16} << 30);
    ASSERT_TRUE(engine) << reason;
    EXPECT_EQ(engine->parts(), 1);
  }
}

/// Why assign-precision gives images of three channels eight: the engines of these copy them so, in several parts.
TEST_F(Engines, TakeImagesOfEightChannelsAsTheyAre) {
  const Case stem{"", 256, 8, 224, 64, 7, 2, 3, 1};
  for (ConvPass pass : {ConvPass::Forward, ConvPass::BackwardWeight}) {
    const auto engine = choose(stem, pass, Precision::BF16, limit);
    ASSERT_TRUE(engine) << reason;
    EXPECT_EQ(engine->parts(), 1);
    EXPECT_LT(engine->workspaceBytes(), limit / 8);
  }
}

/// Of ResNet-50's convolutions of one tap, of which fuse-epilogues makes such ops; each compiles a kernel. A driver, or
/// what stands in for one (driver_stub.cpp), is needed.
constexpr Case withEpilogues[] = {{"expand_56", 256, 64, 56, 256, 1, 1, 0, 1},
                                  {"reduce_56", 256, 256, 56, 64, 1, 1, 0, 1},
                                  {"strided_28", 256, 256, 56, 512, 1, 2, 0, 1},
                                  {"reduce_14", 256, 1024, 14, 256, 1, 1, 0, 1},
                                  {"expand_7", 256, 512, 7, 2048, 1, 1, 0, 1}};

class Epilogues : public Engines, public testing::WithParamInterface<Case> {};

TEST_P(Epilogues, HaveDeterministicEnginesWithinTheWorkspace) {
  const Case &c = GetParam();
  auto expect = [&](ConvPass pass, Epilogue epilogue) {
    for (Precision precision : {Precision::BF16, Precision::FP16}) {
      const auto engine = choose(c, pass, precision, limit, epilogue);
      ASSERT_TRUE(engine) << reason;
      EXPECT_LE(engine->workspaceBytes(), limit);
      EXPECT_GT(engine->workspaceBytes(), 0) << "partial sums have no place"; // they would be added by atomics
      EXPECT_EQ(engine->parts(), 1);
    }
  };
  expect(ConvPass::Forward, Epilogue::Statistics);
  if (c.stride == 1) {
    expect(ConvPass::BackwardData, Epilogue::Gradient);
    expect(ConvPass::BackwardData, Epilogue::GradientOfSum);
  }
}

INSTANTIATE_TEST_SUITE_P(H200, Epilogues, testing::ValuesIn(withEpilogues),
                         [](const auto &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(H200, ConvEngines, testing::ValuesIn(cases), [](const auto &info) { return info.param.name; });

} // namespace
} // namespace sluice
