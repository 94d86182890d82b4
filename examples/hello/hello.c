/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a model for a thousand steps on one batch: sluicec mlp.onnx --batch=8 --emit=library -o mlp */
#include "mlp.h"
#include <stdio.h>
int main(void) {
  static float x[8 * 16];
  static const int64_t x_shape[] = {8, 16}, y[8] = {0, 1, 2, 3, 4, 0, 1, 2}, y_shape[] = {8};
  const sluice_tensor input = {"input", x, SLUICE_F32, 2, x_shape}, target = {"target", y, SLUICE_I64, 1, y_shape};
  sluice_model *model;
  float loss = 0;
  for (int i = 0; i < 8 * 16; ++i)
    x[i] = (float)(i * 37 % 101) / 101;
  sluice_status status = sluice_open(NULL, &model);
  for (int i = 0; status == SLUICE_OK && i < 1000; ++i)
    status = sluice_step(model, &input, 1, &target, 1, &loss);
  if (status != SLUICE_OK)
    fprintf(stderr, "%s\n", sluice_error(model));
  else
    printf("loss after %lld steps: %g\n", (long long)sluice_steps(model), loss);
  sluice_close(model);
  return status;
}
