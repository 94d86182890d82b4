// SPDX-License-Identifier: Apache-2.0
// Convolutions of common networks on images, from the few large channels at their end to the many pixels at their
// beginning, and of small ones. What is measured late is what a slow machine has no time for.
#include "tools/CalibrationBench.h"

using namespace sluice;

namespace {

/// A convolution to measure; x is [batch,in,extent,extent].
struct Layer {
  int64_t in, out, extent, kernel, stride, batch, groups = 1; ///< extent: of the input
};

void measurePass(Bench &bench, const Layer &l, ConvPass pass) {
  const int64_t pad = l.kernel / 2, side = (l.extent + 2 * pad - l.kernel) / l.stride + 1;
  const Shape x{l.batch, l.in, l.extent, l.extent}, w{l.out, l.in / l.groups, l.kernel, l.kernel},
      y{l.batch, l.out, side, side};
  const auto conv = std::make_shared<Conv>("calibrate", pass, x, w, y,
                                           Window{{l.kernel, l.kernel}, {l.stride, l.stride}, {pad, pad, pad, pad}},
                                           ConvOptions().withGroups(l.groups).withType(bench.type));
  buildPrimitives();
  const size_t width = byteWidth(bench.type), bytes = width * static_cast<size_t>(x.elements() + y.elements()) +
                                                      4 * static_cast<size_t>(w.elements()) + conv->workspaceBytes();
  const DataType ofWeights = pass == ConvPass::BackwardWeight ? DataType::F32 : bench.type;
  const auto run = [&bench, conv, pass, x, y, w, ofWeights](Stream &stream) {
    const Tensor tx = bench.placeOwn(x, Layout::NHWC), ty = bench.placeOwn(y, Layout::NHWC),
                 tw = bench.place(w, Layout::RowMajor, ofWeights);
    const Tensor space = bench.space(conv->workspaceBytes());
    if (pass == ConvPass::Forward)
      conv->forward(stream, tx, tw, none, ty, space);
    else if (pass == ConvPass::BackwardData)
      conv->backwardData(stream, ty, tw, tx, space);
    else
      conv->backwardWeight(stream, ty, tx, tw, none, space);
  };
  static const char *const passes[] = {"forward", "backward_data", "backward_weight"};
  const double extent = double(side), pixels = double(l.batch * side * side), area = double(l.kernel * l.kernel),
               stride = double(l.stride);
  const bool depthwise = l.groups == l.in;
  bench.sample((depthwise      ? "depthwise_"
                : l.groups > 1 ? "grouped_"
                               : "conv_") +
                   std::string(passes[static_cast<int>(pass)]),
               depthwise
                   ? planner::depthwiseSize(double(l.groups), extent, pixels, area, stride)
                   : planner::convSize(double(l.in / l.groups), double(l.out / l.groups), extent, pixels, area, stride),
               2.0 * static_cast<double>(y.elements() * w.elements() / l.out), bytes, run);
}

// In, out, extent, kernel, stride, batch
const Layer layers[] = {{3, 64, 224, 7, 2, 2},
                        {3, 64, 224, 3, 1, 1},
                        {1024, 1000, 1, 1, 1, 16},
                        {64, 64, 112, 3, 1, 2},
                        {64, 128, 112, 3, 1, 1},
                        {128, 128, 56, 3, 1, 2},
                        {64, 64, 56, 1, 1, 8},
                        {64, 256, 56, 1, 1, 4},
                        {256, 64, 56, 1, 1, 4},
                        {64, 64, 56, 3, 1, 4},
                        {256, 128, 56, 1, 1, 4},
                        {128, 128, 56, 3, 2, 4},
                        {128, 512, 28, 1, 1, 8},
                        {512, 128, 28, 1, 1, 8},
                        {128, 128, 28, 3, 1, 8},
                        {256, 512, 56, 1, 2, 4},
                        {256, 256, 28, 3, 1, 2},
                        {256, 1024, 14, 1, 1, 16},
                        {1024, 256, 14, 1, 1, 16},
                        {256, 256, 14, 3, 1, 16},
                        {512, 2048, 7, 1, 1, 16},
                        {2048, 512, 7, 1, 1, 16},
                        {512, 512, 7, 3, 1, 16},
                        {512, 512, 14, 3, 1, 4},
                        {128, 32, 56, 3, 1, 8},
                        {128, 32, 28, 3, 1, 16},
                        {128, 32, 14, 3, 1, 16},
                        {128, 32, 7, 3, 1, 16},
                        {512, 128, 14, 1, 1, 16},
                        {768, 128, 7, 1, 1, 16},
                        {256, 128, 28, 1, 1, 16},
                        {1, 16, 8, 3, 1, 64},
                        {16, 16, 8, 3, 1, 64},
                        {16, 32, 8, 3, 2, 64},
                        {16, 32, 8, 1, 2, 64},
                        {32, 32, 4, 3, 1, 64},
                        {32, 64, 4, 3, 2, 64},
                        {64, 64, 2, 3, 1, 64},
                        {16, 96, 56, 1, 1, 8},
                        {96, 24, 56, 1, 1, 8},
                        {32, 192, 28, 1, 1, 16},
                        {192, 32, 28, 1, 1, 16},
                        {96, 96, 56, 3, 1, 4, 96},
                        {144, 144, 56, 3, 2, 4, 144},
                        {384, 384, 14, 3, 1, 16, 384},
                        {960, 960, 7, 3, 1, 16, 960},
                        {128, 128, 56, 3, 1, 4, 32},
                        {256, 256, 14, 3, 1, 8, 32},
                        {104, 104, 56, 3, 2, 8, 13},
                        {208, 208, 28, 3, 2, 8, 26},
                        {208, 208, 14, 3, 1, 16, 26},
                        {440, 440, 7, 3, 1, 16, 55},
                        // channels that fill no whole vectors
                        {58, 58, 28, 1, 1, 16},
                        {58, 58, 28, 3, 1, 16, 58},
                        {116, 116, 14, 1, 1, 16},
                        {104, 104, 28, 1, 1, 8},
                        {40, 240, 28, 1, 1, 8},
                        {240, 40, 28, 1, 1, 8},
                        // few pixels, for which much of the time goes into the weights
                        {960, 160, 2, 1, 1, 8},
                        {160, 960, 2, 1, 1, 8},
                        {320, 1280, 2, 1, 1, 8},
                        {64, 384, 4, 1, 1, 8},
                        {384, 64, 4, 1, 1, 8},
                        {512, 512, 2, 3, 1, 8},
                        {256, 256, 4, 3, 1, 8},
                        {128, 128, 8, 3, 1, 8},
                        {256, 512, 4, 3, 2, 8},
                        {512, 2048, 2, 1, 1, 8},
                        {2048, 512, 2, 1, 1, 8},
                        {256, 1024, 4, 1, 1, 8},
                        {1024, 256, 4, 1, 1, 8},
                        {256, 64, 16, 1, 1, 8},
                        {64, 64, 16, 3, 1, 8},
                        {24, 144, 16, 1, 1, 8},
                        {144, 24, 16, 1, 1, 8},
                        {32, 16, 32, 1, 1, 8},
                        {32, 32, 32, 3, 1, 8, 32},
                        {96, 96, 32, 3, 2, 8, 96},
                        {144, 144, 16, 3, 1, 8, 144},
                        {192, 192, 8, 3, 1, 8, 192},
                        {576, 576, 4, 3, 2, 8, 576},
                        {960, 960, 2, 3, 1, 8, 960}};

} // namespace

void sluice::measureConvolutions(Bench &bench, double mostSeconds) {
  const double end = bench.taken() + mostSeconds;
  constexpr size_t apart = 7; // neighbours are alike
  for (size_t first = 0; first < apart; ++first)
    for (size_t i = first; i < std::size(layers); i += apart)
      for (ConvPass pass : {ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardWeight})
        if (bench.taken() < end &&
            (layers[i].in > 3 || pass != ConvPass::BackwardData)) // no gradient of the image is wanted
          measurePass(bench, layers[i], pass);
}
