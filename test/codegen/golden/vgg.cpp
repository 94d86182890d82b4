// model.onnx: one training step and one evaluation batch, written by
//   sluicec model.onnx --batch=8 --cpu=x86-64-v2 --threads=2 --strategy=greedy --memory-budget=75%act
//   --host-budget=unlimited --emit=source -o vgg.cpp
// Strategy greedy: 285184 bytes on the device (278.5 KiB; keep needs 342.2 KiB), 90368 bytes on the host.
// Predicted: 0.4 ms a step, 2.2 % more than keep.
// Build it with the project's CMakeLists.txt, or compile it and link the runtime library; see --help of the program for
// its flags.
#include "runtime/Runtime.h"

#include <cmath>
#include <memory>

using namespace sluice;

namespace {

// ---- Device memory: what outlives a step. Variables, then results.
constexpr Tensor features_0_weight = device(0x000c200, {8, 3, 3, 3});                // 864 bytes
constexpr Tensor features_0_bias = device(0x000c600, {8});                           // 32 bytes
constexpr Tensor features_3_weight = device(0x000c700, {16, 8, 3, 3});               // 4.5 KiB
constexpr Tensor features_3_bias = device(0x000d900, {16});                          // 64 bytes
constexpr Tensor features_5_weight = device(0x000da00, {16, 16, 3, 3});              // 9.0 KiB
constexpr Tensor features_5_bias = device(0x000fe00, {16});                          // 64 bytes
constexpr Tensor classifier_0_weight = device(0x000ff00, {24, 256});                 // 24.0 KiB
constexpr Tensor classifier_0_bias = device(0x0015f00, {24});                        // 96 bytes
constexpr Tensor classifier_2_weight = device(0x0016000, {10, 24});                  // 960 bytes
constexpr Tensor classifier_2_bias = device(0x0016400, {10});                        // 40 bytes
constexpr Tensor loss_value = device(0x0016500, {});                                 //   loss
constexpr Tensor classifier_2_weight_momentum = device(0x0016600, {10, 24});         // 960 bytes
constexpr Tensor classifier_2_bias_momentum = device(0x0016a00, {10});               // 40 bytes
constexpr Tensor classifier_0_weight_momentum = device(0x0016b00, {24, 256});        // 24.0 KiB
constexpr Tensor classifier_0_bias_momentum = device(0x001cb00, {24});               // 96 bytes
constexpr Tensor features_5_weight_momentum = device(0x001cc00, {16, 16, 3, 3});     // 9.0 KiB
constexpr Tensor features_5_bias_momentum = device(0x001f000, {16});                 // 64 bytes
constexpr Tensor features_3_weight_momentum = device(0x001f100, {16, 8, 3, 3});      // 4.5 KiB
constexpr Tensor features_3_bias_momentum = device(0x0020300, {16});                 // 64 bytes
constexpr Tensor features_0_weight_momentum = device(0x0020400, {8, 3, 3, 3});       // 864 bytes
constexpr Tensor features_0_bias_momentum = device(0x0020800, {8});                  // 32 bytes
constexpr Tensor correct_count = device(0x0020900, {}, Layout::RowMajor, DataType::I64); //   loss

// Inputs have two slots: the next batch arrives in one while a step reads the other. Staging slots lie in host memory.
constexpr Tensor input[2] = {device(0x0000000, {8, 3, 16, 16}, Layout::NHWC),
    device(0x0006000, {8, 3, 16, 16}, Layout::NHWC)};
constexpr Tensor input_staging = host(0x0000000, {8, 3, 16, 16}, Layout::NHWC);
constexpr Tensor target[2] = {device(0x000c000, {8}, Layout::RowMajor, DataType::I64),
    device(0x000c100, {8}, Layout::RowMajor, DataType::I64)};
constexpr Tensor target_staging = host(0x0006000, {8}, Layout::RowMajor, DataType::I64);

// ---- Transients of a step. Slots may share bytes where the schedule orders their users; the numbers are the steps in
// which a slot is in use.
constexpr Tensor features_0_y = device(0x0020a00, {8, 8, 16, 16}, Layout::NHWC);     // 1-5  /features/features.0/Conv
// 4-35  /features/features.2/MaxPool
constexpr Tensor features_2_MaxPool_y = device(0x0040a00, {8, 8, 8, 8}, Layout::NHWC);
// 4-40  /features/features.2/MaxPool
constexpr Tensor features_2_MaxPool_indices = device(0x0044a00, {8, 8, 8, 8}, Layout::NHWC, DataType::U8);
constexpr Tensor features_3_y = device(0x0030a00, {8, 16, 8, 8}, Layout::NHWC);      // 5-34  /features/features.3/Conv
constexpr Tensor features_5_y = device(0x0038a00, {8, 16, 8, 8}, Layout::NHWC);      // 7-29  /features/features.5/Conv
// 9-10  /features/features.7/MaxPool
constexpr Tensor features_7_MaxPool_y = device(0x0020a00, {8, 16, 4, 4}, Layout::NHWC);
// 9-28  /features/features.7/MaxPool
constexpr Tensor features_7_MaxPool_indices = device(0x002ea00, {8, 16, 4, 4}, Layout::NHWC, DataType::U8);
constexpr Tensor flatten_y = device(0x002ca00, {8, 16, 4, 4});                       // 10-22  /Flatten
constexpr Tensor classifier_0_y = device(0x002f200, {8, 24});                    // 11-21  /classifier/classifier.0/Gemm
constexpr Tensor classifier_2_y = device(0x0021600, {8, 10});                    // 13-18  /classifier/classifier.2/Gemm
constexpr Tensor classifier_2_weight_grad = device(0x0021200, {10, 24});         // 16-19  /classifier/classifier.2/Gemm
constexpr Tensor classifier_2_bias_grad = device(0x0021800, {10});               // 17-20  /classifier/classifier.2/Gemm
constexpr Tensor classifier_2_grad = device(0x002f500, {8, 24});                 // 18-24  /classifier/classifier.2/Gemm
constexpr Tensor classifier_0_weight_grad = device(0x0020a00, {24, 256});        // 22-25  /classifier/classifier.0/Gemm
constexpr Tensor classifier_0_bias_grad = device(0x002d200, {24});               // 23-26  /classifier/classifier.0/Gemm
constexpr Tensor classifier_0_grad = device(0x002b200, {8, 256});                // 24-27  /classifier/classifier.0/Gemm
// 27-28  /features/features.7/MaxPool
constexpr Tensor features_7_MaxPool_grad = device(0x0028a00, {8, 16, 4, 4}, Layout::NHWC);
// 28-31  /features/features.7/MaxPool
constexpr Tensor features_7_MaxPool_grad_2 = device(0x0020a00, {8, 16, 8, 8}, Layout::NHWC);
constexpr Tensor features_5_weight_grad = device(0x003e400, {16, 16, 3, 3});         // 30-32  /features/features.5/Conv
constexpr Tensor features_5_bias_grad = device(0x0040800, {16});                     // 30-33  /features/features.5/Conv
constexpr Tensor features_5_dx = device(0x0028a00, {8, 16, 8, 8}, Layout::NHWC);     // 31-36  /features/features.5/Conv
constexpr Tensor features_3_weight_grad = device(0x0030a00, {16, 8, 3, 3});          // 35-38  /features/features.3/Conv
constexpr Tensor features_3_bias_grad = device(0x0031c00, {16});                     // 35-39  /features/features.3/Conv
constexpr Tensor features_3_dx = device(0x0040a00, {8, 8, 8, 8}, Layout::NHWC);      // 36-40  /features/features.3/Conv
// 37-41  /features/features.1/Relu
constexpr Tensor features_0_y_back = device(0x0020a00, {8, 8, 16, 16}, Layout::NHWC);
// 40-42  /features/features.2/MaxPool
constexpr Tensor features_2_MaxPool_grad = device(0x0030a00, {8, 8, 16, 16}, Layout::NHWC);
constexpr Tensor features_0_weight_grad = device(0x0024e00, {8, 3, 3, 3});           // 42-43  /features/features.0/Conv
constexpr Tensor features_0_bias_grad = device(0x0025200, {8});                      // 42-44  /features/features.0/Conv
constexpr Tensor features_0_y_scratch = scratch(0x0030a00, 896);             // 1-1 workspace  /features/features.0/Conv
constexpr Tensor features_3_y_scratch = scratch(0x0038a00, 4608);            // 5-5 workspace  /features/features.3/Conv
constexpr Tensor features_5_y_scratch = scratch(0x0020a00, 9216);            // 7-7 workspace  /features/features.5/Conv
constexpr Tensor classifier_0_y_scratch = scratch(0x0020a00, 49152);   // 11-11 workspace  /classifier/classifier.0/Gemm
constexpr Tensor classifier_2_y_scratch = scratch(0x0020a00, 3072);    // 13-13 workspace  /classifier/classifier.2/Gemm
constexpr Tensor loss_value_scratch = scratch(0x0020a00, 512);                       // 14-14 workspace  loss
// 16-16 workspace  /classifier/classifier.2/Gemm
constexpr Tensor classifier_2_weight_grad_scratch = scratch(0x0020a00, 1536);
// 17-17 workspace  /classifier/classifier.2/Gemm
constexpr Tensor classifier_2_bias_grad_scratch = scratch(0x0020a00, 80);
constexpr Tensor classifier_2_grad_scratch = scratch(0x0020a00, 1920); // 18-18 workspace  /classifier/classifier.2/Gemm
// 22-22 workspace  /classifier/classifier.0/Gemm
constexpr Tensor classifier_0_weight_grad_scratch = scratch(0x0026a00, 6144);
// 23-23 workspace  /classifier/classifier.0/Gemm
constexpr Tensor classifier_0_bias_grad_scratch = scratch(0x0026a00, 192);
// 24-24 workspace  /classifier/classifier.0/Gemm
constexpr Tensor classifier_0_grad_scratch = scratch(0x0026a00, 18432);
// 30-30 workspace  /features/features.5/Conv
constexpr Tensor features_5_weight_grad_scratch = scratch(0x0028a00, 21504);
constexpr Tensor features_5_dx_scratch = scratch(0x0038a00, 23040);        // 31-31 workspace  /features/features.5/Conv
// 35-35 workspace  /features/features.3/Conv
constexpr Tensor features_3_weight_grad_scratch = scratch(0x0020a00, 13824);
constexpr Tensor features_3_dx_scratch = scratch(0x0020a00, 18432);        // 36-36 workspace  /features/features.3/Conv
// 42-42 workspace  /features/features.0/Conv
constexpr Tensor features_0_weight_grad_scratch = scratch(0x0020a00, 17280);

// ---- Host memory.
constexpr Tensor features_0_y_host = host(0x0006100, {8, 8, 16, 16}, Layout::NHWC);  // 3-40  /features/features.1/Relu

// ---- Transients of an evaluation batch, in the same bytes.
constexpr Tensor features_0_y_2 = device(0x0020a00, {8, 8, 16, 16}, Layout::NHWC);   // 1-3  /features/features.0/Conv
// 3-4  /features/features.2/MaxPool
constexpr Tensor features_2_MaxPool_y_2 = device(0x0030a00, {8, 8, 8, 8}, Layout::NHWC);
// 3-3  /features/features.2/MaxPool
constexpr Tensor features_2_MaxPool_indices_2 = device(0x0034a00, {8, 8, 8, 8}, Layout::NHWC, DataType::U8);
constexpr Tensor features_3_y_2 = device(0x0020a00, {8, 16, 8, 8}, Layout::NHWC);    // 4-6  /features/features.3/Conv
constexpr Tensor features_5_y_2 = device(0x0028a00, {8, 16, 8, 8}, Layout::NHWC);    // 6-8  /features/features.5/Conv
// 8-9  /features/features.7/MaxPool
constexpr Tensor features_7_MaxPool_y_2 = device(0x0020a00, {8, 16, 4, 4}, Layout::NHWC);
// 8-8  /features/features.7/MaxPool
constexpr Tensor features_7_MaxPool_indices_2 = device(0x0022a00, {8, 16, 4, 4}, Layout::NHWC, DataType::U8);
constexpr Tensor flatten_y_2 = device(0x002ca00, {8, 16, 4, 4});                     // 9-10  /Flatten
constexpr Tensor classifier_0_y_2 = device(0x002ea00, {8, 24});                  // 10-12  /classifier/classifier.0/Gemm
constexpr Tensor classifier_2_y_2 = device(0x0021600, {8, 10});                  // 12-16  /classifier/classifier.2/Gemm
constexpr Tensor features_0_y_scratch_2 = scratch(0x0030a00, 896);           // 1-1 workspace  /features/features.0/Conv
constexpr Tensor features_3_y_scratch_2 = scratch(0x0028a00, 4608);          // 4-4 workspace  /features/features.3/Conv
constexpr Tensor features_5_y_scratch_2 = scratch(0x0030a00, 9216);          // 6-6 workspace  /features/features.5/Conv
constexpr Tensor classifier_0_y_scratch_2 = scratch(0x0020a00, 49152); // 10-10 workspace  /classifier/classifier.0/Gemm
constexpr Tensor classifier_2_y_scratch_2 = scratch(0x0020a00, 3072);  // 12-12 workspace  /classifier/classifier.2/Gemm
constexpr Tensor loss_value_scratch_2 = scratch(0x0020a00, 512);                     // 13-13 workspace  loss

// ---- Events that order the streams.
constexpr Event features_0_y_ready{0};
constexpr Event features_0_y_host_copied{1};
constexpr Event features_0_y_back_free{2};
constexpr Event features_0_y_back_copied{3};

// ---- Elementwise regions: the scalar rule of each, run for every element of a tensor.

struct Relu {
  static constexpr int inputs = 1, outputs = 1, sums = 0;
  static constexpr bool steps[] = {true};
  SLUICE_KERNEL Values<1> operator()(float x) const {
    const float relu = x <= 0.0f ? 0.0f : x;
    return {{relu}};
  }
};

struct ReluBackward {
  static constexpr int inputs = 2, outputs = 1, sums = 0;
  static constexpr bool steps[] = {true, true};
  SLUICE_KERNEL Values<1> operator()(float dy, float y) const {
    const float dx = y <= 0.0f ? 0.0f : dy;
    return {{dx}};
  }
};

// ---- Kernels, made once before any memory is allocated.
struct Kernels {
  SLUICE_SEQUENCE Kernels() {}
  const Conv features_0{"/features/features.0/Conv", ConvPass::Forward, {8, 3, 16, 16}, {8, 3, 3, 3}, {8, 8, 16, 16},
      {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}}, ConvOptions().withAlgorithm({"jit:sse41"}).withBias(true)};
  const Fused<Relu> features_1_Relu{"/features/features.1/Relu", {8, 8, 16, 16}, Layout::NHWC, {features_0_y},
      {features_0_y}, {}};
  const MaxPool features_2_MaxPool{"/features/features.2/MaxPool", {8, 8, 16, 16}, {8, 8, 8, 8},
      {{2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}}};
  const Conv features_3{"/features/features.3/Conv", ConvPass::Forward, {8, 8, 8, 8}, {16, 8, 3, 3}, {8, 16, 8, 8},
      {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}}, ConvOptions().withAlgorithm({"jit:sse41"}).withBias(true)};
  const Fused<Relu> features_4_Relu{"/features/features.4/Relu", {8, 16, 8, 8}, Layout::NHWC, {features_3_y},
      {features_3_y}, {}};
  const Conv features_5{"/features/features.5/Conv", ConvPass::Forward, {8, 16, 8, 8}, {16, 16, 3, 3}, {8, 16, 8, 8},
      {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}}, ConvOptions().withAlgorithm({"jit:sse41"}).withBias(true)};
  const Fused<Relu> features_6_Relu{"/features/features.6/Relu", {8, 16, 8, 8}, Layout::NHWC, {features_5_y},
      {features_5_y}, {}};
  const MaxPool features_7_MaxPool{"/features/features.7/MaxPool", {8, 16, 8, 8}, {8, 16, 4, 4},
      {{2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}}};
  const Reorder flatten{"/Flatten", features_7_MaxPool_y, flatten_y, {}};
  const Matmul classifier_0{"/classifier/classifier.0/Gemm", {8, 256}, {24, 256}, {8, 24},
      MatmulOptions().withAlgorithm({"blocked"}).withBias({24}).withTransposeB(true)};
  const Fused<Relu> classifier_1_Relu{"/classifier/classifier.1/Relu", {8, 24}, Layout::RowMajor, {classifier_0_y},
      {classifier_0_y}, {}};
  const Matmul classifier_2{"/classifier/classifier.2/Gemm", {8, 24}, {10, 24}, {8, 10},
      MatmulOptions().withAlgorithm({"blocked"}).withBias({10}).withTransposeB(true)};
  const Loss loss{"loss", LossKind::SoftmaxCrossEntropy, {8, 10}};
  const Loss loss_grad{"loss", LossKind::SoftmaxCrossEntropy, {8, 10}};
  const Matmul classifier_2_grad_2{"/classifier/classifier.2/Gemm", {8, 10}, {8, 24}, {10, 24},
      MatmulOptions().withAlgorithm({"blocked"}).withTransposeA(true)};
  const SumTo classifier_2_grad_3{"/classifier/classifier.2/Gemm", classifier_2_y, classifier_2_bias_grad};
  const Matmul classifier_2_grad_4{"/classifier/classifier.2/Gemm", {8, 10}, {10, 24}, {8, 24},
      MatmulOptions().withAlgorithm({"blocked"})};
  const Fused<ReluBackward> classifier_1_Relu_grad{"/classifier/classifier.1/Relu", {8, 24}, Layout::RowMajor,
      {classifier_2_grad, classifier_0_y}, {classifier_2_grad}, {}};
  const Matmul classifier_0_grad_2{"/classifier/classifier.0/Gemm", {8, 24}, {8, 256}, {24, 256},
      MatmulOptions().withAlgorithm({"blocked"}).withTransposeA(true)};
  const SumTo classifier_0_grad_3{"/classifier/classifier.0/Gemm", classifier_2_grad, classifier_0_bias_grad};
  const Matmul classifier_0_grad_4{"/classifier/classifier.0/Gemm", {8, 24}, {24, 256}, {8, 256},
      MatmulOptions().withAlgorithm({"blocked"})};
  const Reorder features_7_MaxPool_grad_3{"/features/features.7/MaxPool", as(classifier_0_grad, {8, 16, 4, 4}),
      features_7_MaxPool_grad, {}};
  const MaxPool features_7_MaxPool_grad_4{"/features/features.7/MaxPool", {8, 16, 8, 8}, {8, 16, 4, 4},
      {{2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}}};
  const Fused<ReluBackward> features_6_Relu_grad{"/features/features.6/Relu", {8, 16, 8, 8}, Layout::NHWC,
      {features_7_MaxPool_grad_2, features_5_y}, {features_7_MaxPool_grad_2}, {}};
  const Conv features_5_dw{"/features/features.5/Conv", ConvPass::BackwardWeight, {8, 16, 8, 8}, {16, 16, 3, 3},
      {8, 16, 8, 8}, {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}}, ConvOptions().withAlgorithm({"blocked"}).withBias(true)};
  const Conv features_5_dx_2{"/features/features.5/Conv", ConvPass::BackwardData, {8, 16, 8, 8}, {16, 16, 3, 3},
      {8, 16, 8, 8}, {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}}, ConvOptions().withAlgorithm({"blocked"})};
  const Fused<ReluBackward> features_4_Relu_grad{"/features/features.4/Relu", {8, 16, 8, 8}, Layout::NHWC,
      {features_5_dx, features_3_y}, {features_5_dx}, {}};
  const Conv features_3_dw{"/features/features.3/Conv", ConvPass::BackwardWeight, {8, 8, 8, 8}, {16, 8, 3, 3},
      {8, 16, 8, 8}, {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}}, ConvOptions().withAlgorithm({"blocked"}).withBias(true)};
  const Conv features_3_dx_2{"/features/features.3/Conv", ConvPass::BackwardData, {8, 8, 8, 8}, {16, 8, 3, 3},
      {8, 16, 8, 8}, {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}}, ConvOptions().withAlgorithm({"blocked"})};
  const MaxPool features_2_MaxPool_grad_2{"/features/features.2/MaxPool", {8, 8, 16, 16}, {8, 8, 8, 8},
      {{2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}}};
  const Fused<ReluBackward> features_1_Relu_grad{"/features/features.1/Relu", {8, 8, 16, 16}, Layout::NHWC,
      {features_2_MaxPool_grad, features_0_y_back}, {features_2_MaxPool_grad}, {}};
  const Conv features_0_dw{"/features/features.0/Conv", ConvPass::BackwardWeight, {8, 3, 16, 16}, {8, 3, 3, 3},
      {8, 8, 16, 16}, {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}}, ConvOptions().withAlgorithm({"blocked"}).withBias(true)};
  const Conv eval_features_0{"/features/features.0/Conv", ConvPass::Forward, {8, 3, 16, 16}, {8, 3, 3, 3},
      {8, 8, 16, 16}, {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}}, ConvOptions().withAlgorithm({"jit:sse41"})
      .withBias(true)};
  const Fused<Relu> eval_features_1_Relu{"/features/features.1/Relu", {8, 8, 16, 16}, Layout::NHWC, {features_0_y_2},
      {features_0_y_2}, {}};
  const MaxPool eval_features_2_MaxPool{"/features/features.2/MaxPool", {8, 8, 16, 16}, {8, 8, 8, 8},
      {{2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}}};
  const Conv eval_features_3{"/features/features.3/Conv", ConvPass::Forward, {8, 8, 8, 8}, {16, 8, 3, 3}, {8, 16, 8, 8},
      {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}}, ConvOptions().withAlgorithm({"jit:sse41"}).withBias(true)};
  const Fused<Relu> eval_features_4_Relu{"/features/features.4/Relu", {8, 16, 8, 8}, Layout::NHWC, {features_3_y_2},
      {features_3_y_2}, {}};
  const Conv eval_features_5{"/features/features.5/Conv", ConvPass::Forward, {8, 16, 8, 8}, {16, 16, 3, 3},
      {8, 16, 8, 8}, {{3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}}, ConvOptions().withAlgorithm({"jit:sse41"}).withBias(true)};
  const Fused<Relu> eval_features_6_Relu{"/features/features.6/Relu", {8, 16, 8, 8}, Layout::NHWC, {features_5_y_2},
      {features_5_y_2}, {}};
  const MaxPool eval_features_7_MaxPool{"/features/features.7/MaxPool", {8, 16, 8, 8}, {8, 16, 4, 4},
      {{2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}}};
  const Reorder eval_flatten{"/Flatten", features_7_MaxPool_y_2, flatten_y_2, {}};
  const Matmul eval_classifier_0{"/classifier/classifier.0/Gemm", {8, 256}, {24, 256}, {8, 24},
      MatmulOptions().withAlgorithm({"blocked"}).withBias({24}).withTransposeB(true)};
  const Fused<Relu> eval_classifier_1_Relu{"/classifier/classifier.1/Relu", {8, 24}, Layout::RowMajor,
      {classifier_0_y_2}, {classifier_0_y_2}, {}};
  const Matmul eval_classifier_2{"/classifier/classifier.2/Gemm", {8, 24}, {10, 24}, {8, 10},
      MatmulOptions().withAlgorithm({"blocked"}).withBias({10}).withTransposeB(true)};
  const Loss eval_loss{"loss", LossKind::SoftmaxCrossEntropy, {8, 10}};
  const Loss eval_loss_2{"loss", LossKind::SoftmaxCrossEntropy, {8, 10}};
};
static std::unique_ptr<const Kernels> k;

