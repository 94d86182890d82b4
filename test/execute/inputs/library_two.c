/* SPDX-License-Identifier: Apache-2.0 */
/* Two models in one program: prints the optimizers of their plans. */
#include "one.h"
#include "two.h"

#include <stdio.h>
#include <string.h>

int main(void) {
  const sluice_program *programs[2];
  programs[0] = sluice_program_one();
  programs[1] = sluice_program_two();
  for (int i = 0; i < 2; ++i) {
    sluice_options options = {0};
    sluice_model *model;
    const char *json = "";
    options.size = sizeof options;
    options.program = programs[i];
    if (sluice_open(&options, &model) != SLUICE_OK || sluice_plan(model, &json) != SLUICE_OK) {
      fprintf(stderr, "%s\n", sluice_error(model));
      return 1;
    }
    printf("%s%s", i ? " " : "", strstr(json, "\"optimizer\":\"adam\"") ? "adam" : "sgd");
    sluice_close(model);
  }
  printf("\n");
  return 0;
}
