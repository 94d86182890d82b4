// SPDX-License-Identifier: Apache-2.0
// A convolution and its epilogue as a graph of cuDNN's frontend; for ConvEngine.cpp alone, because compilers take their
// time over that frontend.
#pragma once

#include "runtime/cuda/ConvEngine.h"

#include <cudnn_frontend.h>

namespace sluice {

namespace fe = cudnn_frontend;

inline std::vector<int64_t> dims(const Shape &shape) { return {shape.dims, shape.dims + shape.rank}; }
/// Strides of [N,C,H,W] in NHWC order, and of [O,I,H,W] in OHWI order; of volumes alike.
inline std::vector<int64_t> channelsLast(const Shape &s) {
  std::vector<int64_t> strides = dims(s);
  int64_t step = 1;
  for (int place = s.rank - 1; place >= 0; --place) {
    const int d = dimensionAt(place, s.rank, Layout::NHWC);
    strides[static_cast<size_t>(d)] = step;
    step *= s[d];
  }
  return strides;
}

enum Uid : int64_t { First = 1, Second, Result, More };

inline fe::DataType_t typeOf(const ConvGeometry &g) {
  return g.type == DataType::BF16  ? fe::DataType_t::BFLOAT16
         : g.type == DataType::F16 ? fe::DataType_t::HALF
                                   : fe::DataType_t::FLOAT;
}

inline fe::graph::Tensor_attributes tensor(const ConvGeometry &g, const char *name, const Shape &shape, Uid uid) {
  return fe::graph::Tensor_attributes()
      .set_name(name)
      .set_dim(dims(shape))
      .set_stride(channelsLast(shape))
      .set_uid(uid)
      .set_data_type(typeOf(g));
}

template <typename Attributes> Attributes windowed(const ConvGeometry &g) {
  const Window &w = g.window;
  const int spatial = g.x.rank - 2;
  auto list = [spatial](const int64_t *from) { return std::vector<int64_t>(from, from + spatial); };
  return Attributes()
      .set_pre_padding(list(w.pads))
      .set_post_padding(list(w.pads + spatial))
      .set_stride(list(w.strides))
      .set_dilation(list(w.dilations));
}

using TensorPointer = std::shared_ptr<fe::graph::Tensor_attributes>;

/// Adds an epilogue to a graph whose convolution has the shape `image`.
class EpilogueGraph {
public:
  EpilogueGraph(fe::graph::Graph &graph, const ConvGeometry &geometry, const Shape &image)
      : graph(graph), geometry(geometry), image(image), channels{1, image[1], 1, 1} {}

  /// Sums of y and of its squares.
  void statistics(const TensorPointer &y) {
    sum(y);
    sum(both(fe::PointwiseMode_t::MUL, y, y));
  }
  /// The masked gradient, with its operands and sums in the order of Epilogue.
  TensorPointer gradient(TensorPointer dx, bool ofSum) {
    auto z = tensor(geometry, "z", image, next()), x = tensor(geometry, "x", image, next());
    const TensorPointer input = graph.tensor(x), mean = vector("mean"), rstd = vector("rstd"), sign = graph.tensor(z);
    const Uid dscale = next(), dbias = next();
    if (ofSum)
      dx = both(fe::PointwiseMode_t::ADD, virtualImage(dx), graph.tensor(tensor(geometry, "addend", image, next())));
    const TensorPointer dz = both(fe::PointwiseMode_t::RELU_BWD, virtualImage(dx), sign);
    const TensorPointer xhat = both(fe::PointwiseMode_t::MUL, both(fe::PointwiseMode_t::SUB, input, mean), rstd);
    sum(both(fe::PointwiseMode_t::MUL, dz, xhat), dscale);
    sum(dz, dbias);
    return dz;
  }

private:
  Uid next() { return static_cast<Uid>(More + used++); }
  TensorPointer virtualImage(const TensorPointer &t) const {
    t->set_dim(dims(image)).set_stride(channelsLast(image));
    return t;
  }
  TensorPointer both(fe::PointwiseMode_t mode, const TensorPointer &a, const TensorPointer &b) const {
    return virtualImage(graph.pointwise(a, b, fe::graph::Pointwise_attributes().set_mode(mode)));
  }
  TensorPointer vector(const char *name) {
    return graph.tensor(tensor(geometry, name, channels, next()).set_data_type(fe::DataType_t::FLOAT));
  }
  void sum(const TensorPointer &of, Uid uid) const {
    graph
        .reduction(of, fe::graph::Reduction_attributes().set_mode(fe::ReductionMode_t::ADD).set_is_deterministic(true))
        ->set_output(true)
        .set_dim(dims(channels))
        .set_stride(channelsLast(channels))
        .set_uid(uid)
        .set_data_type(fe::DataType_t::FLOAT);
  }
  void sum(const TensorPointer &of) { sum(of, next()); }

  fe::graph::Graph &graph;
  const ConvGeometry &geometry;
  const Shape image, channels;
  int64_t used = 0;
};

/// Adds a convolution with its epilogue to an empty graph.
inline void describeConvolution(fe::graph::Graph &described, const ConvGeometry &g, Epilogue epilogue) {
  described.set_io_data_type(typeOf(g))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  std::shared_ptr<fe::graph::Tensor_attributes> result;
  if (g.pass == ConvPass::Forward)
    result = described.conv_fprop(described.tensor(tensor(g, "x", g.x, First)),
                                  described.tensor(tensor(g, "w", g.w, Second)),
                                  windowed<fe::graph::Conv_fprop_attributes>(g));
  else if (g.pass == ConvPass::BackwardData)
    result = described.conv_dgrad(described.tensor(tensor(g, "dy", g.y, First)),
                                  described.tensor(tensor(g, "w", g.w, Second)),
                                  windowed<fe::graph::Conv_dgrad_attributes>(g));
  else
    result = described.conv_wgrad(described.tensor(tensor(g, "dy", g.y, First)),
                                  described.tensor(tensor(g, "x", g.x, Second)),
                                  windowed<fe::graph::Conv_wgrad_attributes>(g));
  const Shape &shape = g.pass == ConvPass::Forward ? g.y : g.pass == ConvPass::BackwardData ? g.x : g.w;
  if (epilogue == Epilogue::Statistics)
    EpilogueGraph(described, g, shape).statistics(result);
  else if (epilogue != Epilogue::None)
    result = EpilogueGraph(described, g, shape).gradient(result, epilogue == Epilogue::GradientOfSum);
  result->set_output(true)
      .set_dim(dims(shape))
      .set_stride(channelsLast(shape))
      .set_uid(Result)
      .set_data_type(typeOf(g));
}

} // namespace sluice