SLUICE_SEQUENCE static void makeKernels() {
  k = std::make_unique<const Kernels>();
  k->features_0.checkWorkspace(features_0_y_scratch);
  k->features_3.checkWorkspace(features_3_y_scratch);
  k->features_5.checkWorkspace(features_5_y_scratch);
  k->classifier_0.checkWorkspace(classifier_0_y_scratch);
  k->classifier_2.checkWorkspace(classifier_2_y_scratch);
  k->loss.checkWorkspace(loss_value_scratch);
  k->classifier_2_grad_2.checkWorkspace(classifier_2_weight_grad_scratch);
  k->classifier_2_grad_3.checkWorkspace(classifier_2_bias_grad_scratch);
  k->classifier_2_grad_4.checkWorkspace(classifier_2_grad_scratch);
  k->classifier_0_grad_2.checkWorkspace(classifier_0_weight_grad_scratch);
  k->classifier_0_grad_3.checkWorkspace(classifier_0_bias_grad_scratch);
  k->classifier_0_grad_4.checkWorkspace(classifier_0_grad_scratch);
  k->features_5_dw.checkWorkspace(features_5_weight_grad_scratch);
  k->features_5_dx_2.checkWorkspace(features_5_dx_scratch);
  k->features_3_dw.checkWorkspace(features_3_weight_grad_scratch);
  k->features_3_dx_2.checkWorkspace(features_3_dx_scratch);
  k->features_0_dw.checkWorkspace(features_0_weight_grad_scratch);
  k->eval_features_0.checkWorkspace(features_0_y_scratch_2);
  k->eval_features_3.checkWorkspace(features_3_y_scratch_2);
  k->eval_features_5.checkWorkspace(features_5_y_scratch_2);
  k->eval_classifier_0.checkWorkspace(classifier_0_y_scratch_2);
  k->eval_classifier_2.checkWorkspace(classifier_2_y_scratch_2);
  k->eval_loss.checkWorkspace(loss_value_scratch_2);
}

