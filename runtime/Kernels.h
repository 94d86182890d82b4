// SPDX-License-Identifier: Apache-2.0
// The kernels that generated programs are made of. Each object is created once, before any arena exists: it checks
// shapes, builds its vendor primitives and knows the scratch bytes it needs. Each call enqueues on the stream given and
// returns at once.
//
// Images [N,C,H,W] and volumes [N,C,D,H,W] are NHWC unless said otherwise; convolution weights are row-major OIHW or
// OIDHW; vectors are [C]. A kernel never allocates while it runs: scratch is the last argument, at least
// workspaceBytes() long, at a multiple of 256 bytes. Constructors throw std::invalid_argument naming the node. A kernel
// object outlives all work that it enqueued. Activations and their gradients may be BF16 instead of F32, on cuda F16,
// too, all that one call names, unless said otherwise; vectors, parameters and losses are F32. Kernels compute in float
// and round to nearest even where they store, F16 to infinity beyond 65504. The host refuses F16:
// std::invalid_argument. Results are the same bits from run to run for a given thread count.
#pragma once

#include "runtime/KernelOptions.h"
#include "runtime/Stream.h"
#include "runtime/TargetTable.h"

#include <memory>
#include <string>

namespace sluice {

/// Threads that kernels may use. Set before the first kernel is created: primitives and workspaces depend on it.
void setThreads(int count);
int threads();

/// Host: vendor primitives use no more than this level of x86-64 (2: SSE4.1, 3: AVX2, 4: AVX-512), so that a program
/// has the same algorithms and workspaces on every processor of the level, but for those of bf16, which not every one
/// of level 4 has; 0: all that the machine has. DNNL_MAX_CPU_ISA in the environment can take away more. Once, after
/// setKernelPolicy() and before the first kernel is created. Cuda: nothing to do.
void limitInstructions(int level);

/// Which runtime this program is linked with.
Target runtimeTarget();

/// What convolutions and matrix products compute in. TF32: products of 10-bit mantissas, sums in float. BF16, FP16: of
/// tensors that are stored in bf16 or f16, sums in float. The host has FP32 and BF16.
enum class Precision { FP32, TF32, BF16, FP16 };

/// Cuda: the largest workspace that an algorithm may be chosen for, and the precision. Set before the first kernel is
/// created. The host runtime plans workspaces by what its primitives say; it refuses TF32 and FP16.
void setKernelPolicy(size_t workspaceLimit, Precision precision);

/// Constructors only describe vendor primitives, so that the compiler can ask for workspaces quickly. This builds all
/// that were described since the last call; programs call it once, between creating their kernels and allocating the
/// arenas. Cuda: the first call also creates the context. Throws MemoryNotAvailable when there is no device to use, or
/// no algorithm that fits a workspace.
void buildPrimitives();

/// The device as profiles name it, and what a program says of memory besides its arenas, in lines for standard output
/// (empty on the host). After buildPrimitives().
std::string deviceName();
std::string memoryNotes();

/// OpenMP workers of vendor libraries that spin between parallel regions would hold the cores that our own threads
/// need, and with fewer threads than they were built for kernels compute wrong results. Call first in main: starts the
/// program again with OMP_WAIT_POLICY=passive, unless the variable is set, and without the variables that
/// isOpenMPLimited() finds; they are only read when a program is loaded. setThreads() alone says how many threads there
/// are. Throws MemoryNotAvailable where it cannot.
void ensureOpenMP(int argc, char **argv);
/// Whether the environment takes threads from OpenMP that it is asked for.
bool isOpenMPLimited();

class Kernel {
public:
  Node node;                                          ///< ONNX node, for traces and errors
  size_t workspaceBytes() const { return workspace; } ///< of scratch that calls need; 0: it may be absent
  /// Throws MemoryNotAvailable, naming both numbers, when the slot that the plan reserved is too small on this machine.
  void checkWorkspace(const Tensor &slot) const;

protected:
  explicit Kernel(Node node) : node(node) {}
  size_t workspace = 0;
};

/// Geometry of a convolution or pooling window over the two or three spatial dimensions of its tensors, in their order.
/// pads: in front of each, then after each (top, left, bottom, right). Two dimensions leave the last entries unused.
struct Window {
  int64_t kernel[3], strides[3], pads[6], dilations[3] = {1, 1, 1};
};

enum class ConvPass { Forward, BackwardData, BackwardWeight };

/// Convolution in two or three dimensions, one object per pass. x [N,C,H,W], w [O,C/groups,kh,kw] row-major, y
/// [N,O,H',W'], or with D, kd and D' in front of H, kh and H'. A transposed convolution is BackwardData with x and y
/// exchanged. With type BF16 or F16 x, w, y and their gradients are that, w in NHWC order ([O,kh,kw,C/groups]); bias,
/// dw and dbias are F32 and row-major as ever.
class Conv : public Kernel {
public:
  Conv(Node node, ConvPass pass, Shape x, Shape w, Shape y, Window window, ConvOptions options = {});
  ~Conv();
  Conv(Conv &&);
  /// y = x * w + bias, w not rotated (ONNX Conv); `bias` is absent unless the object was made with one
  void forward(Stream &, const Tensor &x, const Tensor &w, const Tensor &bias, const Tensor &y,
               const Tensor &scratch) const;
  /// dx = gradient of y with respect to x
  void backwardData(Stream &, const Tensor &dy, const Tensor &w, const Tensor &dx, const Tensor &scratch) const;
  /// dw (row-major) and, when the object was made with bias, dbias
  void backwardWeight(Stream &, const Tensor &dy, const Tensor &x, const Tensor &dw, const Tensor &dbias,
                      const Tensor &scratch) const;

