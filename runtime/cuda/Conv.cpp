// SPDX-License-Identifier: Apache-2.0
// Convolutions through cuDNN's engines. Activations are NHWC and weights [O,H,W,I], to which each call turns them
// inside scratch: [rotated weights | the engine's workspace]. Halves come in that order, and the weight gradient leaves
// the engine as halves, as PyTorch has it: engines that store f32 from such factors are few and not promised,
// while a kernel must turn, and so can widen, the gradient anyway, behind the engine or, where the program takes the
// halves as they are, as a Reorder; sums are f32 within the engine. Convolutions of one
// geometry share one engine. Where there is none our own direct kernels run.
#include "runtime/cuda/ConvEngine.h"
#include "runtime/cuda/DirectConv.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Reduce.h"
#include "runtime/cuda/SharedEngine.h"

namespace sluice {

struct Conv::Impl {
  void run(cudaStream_t stream, const void *first, const void *second, void *result, char *scratch) const;
  void weightGradient(cudaStream_t stream, const void *dy, const void *x, const Tensor &dw, void *result,
                      char *scratch) const;
  TurnedWeights weights() const {
    const Shape &w = geometry.w;
    return {geometry.type, w[0], w[1], w.elements() / (w[0] * w[1])};
  }

  ConvGeometry geometry;
  std::shared_ptr<SharedEngine<ConvEngine>> shared;
};

/// Forward and with respect to the input.
void Conv::Impl::run(cudaStream_t stream, const void *first, const void *second, void *result, char *scratch) const {
  const ConvEngine *engine = shared->get();
  if (!engine)
    return directConvolution(stream, geometry, first, second, result);
  const int64_t rotated = cuda::rotatedWeights(geometry.w, geometry.pass, geometry.type);
  if (rotated) {
    turnWeights(stream, weights(), second, reinterpret_cast<float *>(scratch), false);
    second = scratch;
  }
  for (int64_t part = 0; part < engine->parts(); ++part)
    engine->run(stream, part, first, second, result, scratch + rotated);
}

/// Halves go where the program wants them, those of further parts through scratch.
void Conv::Impl::weightGradient(cudaStream_t stream, const void *dy, const void *x, const Tensor &dw, void *result,
                                char *scratch) const {
  const ConvEngine *engine = shared->get();
  if (!engine)
    return directConvolution(stream, geometry, dy, x, result, dw.type);
  const int64_t rotated = cuda::rotatedWeights(geometry.w, geometry.pass, geometry.type);
  const bool asTheyAre = isHalf(dw.type);
  for (int64_t part = 0; part < engine->parts(); ++part) {
    void *target = rotated && !(asTheyAre && part == 0) ? scratch : result;
    engine->run(stream, part, dy, x, target, scratch + rotated);
    if (target == result)
      continue;
    if (asTheyAre)
      addWeights(stream, weights(), scratch, result);
    else
      turnWeights(stream, weights(), scratch, static_cast<float *>(result), true, part > 0);
  }
}

Conv::Conv(Node node, ConvPass pass, Shape x, Shape w, Shape y, Window window, ConvOptions options) : Kernel(node) {
  checkConvolution(node, x, w, y, window, options.groups);
  const ConvGeometry geometry{pass, x, w, y, window, options.groups, options.type};
  workspace = static_cast<size_t>(
      cuda::convolutionScratch(grantedWorkspace(options.algorithm), pass, x, w, y, options.bias, options.type));
  const int64_t bytes = static_cast<int64_t>(workspace) - cuda::rotatedWeights(w, pass, options.type);
  const ConvTask task{geometry, bytes, precision()};
  impl = std::make_shared<Impl>(
      Impl{geometry,
           SharedEngine<ConvEngine>::of(task.text(), node, "runs on a direct kernel, which is slow: ",
                                        [task](std::string &reason) { return ConvEngine::choose(task, reason); })});
}

Conv::~Conv() = default;
Conv::Conv(Conv &&) = default;

void Conv::forward(Stream &stream, const Tensor &x, const Tensor &w, const Tensor &bias, const Tensor &y,
                   const Tensor &scratch) const {
  const void *px = stream.address(x), *pw = stream.address(w);
  const float *pb = stream.data<float>(bias);
  void *py = stream.address(y);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv", [&] {
    impl->run(native(stream), px, pw, py, part);
    const Shape &shape = impl->geometry.y;
    if (pb)
      addBias(native(stream), y.type, py, shape.elements() / shape[1], shape[1], {DataType::F32, pb});
  });
}

void Conv::backwardData(Stream &stream, const Tensor &dy, const Tensor &w, const Tensor &dx,
                        const Tensor &scratch) const {
  const void *pdy = stream.address(dy), *pw = stream.address(w);
  void *pdx = stream.address(dx);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv_backward_data", [&] { impl->run(native(stream), pdy, pw, pdx, part); });
}

void Conv::backwardWeight(Stream &stream, const Tensor &dy, const Tensor &x, const Tensor &dw, const Tensor &dbias,
                          const Tensor &scratch) const {
  const void *pdy = stream.address(dy), *px = stream.address(x);
  void *pdw = stream.address(dw);
  float *pdb = stream.data<float>(dbias);
  char *part = stream.data<char>(scratch);
  stream.launch(node, "conv_backward_weight", [&] {
    impl->weightGradient(native(stream), pdy, px, dw, pdw, part);
    const Shape &shape = impl->geometry.y;
    if (pdb) // after the engine, whose workspace it takes over
      columnSums(native(stream), shape.elements() / shape[1], shape[1], dy.type, pdy, reinterpret_cast<double *>(part),
                 pdb);
  });
}

} // namespace sluice
