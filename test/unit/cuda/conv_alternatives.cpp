// SPDX-License-Identifier: Apache-2.0
// Every engine that may run instead of the chosen one computes the same convolution: a profile may name any of them,
// and which one is chosen depends on the device and on cuDNN's version.
#include "runtime/cuda/ConvEngine.h"
#include "runtime/cuda/Launch.h"
#include "test/unit/runtime/ConvCases.h"

namespace sluice {
namespace {

constexpr size_t most = 16; ///< rankings are long, and slow at their ends

struct Alternative {
  ConvCase shapes;
  ConvPass pass;
  DataType type;
};

std::vector<Alternative> allAlternatives() {
  std::vector<Alternative> all;
  for (const ConvCase &c : convCases())
    for (ConvPass pass : {ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardWeight})
      for (DataType type : {DataType::F32, DataType::BF16, DataType::F16})
        all.push_back({c, pass, type});
  return all;
}

std::string nameOf(const testing::TestParamInfo<Alternative> &info) {
  static const char *const passes[] = {"forward", "data", "weight"};
  const DataType type = info.param.type;
  return std::string(info.param.shapes.name) + "_" + passes[static_cast<int>(info.param.pass)] +
         (type == DataType::F32    ? "_f32"
          : type == DataType::BF16 ? "_bf16"
                                   : "_f16");
}

class ConvAlternatives : public testing::TestWithParam<Alternative> {
protected:
  /// Values that halves hold exactly, so that all types see the same.
  static Numbers values(const Shape &shape, unsigned seed) {
    Numbers list = randomNumbers(shape.elements(), seed);
    for (double &v : list)
      v = static_cast<double>(widened(bfloat16Of(static_cast<float>(v))));
    return list;
  }
};

TEST_P(ConvAlternatives, ComputeTheSame) {
  const ConvCase &c = GetParam().shapes;
  const ConvPass pass = GetParam().pass;
  const DataType type = GetParam().type;
  const Shape ys = outputOf(c), &first = pass == ConvPass::Forward ? c.x : ys,
              &second = pass == ConvPass::BackwardWeight ? c.x : c.w,
              &made = pass == ConvPass::Forward        ? ys
                      : pass == ConvPass::BackwardData ? c.x
                                                       : c.w;
  const Numbers a = values(first, 1), b = values(second, 2);
  Numbers want(static_cast<size_t>(made.elements()));
  forProducts(c, [&](size_t iy, size_t ix, size_t iw) {
    if (pass == ConvPass::Forward)
      want[iy] += a[ix] * b[iw];
    else if (pass == ConvPass::BackwardData)
      want[ix] += a[iy] * b[iw];
    else
      want[iw] += a[iy] * b[ix];
  });
  const Precision precision = type == DataType::F32    ? Precision::FP32
                              : type == DataType::BF16 ? Precision::BF16
                                                       : Precision::FP16;
  const ConvTask task{{pass, c.x, c.w, ys, windowOf(c), c.groups, type}, int64_t(16) << 20, precision};
  std::string reason;
  const std::unique_ptr<ConvEngine> own = ConvEngine::choose(task, reason);
  if (!own || own->parts() > 1)
    return; // a direct kernel's, or parts that add up
  Harness h;
  const Tensor ta = h.tensor(first, Layout::NHWC, a, type), tb = h.tensor(second, Layout::NHWC, b, type),
               result = h.image(made, type), space = h.tensor({task.bytes}, Layout::RowMajor, DataType::U8);
  Stream &stream = h.session.compute;
  for (const std::unique_ptr<ConvEngine> &engine : own->alternatives(most)) {
    h.write(result, Numbers(want.size(), 77.0));
    const void *pa = stream.address(ta), *pb = stream.address(tb);
    void *to = stream.address(result), *workspace = stream.address(space);
    stream.launch("conv", "conv", [&] { engine->run(native(stream), 0, pa, pb, to, workspace); });
    EXPECT_LE(relativeError(h.read(result), want), type == DataType::F32    ? 1e-5
                                                   : type == DataType::BF16 ? 8e-3
                                                                            : 1e-3)
        << engine->name() << " of " << task.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvAlternatives, testing::ValuesIn(allAlternatives()), nameOf);

} // namespace
} // namespace sluice
