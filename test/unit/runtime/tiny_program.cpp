// SPDX-License-Identifier: Apache-2.0
// A program as the compiler would print it, small enough to check by hand: images [4,2,2,2] -> flatten -> Gemm with 3
// classes -> softmax cross-entropy, SGD with momentum. The images lie in NHWC, so that the way from the file to the
// kernels is exercised. Variants for tests come from the environment: TINY=file (weights from tiny.safetensors beside
// it), adam (a program that claims another optimizer), small-workspace (the plan reserved too little scratch), huge
// (arenas no machine has), offload (the logits leave the device), storage (they leave for a file), hang (no step ends),
// frozen and constant (so is the weight), other-model (another identity), hostile (a name that is markup), host-budget
// (no room for a copy of the variables).
#include "runtime/Runtime.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>

using namespace sluice;

// Device memory. Scratch is generous: this program is no test of the planner.
constexpr int64_t scratchBytes = 1 << 20;
constexpr Tensor weight = device(0, {3, 8});
constexpr Tensor bias = device(128, {3});
constexpr Tensor weightMomentum = device(256, {3, 8});
constexpr Tensor biasMomentum = device(384, {3});
constexpr Tensor images[2] = {device(512, {4, 2, 2, 2}, Layout::NHWC), device(640, {4, 2, 2, 2}, Layout::NHWC)};
constexpr Tensor labels[2] = {device(768, {4}, Layout::RowMajor, DataType::I64),
                              device(832, {4}, Layout::RowMajor, DataType::I64)};
constexpr Tensor flat = device(896, {4, 8});
constexpr Tensor logits = device(1024, {4, 3});
constexpr Tensor logitsGrad = device(1088, {4, 3});
constexpr Tensor weightGrad = device(1152, {3, 8});
constexpr Tensor biasGrad = device(1280, {3});
constexpr Tensor loss = device(1344, {});
constexpr Tensor correct = device(1408, {}, Layout::RowMajor, DataType::I64);
constexpr Tensor work = scratch(1536, scratchBytes);
constexpr size_t deviceBytes = 1536 + scratchBytes;

// Host memory.
constexpr Tensor stagedImages = host(0, {4, 2, 2, 2}, Layout::NHWC);
constexpr Tensor stagedLabels = host(128, {4}, Layout::RowMajor, DataType::I64);
constexpr Tensor hostLogits = host(192, {4, 3});
constexpr size_t hostBytes = 256;
constexpr Tensor storedLogits = slotIn(Space::Storage, 256, {4, 3});
constexpr size_t storageBytes = 512;

constexpr int exportOffset = 16; // tests make a template with 16 bytes in front of the weight and the bias after it

static bool variant(const char *name) {
  const char *given = getenv("TINY");
  return given && std::string(given).find(name) != std::string::npos;
}

struct Kernels {
  SLUICE_SEQUENCE Kernels() {}
  Reorder flatten{"/flatten/Flatten", images[0], flat, {}};
  Matmul fc{"/fc/Gemm", {4, 8}, {3, 8}, {4, 3}, MatmulOptions().withTransposeB(true).withBias({3})};
  Loss crossEntropy{"loss", LossKind::SoftmaxCrossEntropy, {4, 3}};
  Matmul fcWeightGrad{"/fc/Gemm", {4, 3}, {4, 8}, {3, 8}, MatmulOptions().withTransposeA(true)};
  SumTo fcBiasGrad{"/fc/Gemm", logitsGrad, biasGrad};
};
static std::unique_ptr<Kernels> k;

SLUICE_SEQUENCE static void makeKernels() {
  k = std::make_unique<Kernels>();
  if (variant("small-workspace"))
    throw MemoryNotAvailable("/fc/Gemm needs 4096 bytes of scratch, the plan reserved 1024");
}