// ---- One training step.
SLUICE_SEQUENCE static void forward(Session &s) {
  // /features/features.0/Conv
  k->features_0.forward(s.compute, s.batch(input), features_0_weight, features_0_bias, features_0_y,
      features_0_y_scratch);
  // /features/features.1/Relu
  k->features_1_Relu.run(s.compute, {features_0_y}, {features_0_y}, {}, none);
  s.compute.record(features_0_y_ready);
  s.toHost.wait(features_0_y_ready);
  // /features/features.0/Conv: 64.0 KiB leave the device
  copyToHost(s.toHost, features_0_y, features_0_y_host, "/features/features.0/Conv");
  s.toHost.record(features_0_y_host_copied);
  // /features/features.2/MaxPool
  k->features_2_MaxPool.forward(s.compute, features_0_y, features_2_MaxPool_y, features_2_MaxPool_indices, none);
  // /features/features.3/Conv
  k->features_3.forward(s.compute, features_2_MaxPool_y, features_3_weight, features_3_bias, features_3_y,
      features_3_y_scratch);
  s.compute.wait(features_0_y_host_copied);
  s.release(features_0_y);
  // /features/features.4/Relu
  k->features_4_Relu.run(s.compute, {features_3_y}, {features_3_y}, {}, none);
  // /features/features.5/Conv
  k->features_5.forward(s.compute, features_3_y, features_5_weight, features_5_bias, features_5_y,
      features_5_y_scratch);
  // /features/features.6/Relu
  k->features_6_Relu.run(s.compute, {features_5_y}, {features_5_y}, {}, none);
  // /features/features.7/MaxPool
  k->features_7_MaxPool.forward(s.compute, features_5_y, features_7_MaxPool_y, features_7_MaxPool_indices, none);
  // /Flatten
  k->flatten.run(s.compute, features_7_MaxPool_y, flatten_y);
  s.release(features_7_MaxPool_y);
  // /classifier/classifier.0/Gemm
  k->classifier_0.run(s.compute, as(flatten_y, {8, 256}), classifier_0_weight, classifier_0_bias, classifier_0_y,
      classifier_0_y_scratch);
  // /classifier/classifier.1/Relu
  k->classifier_1_Relu.run(s.compute, {classifier_0_y}, {classifier_0_y}, {}, none);
  // /classifier/classifier.2/Gemm
  k->classifier_2.run(s.compute, classifier_0_y, classifier_2_weight, classifier_2_bias, classifier_2_y,
      classifier_2_y_scratch);
  // loss
  k->loss.forward(s.compute, classifier_2_y, s.batch(target), loss_value, loss_value_scratch);
}

