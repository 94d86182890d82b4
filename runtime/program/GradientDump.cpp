// SPDX-License-Identifier: Apache-2.0
// The hook runs on the compute stream while the main thread waits or gathers the next batch; nobody else looks at
// `caught`.

#include "runtime/program/GradientDump.h"

#include "runtime/files/Safetensors.h"
#include "runtime/program/TensorIO.h"

namespace sluice {

GradientDump::GradientDump(Session &session) : session(session) {
  session.onGradient = [this](const char *parameter, const Tensor &gradient, int64_t first, const void *data) {
    Gradient &copy = caught[parameter];
    if (first == 0)
      copy = {gradient, {}};
    else
      copy.tensor.shape.dims[0] += gradient.shape[0];
    const size_t before = copy.bytes.size();
    copy.bytes.resize(before + gradient.bytes());
    toLogical(gradient, data, copy.bytes.data() + before);
  };
}

// After an error in the middle of a step the hook may still be running.
GradientDump::~GradientDump() {
  try {
    session.synchronize();
  } catch (const std::exception &) {
    // Whoever destroys this is already handling the first error.
  }
  session.onGradient = nullptr;
}

void GradientDump::save(const std::string &path) {
  session.onGradient = nullptr;
  std::vector<TensorToWrite> tensors;
  for (const auto &[name, gradient] : caught) {
    auto produce = [&bytes = gradient.bytes](const TensorToWrite::Put &put) { put(bytes.data(), bytes.size()); };
    tensors.push_back({name, gradient.tensor.type, gradient.tensor.shape, produce});
  }
  writeSafetensors(path, {{"format", "sluice-gradients-1"}}, tensors);
  caught.clear();
}

} // namespace sluice
