// SPDX-License-Identifier: Apache-2.0
// One step in C++.
#include "steps.h"

#include <array>
#include <cstdio>
#include <memory>

int main() {
  const std::array<float, 8 * 16> x = {1, 2, 3};
  const std::array<int64_t, 8> y = {0, 1, 2, 3, 4, 0, 1, 2};
  const std::array<int64_t, 2> shape = {8, 16};
  const sluice_tensor input = {"input", x.data(), SLUICE_F32, 2, shape.data()};
  const sluice_tensor target = {"target", y.data(), SLUICE_I64, 1, shape.data()};
  sluice_options options = {};
  options.size = sizeof options;
  sluice_model *opened = nullptr;
  const sluice_status status = sluice_open(&options, &opened);
  const std::unique_ptr<sluice_model, void (*)(sluice_model *)> model(opened, [](sluice_model *m) { sluice_close(m); });
  float loss = 0;
  if (status != SLUICE_OK || sluice_step(model.get(), &input, 1, &target, 1, &loss) != SLUICE_OK) {
    std::fprintf(stderr, "%s\n", sluice_error(model.get()));
    return 1;
  }
  std::printf("step %lld in C++: %.6f\n", static_cast<long long>(sluice_steps(model.get())), loss);
  return 0;
}
