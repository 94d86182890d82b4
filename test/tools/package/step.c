/* SPDX-License-Identifier: Apache-2.0 */
/* One step in C. */
#include "steps.h"

#include <stdio.h>

int main(void) {
  static const float x[8 * 16] = {1, 2, 3};
  static const int64_t x_shape[] = {8, 16}, y[8] = {0, 1, 2, 3, 4, 0, 1, 2}, y_shape[] = {8};
  const sluice_tensor input = {"input", x, SLUICE_F32, 2, x_shape}, target = {"target", y, SLUICE_I64, 1, y_shape};
  sluice_options options = {0};
  sluice_model *model;
  float loss = 0;
  options.size = sizeof options;
  if (sluice_open(&options, &model) != SLUICE_OK || sluice_step(model, &input, 1, &target, 1, &loss) != SLUICE_OK) {
    fprintf(stderr, "%s\n", sluice_error(model));
    return 1;
  }
  printf("step %lld in C: %.6f\n", (long long)sluice_steps(model), loss);
  sluice_close(model);
  return 0;
}
