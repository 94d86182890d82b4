// SPDX-License-Identifier: Apache-2.0
// What users call: goes through the handle's own table, see Library.h.
#include "runtime/library/Handle.h"

#include <cstddef>

using namespace sluice;

/// By this the compiler knows the libraries that it may write over.
__attribute__((used, section(".sluice"))) static const volatile char mark[] = "sluice-library-1";

/// Whether the functions of files are in the table of a handle, which another sluicec may have made.
static bool knowsFiles(const sluice_model *model) { return model && model->functions->version >> 16 >= 1; }

extern "C" {

int sluice_abi(void) { return mark[0] == 's' ? SLUICE_ABI : 0; } // a linker that drops sections keeps it so

sluice_status sluice_open(const sluice_options *options, sluice_model **model) {
  const bool named = options && options->size >= offsetof(sluice_options, program) + sizeof(void *) && options->program;
  return named ? options->program->functions->open(options, model) : libraryFunctions.open(options, model);
}

void sluice_close(sluice_model *model) {
  if (model)
    model->functions->close(model);
}

const char *sluice_error(const sluice_model *model) { return model ? model->functions->error(model) : "no handle"; }

sluice_status sluice_set(sluice_model *model, const char *name, double value) {
  return model ? model->functions->set(model, name, value) : SLUICE_USAGE;
}

sluice_status sluice_get(sluice_model *model, const char *name, double *value) {
  return model ? model->functions->get(model, name, value) : SLUICE_USAGE;
}

sluice_status sluice_step(sluice_model *model, const sluice_tensor *inputs, int input_count,
                          const sluice_tensor *targets, int target_count, float *loss) {
  return model ? model->functions->step(model, inputs, input_count, targets, target_count, loss) : SLUICE_USAGE;
}

int64_t sluice_steps(sluice_model *model) { return model ? model->functions->steps(model) : -1; }

sluice_status sluice_evaluate(sluice_model *model, const sluice_tensor *inputs, int input_count,
                              const sluice_tensor *targets, int target_count, const char *metrics, double *loss,
                              const char **json) {
  return model ? model->functions->evaluate(model, inputs, input_count, targets, target_count, metrics, loss, json)
               : SLUICE_USAGE;
}

sluice_status sluice_predict(sluice_model *model, const sluice_tensor *inputs, int input_count,
                             const sluice_output *outputs, int output_count) {
  return model ? model->functions->predict(model, inputs, input_count, outputs, output_count) : SLUICE_USAGE;
}

sluice_status sluice_variables(sluice_model *model, const char **json) {
  return model ? model->functions->variables(model, json) : SLUICE_USAGE;
}

sluice_status sluice_read(sluice_model *model, const char *name, void *data, size_t bytes) {
  return model ? model->functions->read(model, name, data, bytes) : SLUICE_USAGE;
}

sluice_status sluice_write(sluice_model *model, const char *name, const void *data, size_t bytes) {
  return model ? model->functions->write(model, name, data, bytes) : SLUICE_USAGE;
}

sluice_status sluice_save(sluice_model *model, const char *folder) {
  return model ? model->functions->save(model, folder) : SLUICE_USAGE;
}

sluice_status sluice_load(sluice_model *model, const char *path) {
  return model ? model->functions->load(model, path) : SLUICE_USAGE;
}

sluice_status sluice_init(sluice_model *model, const char *file) {
  return model ? model->functions->init(model, file) : SLUICE_USAGE;
}

sluice_status sluice_export(sluice_model *model, const char *file) {
  return model ? model->functions->exportTo(model, file) : SLUICE_USAGE;
}

sluice_status sluice_plan(sluice_model *model, const char **json) {
  return model ? model->functions->plan(model, json) : SLUICE_USAGE;
}

void sluice_cancel(sluice_model *model) {
  if (model)
    model->functions->cancel(model);
}

sluice_status sluice_data_open(sluice_model *model, const char *const *flags, int count, sluice_data **data) {
  return knowsFiles(model) ? model->functions->dataOpen(model, flags, count, data) : SLUICE_USAGE;
}

void sluice_data_close(sluice_model *model, sluice_data *data) {
  if (knowsFiles(model))
    model->functions->dataClose(model, data);
}

sluice_status sluice_data_plan(sluice_model *model, sluice_data *data, const char **json) {
  return knowsFiles(model) ? model->functions->dataPlan(model, data, json) : SLUICE_USAGE;
}

sluice_status sluice_data_step(sluice_model *model, sluice_data *data, int64_t *epoch, float *loss) {
  return knowsFiles(model) ? model->functions->dataStep(model, data, epoch, loss) : SLUICE_USAGE;
}

sluice_status sluice_data_evaluate(sluice_model *model, sluice_data *data, double *loss, const char **json) {
  return knowsFiles(model) ? model->functions->dataEvaluate(model, data, loss, json) : SLUICE_USAGE;
}

sluice_status sluice_data_predict(sluice_model *model, sluice_data *data, const sluice_output *outputs,
                                  int output_count) {
  return knowsFiles(model) ? model->functions->dataPredict(model, data, outputs, output_count) : SLUICE_USAGE;
}
}