  struct Impl;

private:
  std::shared_ptr<const Impl> impl; ///< shared by all convolutions of one geometry
};

/// Maximum pooling of images or volumes, over the positions of a window that lie in x: padding never wins. `indices`
/// (same shape as y, U8 below 256 window positions, else I32) says which window position, counted row by row, won; the
/// backward pass reads nothing else of the forward pass, which writes none where they are absent. Ties go to the first
/// position; NaN wins. dx is the sum of dy over the windows in which the element has won.
class MaxPool : public Kernel {
public:
  MaxPool(Node node, Shape x, Shape y, Window window);
  void forward(Stream &, const Tensor &x, const Tensor &y, const Tensor &indices, const Tensor &scratch) const;
  void backward(Stream &, const Tensor &dy, const Tensor &indices, const Tensor &dx, const Tensor &scratch) const;

private:
  Shape x, y; ///< as volumes, and the window with them
  Window window;
};

/// Average pooling of images or volumes: the mean over the positions of a window that lie in x, with countIncludePad
/// their sum over the number of those in x and its pads. Globally: a window as large as the image.
class AveragePool : public Kernel {
public:
  AveragePool(Node node, Shape x, Shape y, Window window, bool countIncludePad);
  void forward(Stream &, const Tensor &x, const Tensor &y, const Tensor &scratch) const;
  void backward(Stream &, const Tensor &dy, const Tensor &dx, const Tensor &scratch) const;

private:
  Shape x, y; ///< as volumes, and the window with them
  Window window;
  bool countIncludePad;
};

/// Throws std::invalid_argument naming `node` when x is nothing to take batch statistics of.
void checkStatistics(const char *node, const Shape &x);

/// Per-channel mean and 1/sqrt(biased variance + epsilon) of x [N,C,...]: NHWC from rank 3 on, row-major [N,C] for
/// rank 2. mean and rstd are F32.
class BatchNormStatistics : public Kernel {
public:
  BatchNormStatistics(Node node, Shape x, float epsilon);
  void run(Stream &, const Tensor &x, const Tensor &mean, const Tensor &rstd, const Tensor &scratch) const;

private:
  Shape x;
  float epsilon;
};

/// y = (x - mean) * rstd * scale + bias for every row of x [rows, columns], with the row's own mean and
/// rstd = 1/sqrt(biased variance + epsilon) (J. L. Ba et al., Layer Normalization, arXiv:1607.06450, eq. 3). scale and
/// bias [columns], mean and rstd [rows, 1] are F32. y may be x, dx may be dy or x.
class LayerNorm : public Kernel {
public:
  LayerNorm(Node node, Shape x, float epsilon);
  void forward(Stream &, const Tensor &x, const Tensor &scale, const Tensor &bias, const Tensor &y, const Tensor &mean,
               const Tensor &rstd) const;
  void backward(Stream &, const Tensor &dy, const Tensor &x, const Tensor &scale, const Tensor &mean,
                const Tensor &rstd, const Tensor &dx) const;

private:
  int64_t rows, columns;
  float epsilon;
};

/// running = (1 - momentum) * running + momentum * batch, in place (momentum as PyTorch's), with the unbiased variance
/// var * count / (count - 1), for a count of 1 var itself, where var = max(0, 1/rstd^2 - epsilon).
class UpdateStatistics : public Kernel {
public:
  UpdateStatistics(Node node, int64_t channels, int64_t count, float momentum, float epsilon);
  void run(Stream &, const Tensor &mean, const Tensor &rstd, const Tensor &runningMean, const Tensor &runningVar) const;

private:
  int64_t channels, count;
  float momentum, epsilon;
};

/// Rebuilds x [N,C,...] (layouts as BatchNormStatistics) from z = leaky_relu((x - mean) * rstd * scale + bias), slope
/// alpha >= 1e-3, where z was rounded to `from` on its way: F32, BF16 or F16. z, saved and x are F32, or all of them of
/// that type. `save` puts the channels that cannot be rebuilt well, in order, into saved [slots, elements per channel];
/// with more of them than slots the step fails with MemoryNotAvailable.
class BatchNormInversion : public Kernel {
public:
  BatchNormInversion(Node node, Shape x, int64_t slots, float alpha, DataType from);
  void save(Stream &, const Tensor &x, const Tensor &scale, const Tensor &bias, const Tensor &saved) const;
  void invert(Stream &, const Tensor &z, const Tensor &mean, const Tensor &rstd, const Tensor &scale,
              const Tensor &bias, const Tensor &saved, const Tensor &x) const;

private:
  int64_t channels, pixels, slots;
  float alpha;
  DataType from;
};

/// Ends the step with ValueNotStorable when x, rebuilt by subtracting from y, has max |x| < 2^-10 max |y|: y was
/// rounded to 2^-24 of itself, so x has an error of more than 2^-14 of its largest value. Where x and y are F16 or
/// BF16, y was rounded to 2^-11 or 2^-8 of itself, and x may have an error of 2^-6: max |x| < 2^-5 or 2^-2 max |y| ends
/// the step. What is not finite passes. maxima [parts, 2] is written, F32.
class CancellationCheck : public Kernel {
public:
  CancellationCheck(Node node, int64_t elements, int64_t parts);
  void run(Stream &, const Tensor &x, const Tensor &y, const Tensor &maxima) const;

private:
  int64_t elements, parts;
};

/// Local response normalization of images across channels (ONNX LRN): y = x / (bias + alpha/size * sum of
/// squares)^beta, over the channels from c - floor((size-1)/2) to c + ceil((size-1)/2) that there are.
class Lrn : public Kernel {
public:
  Lrn(Node node, Shape x, int64_t size, float alpha, float beta, float bias);
  void forward(Stream &, const Tensor &x, const Tensor &y, const Tensor &scratch) const;
  void backward(Stream &, const Tensor &dy, const Tensor &x, const Tensor &dx, const Tensor &scratch) const;

private:
  Shape x;
  int64_t size;
  float alpha, beta, bias;
};

/// c = alpha * op(a) op(b) + beta * bias. Row-major; leading dimensions beyond the last two are batches and broadcast
/// in a or b when 1 or absent. op(a) is [M,K], op(b) [K,N]. a and b have one type; c of factors of BF16 or F16 has
/// theirs, or is F32. bias is absent, or F32 and broadcasts to c: [N], [1,N], [M,1], [M,N]; a bias of one row [N], with
/// beta 1, has the type of c. With beta 0 it is not read.
class Matmul : public Kernel {
public:
  Matmul(Node node, Shape a, Shape b, Shape c, MatmulOptions options = {});
  ~Matmul();
  Matmul(Matmul &&);
  void run(Stream &, const Tensor &a, const Tensor &b, const Tensor &bias, const Tensor &c,
           const Tensor &scratch) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// y = exp(x) / sum of exp(x) along `axis` (negative: counted from the end), or its logarithm; row-major, of one type.
/// dx = y * (dy - sum of dy * y), of the logarithm dx = dy - exp(y) * sum of dy. y may be x, dx may be dy or y.
class Softmax : public Kernel {
public:
  Softmax(Node node, Shape x, int axis, bool logarithm);
  void forward(Stream &, const Tensor &x, const Tensor &y) const;
  void backward(Stream &, const Tensor &dy, const Tensor &y, const Tensor &dx) const;

private:
  Shape x;
  int axis;
  bool logarithm;
};

/// What a loss averages over is PyTorch's "mean". forward() writes one float to `loss`, backward() the gradient of that
/// mean. Where no target counts both are 0, not PyTorch's NaN.
enum class LossKind { SoftmaxCrossEntropy, MeanSquaredError, BceWithLogits };

/// SoftmaxCrossEntropy: x [N,K,...] row-major, target I64 [N,...] class ids; the session's labelSmoothing spreads the
/// target over all classes, its mixShare adds the target of another sample. `classes`, of which 0 means K, are the
/// first of the K; the others are not read, and have the gradient 0; x may be of 16 bits. A class that is none of them
/// ends the step with DataError (cuda: forward() alone notes it, for Session::synchronize() to throw). With `targets`
/// x [N,K] is rows from `first` on of so many, target [targets]: the loss is their share of the mean.
/// MeanSquaredError, BceWithLogits: x and target, both F32, of one shape and layout. `positives`: pos_weight of
/// BceWithLogits, F32 of x's rank, 1 long in all but one dimension. Targets that are `ignoreIndex` do not count. dx may
/// be of 16 bits, and in x's bytes where both have one type. backward() needs `scratch` on cuda, with an ignoreIndex.
class Loss : public Kernel {
public:
  static constexpr int64_t none = INT64_MIN;
  Loss(Node, LossKind, Shape x, int64_t ignoreIndex = none, int64_t classes = 0, int64_t first = 0,
       int64_t targets = 0);
  void forward(Stream &, const Tensor &x, const Tensor &target, const Tensor &loss, const Tensor &scratch,
               const Tensor &positives = {}) const;
  void backward(Stream &, const Tensor &x, const Tensor &target, const Tensor &dx, const Tensor &scratch = {},
                const Tensor &positives = {}) const;
  /// Adds to `count`, one I64, the number of targets whose class has the largest logit, of equal logits the first
  /// (SoftmaxCrossEntropy only). It does not look at ignoreIndex: where that is a class, its targets are counted, too.
  void countCorrect(Stream &, const Tensor &x, const Tensor &target, const Tensor &count) const;

private:
  LossKind kind;
  Shape x;
  int64_t ignoreIndex, classes, first, targets;
};

enum class ResizeMode { Nearest, Linear };
enum class ResizeCoordinates { HalfPixel, PytorchHalfPixel, AlignCorners, Asymmetric };
enum class NearestRounding { RoundPreferFloor, RoundPreferCeil, Floor, Ceil };

/// Resizes images x to y, of one N and C, both NHWC (ONNX Resize without antialiasing; NearestRounding is for Nearest
/// alone). A scale above 0 is the model's, else it is y's extent over x's.
class Resize : public Kernel {
public:
  Resize(Node node, Shape x, Shape y, float scaleH, float scaleW, ResizeMode, ResizeCoordinates, NearestRounding);
  void forward(Stream &, const Tensor &x, const Tensor &y) const;
  void backward(Stream &, const Tensor &dy, const Tensor &dx) const;