// Gradients, and each parameter's update as soon as nothing reads the parameter any more.
SLUICE_SEQUENCE static void backward(Session &s) {
  k->loss_grad.backward(s.compute, classifier_2_y, s.batch(target), classifier_2_y);
  // /classifier/classifier.2/Gemm
  k->classifier_2_grad_2.run(s.compute, classifier_2_y, classifier_0_y, none, classifier_2_weight_grad,
      classifier_2_weight_grad_scratch);
  k->classifier_2_grad_3.run(s.compute, classifier_2_y, classifier_2_bias_grad, classifier_2_bias_grad_scratch);
  k->classifier_2_grad_4.run(s.compute, classifier_2_y, classifier_2_weight, none, classifier_2_grad,
      classifier_2_grad_scratch);
  s.release(classifier_2_y);
  s.captureGradient("classifier.2.weight", classifier_2_weight_grad);
  updateSgd(s.compute, ParameterId{16}, classifier_2_weight, classifier_2_weight_grad, none,
      classifier_2_weight_momentum, "/classifier/classifier.2/Gemm");
  s.release(classifier_2_weight_grad);
  s.captureGradient("classifier.2.bias", classifier_2_bias_grad);
  updateSgd(s.compute, ParameterId{18}, classifier_2_bias, classifier_2_bias_grad, none, classifier_2_bias_momentum,
      "/classifier/classifier.2/Gemm");
  s.release(classifier_2_bias_grad);
  // /classifier/classifier.1/Relu
  k->classifier_1_Relu_grad.run(s.compute, {classifier_2_grad, classifier_0_y}, {classifier_2_grad}, {}, none);
  s.release(classifier_0_y);
  // /classifier/classifier.0/Gemm
  showActivation(s, "flatten_y", flatten_y);
  k->classifier_0_grad_2.run(s.compute, classifier_2_grad, as(flatten_y, {8, 256}), none, classifier_0_weight_grad,
      classifier_0_weight_grad_scratch);
  s.release(flatten_y);
  k->classifier_0_grad_3.run(s.compute, classifier_2_grad, classifier_0_bias_grad, classifier_0_bias_grad_scratch);
  k->classifier_0_grad_4.run(s.compute, classifier_2_grad, classifier_0_weight, none, classifier_0_grad,
      classifier_0_grad_scratch);
  s.release(classifier_2_grad);
  s.captureGradient("classifier.0.weight", classifier_0_weight_grad);
  updateSgd(s.compute, ParameterId{12}, classifier_0_weight, classifier_0_weight_grad, none,
      classifier_0_weight_momentum, "/classifier/classifier.0/Gemm");
  s.release(classifier_0_weight_grad);
  s.captureGradient("classifier.0.bias", classifier_0_bias_grad);
  updateSgd(s.compute, ParameterId{14}, classifier_0_bias, classifier_0_bias_grad, none, classifier_0_bias_momentum,
      "/classifier/classifier.0/Gemm");
  s.release(classifier_0_bias_grad);
  // /features/features.7/MaxPool
  k->features_7_MaxPool_grad_3.run(s.compute, as(classifier_0_grad, {8, 16, 4, 4}), features_7_MaxPool_grad);
  s.release(classifier_0_grad);
  k->features_7_MaxPool_grad_4.backward(s.compute, features_7_MaxPool_grad, features_7_MaxPool_indices,
      features_7_MaxPool_grad_2, none);
  s.release(features_7_MaxPool_indices);
  s.release(features_7_MaxPool_grad);
  // /features/features.6/Relu
  showActivation(s, "features_5_y", features_5_y);
  k->features_6_Relu_grad.run(s.compute, {features_7_MaxPool_grad_2, features_5_y}, {features_7_MaxPool_grad_2}, {},
      none);
  s.release(features_5_y);
  // /features/features.5/Conv
  showActivation(s, "features_3_y", features_3_y);
  k->features_5_dw.backwardWeight(s.compute, features_7_MaxPool_grad_2, features_3_y, features_5_weight_grad,
      features_5_bias_grad, features_5_weight_grad_scratch);
  k->features_5_dx_2.backwardData(s.compute, features_7_MaxPool_grad_2, features_5_weight, features_5_dx,
      features_5_dx_scratch);
  s.release(features_7_MaxPool_grad_2);
  s.captureGradient("features.5.weight", features_5_weight_grad);
  updateSgd(s.compute, ParameterId{8}, features_5_weight, features_5_weight_grad, none, features_5_weight_momentum,
      "/features/features.5/Conv");
  s.release(features_5_weight_grad);
  s.captureGradient("features.5.bias", features_5_bias_grad);
  updateSgd(s.compute, ParameterId{10}, features_5_bias, features_5_bias_grad, none, features_5_bias_momentum,
      "/features/features.5/Conv");
  s.release(features_5_bias_grad);
  // /features/features.4/Relu
  k->features_4_Relu_grad.run(s.compute, {features_5_dx, features_3_y}, {features_5_dx}, {}, none);
  s.release(features_3_y);
  // /features/features.3/Conv
  showActivation(s, "features_2_MaxPool_y", features_2_MaxPool_y);
  k->features_3_dw.backwardWeight(s.compute, features_5_dx, features_2_MaxPool_y, features_3_weight_grad,
      features_3_bias_grad, features_3_weight_grad_scratch);
  s.release(features_2_MaxPool_y);
  k->features_3_dx_2.backwardData(s.compute, features_5_dx, features_3_weight, features_3_dx, features_3_dx_scratch);
  s.release(features_5_dx);
  s.compute.record(features_0_y_back_free);
  s.toDevice.wait(features_0_y_back_free);
  // /features/features.1/Relu: 64.0 KiB come back
  copyToDevice(s.toDevice, features_0_y_host, features_0_y_back, "/features/features.1/Relu");
  s.toDevice.record(features_0_y_back_copied);
  // /features/features.3/Conv
  s.captureGradient("features.3.weight", features_3_weight_grad);
  updateSgd(s.compute, ParameterId{4}, features_3_weight, features_3_weight_grad, none, features_3_weight_momentum,
      "/features/features.3/Conv");
  s.release(features_3_weight_grad);
  s.captureGradient("features.3.bias", features_3_bias_grad);
  updateSgd(s.compute, ParameterId{6}, features_3_bias, features_3_bias_grad, none, features_3_bias_momentum,
      "/features/features.3/Conv");
  s.release(features_3_bias_grad);
  // /features/features.2/MaxPool
  k->features_2_MaxPool_grad_2.backward(s.compute, features_3_dx, features_2_MaxPool_indices, features_2_MaxPool_grad,
      none);
  s.compute.wait(features_0_y_back_copied);
  s.release(features_2_MaxPool_indices);
  s.release(features_3_dx);
  // /features/features.1/Relu
  k->features_1_Relu_grad.run(s.compute, {features_2_MaxPool_grad, features_0_y_back}, {features_2_MaxPool_grad}, {},
      none);
  s.release(features_0_y_back);
  // /features/features.0/Conv
  k->features_0_dw.backwardWeight(s.compute, features_2_MaxPool_grad, s.batch(input), features_0_weight_grad,
      features_0_bias_grad, features_0_weight_grad_scratch);
  s.release(features_2_MaxPool_grad);
  s.captureGradient("features.0.weight", features_0_weight_grad);
  updateSgd(s.compute, ParameterId{0}, features_0_weight, features_0_weight_grad, none, features_0_weight_momentum,
      "/features/features.0/Conv");
  s.release(features_0_weight_grad);
  s.captureGradient("features.0.bias", features_0_bias_grad);
  updateSgd(s.compute, ParameterId{2}, features_0_bias, features_0_bias_grad, none, features_0_bias_momentum,
      "/features/features.0/Conv");
}