SLUICE_SEQUENCE static void forward(Session &s) {
  k->flatten.run(s.compute, s.batch(images), flat);
  k->fc.run(s.compute, flat, weight, bias, logits, work);
  if (variant("offload")) {
    s.compute.record({0});
    s.toHost.wait({0});
    copyToHost(s.toHost, logits, hostLogits, "/fc/Gemm");
    s.toHost.record({1});
    s.toDevice.wait({1});
    copyToDevice(s.toDevice, hostLogits, logits, "/fc/Gemm");
    s.toDevice.record({2});
    s.compute.wait({2});
  }
  if (variant("storage")) {
    s.compute.record({0});
    s.storage.wait({0});
    copyToStorage(s.storage, logits, storedLogits, "/fc/Gemm");
    copyFromStorage(s.storage, storedLogits, logits, "/fc/Gemm");
    s.storage.record({2});
    s.compute.wait({2});
  }
  k->crossEntropy.forward(s.compute, logits, s.batch(labels), loss, work);
}

static void step(Session &s) {
  forward(s);
  if (variant("hang"))
    s.compute.launch("/fc/Gemm", "hang", [] {
      while (true)
        pause();
    });
  k->crossEntropy.backward(s.compute, logits, s.batch(labels), logitsGrad);
  k->fcWeightGrad.run(s.compute, logitsGrad, flat, none, weightGrad, work);
  s.captureGradient("fc.weight", weightGrad);
  updateSgd(s.compute, {}, weight, weightGrad, none, weightMomentum, "fc.weight");
  k->fcBiasGrad.run(s.compute, logitsGrad, biasGrad, work);
  s.captureGradient("fc.bias", biasGrad);
  updateSgd(s.compute, {}, bias, biasGrad, none, biasMomentum, "fc.bias");
}

SLUICE_SEQUENCE static void evaluate(Session &s) {
  forward(s);
  k->crossEntropy.countCorrect(s.compute, logits, s.batch(labels), correct);
}

int main(int argc, char **argv) {
  const Init init = variant("file") ? Init::File : Init::Kaiming;
  // As checkpoints and exports see it, the latter if it is in the file.
  const Role weightRole = variant("frozen") || variant("constant") ? Role::Constant : Role::Parameter;
  const Variable variables[] = {
      {"fc.weight", weight, weightRole, init, 8, 3, variant("constant") ? -1 : exportOffset},
      {"fc.bias", bias, Role::Parameter, variant("file") ? Init::File : Init::Zero, 0, 0, exportOffset + 96},
      {"fc.weight/momentum", weightMomentum, Role::Optimizer, Init::Zero},
      {"fc.bias/momentum", biasMomentum, Role::Optimizer, Init::Zero},
  };
  const TiedName tied[] = {{"fc.weight", "head.weight"}};
  const Input inputs[] = {{"images", {images[0], images[1]}, stagedImages},
                          {"target", {labels[0], labels[1]}, stagedLabels, 3, Loss::none, false, true}};
  const Output outputs[] = {{"logits", logits, 1, "softmax-cross-entropy"}};
  const PlanRow plan[] = {{"logits", "/fc/Gemm", "keep", 48, 1, 3}, {"flat", "/flatten/Flatten", "keep", 128, 0, 4}};

  Program program{};
  program.model =
      variant("hostile") ? "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>" : "tiny.onnx";
  program.identity = variant("other-model") ? "00000000deadbeef" : "0123456789abcdef";
  program.commandLine = "sluicec tiny.onnx --batch=4";
  program.strategy = "keep";
  program.batch = 4;
  program.deviceBytes = variant("huge") ? size_t(1) << 46 : deviceBytes;
  program.hostBytes = hostBytes;
  program.others.storage = variant("storage") ? storageBytes : 0;
  program.hostBudget = variant("host-budget") ? hostBytes + 215 : 0; // the variables are 216 bytes
  program.deviceBase = 896;
  program.threads = 1;
  program.events = 3;
  program.predictedSecondsPerStep = 1e-4;
  program.predictedSecondsOfLongest = 1e-5;
  program.variables = variables;
  program.variableCount = 4;
  program.tied = tied;
  program.tiedCount = variant("tied") ? 1 : 0;
  program.inputs = inputs;
  program.inputCount = 2;
  program.plan = plan;
  program.planRows = 2;
  program.loss = loss;
  program.correct = correct;
  program.outputs = outputs;
  program.outputCount = 1;
  program.weightsFile = variant("file") ? "tiny.safetensors" : nullptr;
  program.exportTemplate = "tiny.onnx-template";
  program.optimizer = variant("adam") ? Program::Optimizer::Adam : Program::Optimizer::Sgd;
  return run(argc, argv, program, {makeKernels, step, evaluate});
}