  struct Impl;

private:
  std::shared_ptr<const Impl> impl;
};

/// y = x with its logical dimensions permuted and its layout changed. `permutation` maps y's dimensions to x's (ONNX
/// Transpose): dimension i of y is dimension permutation[i] of x. Empty: a reshape, x and y have the same elements in
/// logical (row-major) order and may have different shapes. From F32 to BF16 or F16 values are rounded, the other way
/// widened; I64 are rounded to F32. From F32 to I64 fractions are cut off; what no integer holds becomes the smallest.
class Reorder : public Kernel {
public:
  Reorder(Node node, const Tensor &x, const Tensor &y, std::initializer_list<int> permutation);
  void run(Stream &, const Tensor &x, const Tensor &y) const;

  struct Impl;

private:
  std::shared_ptr<const Impl> impl;
};

/// Copies the slab [start, start + length) of `axis` between a large tensor and a small one (Concat, Split, Slice and
/// their gradients), leaving the rest as it is. Same layout and type, any but Bit, on both sides.
class Slab : public Kernel {
public:
  Slab(Node node, const Tensor &large, const Tensor &small, int axis, int64_t start);
  void insert(Stream &, const Tensor &small, const Tensor &large) const;  ///< large[slab] = small
  void extract(Stream &, const Tensor &large, const Tensor &small) const; ///< small = large[slab]

private:
  void copy(Stream &, const char *op, const char *from, int64_t fromStride, char *to, int64_t toStride) const;
  int64_t outer, largeStride, smallStride, start; ///< bytes, but for outer
};

/// y = sum of x over the dimensions in which y has extent 1 (or which y lacks in front): the gradient of broadcasting.
/// y is F32. `scale` multiplies the sum (1/count makes a mean).
class SumTo : public Kernel {
public:
  SumTo(Node node, const Tensor &x, const Tensor &y, float scale = 1);
  void run(Stream &, const Tensor &x, const Tensor &y, const Tensor &scratch) const;

private:
  struct Impl;
  std::shared_ptr<const Impl> impl;
};

/// y = x broadcast to y's shape (numpy rules), times `scale`. Either may be BF16 or F16.
class BroadcastTo : public Kernel {
public:
  BroadcastTo(Node node, const Tensor &x, const Tensor &y, float scale = 1);
  void run(Stream &, const Tensor &x, const Tensor &y) const;

  struct Impl;

private:
  std::shared_ptr<const Impl> impl;
};

/// Sets every byte of the tensor to zero.
void clear(Stream &, const Tensor &, Node node);

} // namespace sluice