static void step(Session &s) {
  forward(s);
  backward(s);
}

// ---- One batch with running statistics and without dropout.
SLUICE_SEQUENCE static void evaluate(Session &s) {
  // /features/features.0/Conv
  k->eval_features_0.forward(s.compute, s.batch(input), features_0_weight, features_0_bias, features_0_y_2,
      features_0_y_scratch_2);
  // /features/features.1/Relu
  k->eval_features_1_Relu.run(s.compute, {features_0_y_2}, {features_0_y_2}, {}, none);
  // /features/features.2/MaxPool
  k->eval_features_2_MaxPool.forward(s.compute, features_0_y_2, features_2_MaxPool_y_2, features_2_MaxPool_indices_2,
      none);
  s.release(features_0_y_2);
  s.release(features_2_MaxPool_indices_2);
  // /features/features.3/Conv
  k->eval_features_3.forward(s.compute, features_2_MaxPool_y_2, features_3_weight, features_3_bias, features_3_y_2,
      features_3_y_scratch_2);
  s.release(features_2_MaxPool_y_2);
  // /features/features.4/Relu
  k->eval_features_4_Relu.run(s.compute, {features_3_y_2}, {features_3_y_2}, {}, none);
  // /features/features.5/Conv
  k->eval_features_5.forward(s.compute, features_3_y_2, features_5_weight, features_5_bias, features_5_y_2,
      features_5_y_scratch_2);
  s.release(features_3_y_2);
  // /features/features.6/Relu
  k->eval_features_6_Relu.run(s.compute, {features_5_y_2}, {features_5_y_2}, {}, none);
  // /features/features.7/MaxPool
  k->eval_features_7_MaxPool.forward(s.compute, features_5_y_2, features_7_MaxPool_y_2, features_7_MaxPool_indices_2,
      none);
  s.release(features_5_y_2);
  s.release(features_7_MaxPool_indices_2);
  // /Flatten
  k->eval_flatten.run(s.compute, features_7_MaxPool_y_2, flatten_y_2);
  s.release(features_7_MaxPool_y_2);
  // /classifier/classifier.0/Gemm
  k->eval_classifier_0.run(s.compute, as(flatten_y_2, {8, 256}), classifier_0_weight, classifier_0_bias,
      classifier_0_y_2, classifier_0_y_scratch_2);
  s.release(flatten_y_2);
  // /classifier/classifier.1/Relu
  k->eval_classifier_1_Relu.run(s.compute, {classifier_0_y_2}, {classifier_0_y_2}, {}, none);
  // /classifier/classifier.2/Gemm
  k->eval_classifier_2.run(s.compute, classifier_0_y_2, classifier_2_weight, classifier_2_bias, classifier_2_y_2,
      classifier_2_y_scratch_2);
  s.release(classifier_0_y_2);
  // loss
  k->eval_loss.forward(s.compute, classifier_2_y_2, s.batch(target), loss_value, loss_value_scratch_2);
  k->eval_loss_2.countCorrect(s.compute, classifier_2_y_2, s.batch(target), correct_count);
}

// ---- What the runtime knows about this program.
static const Variable variables[] = {
    {"features.0.weight", features_0_weight, Role::Parameter, Init::File, 0, 0, 0},
    {"features.0.weight/momentum", features_0_weight_momentum, Role::Optimizer, Init::Zero, 0, 0, -1},
    {"features.0.bias", features_0_bias, Role::Parameter, Init::File, 0, 0, 0},
    {"features.0.bias/momentum", features_0_bias_momentum, Role::Optimizer, Init::Zero, 0, 0, -1},
    {"features.3.weight", features_3_weight, Role::Parameter, Init::File, 0, 0, 0},
    {"features.3.weight/momentum", features_3_weight_momentum, Role::Optimizer, Init::Zero, 0, 0, -1},
    {"features.3.bias", features_3_bias, Role::Parameter, Init::File, 0, 0, 0},
    {"features.3.bias/momentum", features_3_bias_momentum, Role::Optimizer, Init::Zero, 0, 0, -1},
    {"features.5.weight", features_5_weight, Role::Parameter, Init::File, 0, 0, 0},
    {"features.5.weight/momentum", features_5_weight_momentum, Role::Optimizer, Init::Zero, 0, 0, -1},
    {"features.5.bias", features_5_bias, Role::Parameter, Init::File, 0, 0, 0},
    {"features.5.bias/momentum", features_5_bias_momentum, Role::Optimizer, Init::Zero, 0, 0, -1},
    {"classifier.0.weight", classifier_0_weight, Role::Parameter, Init::File, 0, 0, 0},
    {"classifier.0.weight/momentum", classifier_0_weight_momentum, Role::Optimizer, Init::Zero, 0, 0, -1},
    {"classifier.0.bias", classifier_0_bias, Role::Parameter, Init::File, 0, 0, 0},
    {"classifier.0.bias/momentum", classifier_0_bias_momentum, Role::Optimizer, Init::Zero, 0, 0, -1},
    {"classifier.2.weight", classifier_2_weight, Role::Parameter, Init::File, 0, 0, 0},
    {"classifier.2.weight/momentum", classifier_2_weight_momentum, Role::Optimizer, Init::Zero, 0, 0, -1},
    {"classifier.2.bias", classifier_2_bias, Role::Parameter, Init::File, 0, 0, 0},
    {"classifier.2.bias/momentum", classifier_2_bias_momentum, Role::Optimizer, Init::Zero, 0, 0, -1},
    {nullptr, none, Role::Constant, Init::Zero}, // end
};

static const Input inputs[] = {
    {"input", {input[0], input[1]}, input_staging, 0},
    {"target", {target[0], target[1]}, target_staging, 10, Loss::none, false, true},
};

// What is in memory in which steps, for --plan.
static const PlanRow plan[] = {
    {"features_0_y", "/features/features.0/Conv", "offload", 65536, 1, 5},
    {"features_0_y_host", "/features/features.1/Relu", "offload", 65536, 3, 40, true},
    {"features_2_MaxPool_y", "/features/features.2/MaxPool", "keep", 16384, 4, 35},
    {"features_2_MaxPool_indices", "/features/features.2/MaxPool", "keep", 4096, 4, 40},
    {"features_3_y", "/features/features.3/Conv", "keep", 32768, 5, 34},
    {"features_5_y", "/features/features.5/Conv", "keep", 32768, 7, 29},
    {"features_7_MaxPool_y", "/features/features.7/MaxPool", "", 8192, 9, 10},
    {"features_7_MaxPool_indices", "/features/features.7/MaxPool", "keep", 2048, 9, 28},
    {"flatten_y", "/Flatten", "keep", 8192, 10, 22},
    {"classifier_0_y", "/classifier/classifier.0/Gemm", "keep", 768, 11, 21},
    {"classifier_2_y", "/classifier/classifier.2/Gemm", "keep", 320, 13, 18},
    {"classifier_2_weight_grad", "/classifier/classifier.2/Gemm", "", 960, 16, 19},
    {"classifier_2_bias_grad", "/classifier/classifier.2/Gemm", "", 40, 17, 20},
    {"classifier_2_grad", "/classifier/classifier.2/Gemm", "", 768, 18, 24},
    {"classifier_0_weight_grad", "/classifier/classifier.0/Gemm", "", 24576, 22, 25},
    {"classifier_0_bias_grad", "/classifier/classifier.0/Gemm", "", 96, 23, 26},
    {"classifier_0_grad", "/classifier/classifier.0/Gemm", "", 8192, 24, 27},
    {"features_7_MaxPool_grad", "/features/features.7/MaxPool", "", 8192, 27, 28},
    {"features_7_MaxPool_grad_2", "/features/features.7/MaxPool", "", 32768, 28, 31},
    {"features_5_weight_grad", "/features/features.5/Conv", "", 9216, 30, 32},
    {"features_5_bias_grad", "/features/features.5/Conv", "", 64, 30, 33},
    {"features_5_dx", "/features/features.5/Conv", "", 32768, 31, 36},
    {"features_3_weight_grad", "/features/features.3/Conv", "", 4608, 35, 38},
    {"features_3_bias_grad", "/features/features.3/Conv", "", 64, 35, 39},
    {"features_3_dx", "/features/features.3/Conv", "", 16384, 36, 40},
    {"features_0_y_back", "/features/features.1/Relu", "", 65536, 37, 41},
    {"features_2_MaxPool_grad", "/features/features.2/MaxPool", "", 65536, 40, 42},
    {"features_0_weight_grad", "/features/features.0/Conv", "", 864, 42, 43},
    {"features_0_bias_grad", "/features/features.0/Conv", "", 32, 42, 44},
    {"features_0_y_scratch", "/features/features.0/Conv", "", 896, 1, 1},
    {"features_3_y_scratch", "/features/features.3/Conv", "", 4608, 5, 5},
    {"features_5_y_scratch", "/features/features.5/Conv", "", 9216, 7, 7},
    {"classifier_0_y_scratch", "/classifier/classifier.0/Gemm", "", 49152, 11, 11},
    {"classifier_2_y_scratch", "/classifier/classifier.2/Gemm", "", 3072, 13, 13},
    {"loss_value_scratch", "loss", "", 512, 14, 14},
    {"classifier_2_weight_grad_scratch", "/classifier/classifier.2/Gemm", "", 1536, 16, 16},
    {"classifier_2_bias_grad_scratch", "/classifier/classifier.2/Gemm", "", 80, 17, 17},
    {"classifier_2_grad_scratch", "/classifier/classifier.2/Gemm", "", 1920, 18, 18},
    {"classifier_0_weight_grad_scratch", "/classifier/classifier.0/Gemm", "", 6144, 22, 22},
    {"classifier_0_bias_grad_scratch", "/classifier/classifier.0/Gemm", "", 192, 23, 23},
    {"classifier_0_grad_scratch", "/classifier/classifier.0/Gemm", "", 18432, 24, 24},
    {"features_5_weight_grad_scratch", "/features/features.5/Conv", "", 21504, 30, 30},
    {"features_5_dx_scratch", "/features/features.5/Conv", "", 23040, 31, 31},
    {"features_3_weight_grad_scratch", "/features/features.3/Conv", "", 13824, 35, 35},
    {"features_3_dx_scratch", "/features/features.3/Conv", "", 18432, 36, 36},
    {"features_0_weight_grad_scratch", "/features/features.0/Conv", "", 17280, 42, 42},
    {"", "", "", 0, 0, 0}, // end
};

// What the plan's actions were predicted to cost a step, for the report.
static const ActionRow actions[] = {
    {"offload", OpRole::Offload, {}, 1, 65536, 4.184533E-05},
    {"", OpRole::Compute, {}, 0, 0, 0}, // end
};

// What the ops of a step do, for --roofline.
static const WorkRow work[] = {
    {"/features/features.0/Conv", "conv", 1, 884736, 91008, Precision::FP32},
    {"/features/features.1/Relu", "fused", 2, 131072, 327680, Precision::FP32},
    {"/features/features.2/MaxPool", "max_pool", 1, 8192, 86016, Precision::FP32},
    {"/features/features.3/Conv", "conv", 1, 1179648, 53824, Precision::FP32},
    {"/features/features.4/Relu", "fused", 2, 65536, 163840, Precision::FP32},
    {"/features/features.5/Conv", "conv", 1, 2359296, 74816, Precision::FP32},
    {"/features/features.6/Relu", "fused", 2, 65536, 163840, Precision::FP32},
    {"/features/features.7/MaxPool", "max_pool", 1, 4096, 43008, Precision::FP32},
    {"/Flatten", "reorder", 1, 2048, 16384, Precision::FP32},
    {"/classifier/classifier.0/Gemm", "matmul", 3, 294912, 100704, Precision::FP32},
    {"/classifier/classifier.1/Relu", "fused", 2, 1536, 3840, Precision::FP32},
    {"/classifier/classifier.2/Gemm", "matmul", 3, 11520, 6184, Precision::FP32},
    {"loss", "loss", 1, 1, 388, Precision::FP32},
    {"loss", "loss_backward", 1, 80, 704, Precision::FP32},
    {"/classifier/classifier.2/Gemm", "sum_to", 1, 10, 360, Precision::FP32},
    {"/classifier/classifier.2/Gemm", "update_sgd", 2, 500, 5000, Precision::FP32},
    {"/classifier/classifier.0/Gemm", "sum_to", 1, 24, 864, Precision::FP32},
    {"/classifier/classifier.0/Gemm", "update_sgd", 2, 12336, 123360, Precision::FP32},
    {"/features/features.7/MaxPool", "reorder", 1, 2048, 16384, Precision::FP32},
    {"/features/features.7/MaxPool", "max_pool_backward", 1, 8192, 43008, Precision::FP32},
    {"/features/features.5/Conv", "conv_backward_weight", 1, 2359296, 74816, Precision::FP32},
    {"/features/features.5/Conv", "conv_backward_data", 1, 2359296, 74752, Precision::FP32},
    {"/features/features.5/Conv", "update_sgd", 2, 4640, 46400, Precision::FP32},
    {"/features/features.3/Conv", "conv_backward_weight", 1, 1179648, 53824, Precision::FP32},
    {"/features/features.3/Conv", "conv_backward_data", 1, 1179648, 53760, Precision::FP32},
    {"/features/features.3/Conv", "update_sgd", 2, 2336, 23360, Precision::FP32},
    {"/features/features.2/MaxPool", "max_pool_backward", 1, 16384, 86016, Precision::FP32},
    {"/features/features.0/Conv", "conv_backward_weight", 1, 884736, 91008, Precision::FP32},
    {"/features/features.0/Conv", "update_sgd", 2, 448, 4480, Precision::FP32},
};

// Activations that stay and could be packed, for --profile-errors.
static const KeptActivation kept[] = {
    {"features_2_MaxPool_y", features_2_MaxPool_y, Comparison::None},
    {"features_3_y", features_3_y, Comparison::AboveZero},
    {"features_5_y", features_5_y, Comparison::AboveZero},
    {"flatten_y", flatten_y, Comparison::None},
};

// What evaluate leaves, and what it is compared with.
static const Output outputs[] = {
    {"output", classifier_2_y_2, 1, "softmax-cross-entropy", 1, none, false},
};

const Program program = {
    .model = "model.onnx",
    .commandLine = "sluicec model.onnx --batch=8 --cpu=x86-64-v2 --threads=2 --strategy=greedy --memory-budget=75%act "
        "--host-budget=unlimited --emit=source -o vgg.cpp",
    .strategy = "greedy",
    .identity = "17e8c6003c7c87f9",
    .batch = 8,
    .deviceBytes = 285184,
    .hostBytes = 90368,
    .deviceBase = 133632,
    .threads = 2,
    .level = 2,
    .precision = Precision::FP32,
    .events = 4,
    .predictedSecondsPerStep = 3.703592E-04,
    .predictedSecondsOfLongest = 2.138400E-05,
    .variables = variables,
    .variableCount = 20,
    .inputs = inputs,
    .inputCount = 2,
    .plan = plan,
    .planRows = 46,
    .actions = actions,
    .actionRows = 1,
    .work = work,
    .workRows = 29,
    .kept = kept,
    .keptCount = 4,
    .loss = loss_value,
    .correct = correct_count,
    .outputs = outputs,
    .outputCount = 1,
    .weightsFile = "vgg.cpp.safetensors",
    .optimizer = Program::Optimizer::Sgd,
};

} // namespace

int main(int argc, char **argv) {
  return run(argc, argv, program, {makeKernels, step, evaluate});
}
