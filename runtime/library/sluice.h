// SPDX-License-Identifier: Apache-2.0
// A model that trains, inside another program, in C99.
/* sluicec --emit=library writes libNAME.so, libNAME.a and a header, which is this file and a function for the model;
 * libraries of several models go into one process.
 *
 * Nothing is thrown, printed or ended across this interface: every call returns a status, and sluice_error() says what
 * was wrong. A handle serves one call at a time and makes others wait; handles are independent, but on a GPU those of
 * one library take turns (not those of several). Pointers that a call hands out stay valid until the next call on their
 * handle. All memory for training is taken by sluice_open(), its size is known before (sluice_options.memory_limit).
 *
 * Tensors are dense and row-major (last dimension fastest), images N, C, H, W. Samples are their first dimension. */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rises when a function or a member changes its meaning; what only adds something keeps it. */
#define SLUICE_ABI 1
int sluice_abi(void);

typedef enum sluice_status {
  SLUICE_OK = 0,
  SLUICE_BAD_DATA = 1,   /* a file, or what tensors hold */
  SLUICE_USAGE = 2,      /* a call that makes no sense for this model */
  SLUICE_NO_MEMORY = 3,  /* memory or threads cannot be had, or the limit is too low */
  SLUICE_INTERNAL = 4,   /* a defect, or the device failed */
  SLUICE_NOT_FINITE = 5, /* the loss is no number */
  SLUICE_CANCELLED = 7   /* by sluice_cancel() or a callback */
} sluice_status;

typedef enum sluice_type { SLUICE_F32 = 0, SLUICE_I64 = 1 } sluice_type;

typedef struct sluice_program sluice_program; /* what the compiler knows of a model; lives as long as its library */
typedef struct sluice_model sluice_model;     /* weights, optimizer, arenas and threads of one training */

/* Zero it, set `size`, and what is to be otherwise than usual. */
typedef struct sluice_options {
  size_t size;                   /* sizeof(sluice_options) */
  const sluice_program *program; /* sluice_program_NAME(); null: that of the library, where there is one */
  const char *files; /* folder of NAME.safetensors and NAME.onnx-template; null: that of the library, or where it is
                        linked into an executable of that */
  const char *offload_to; /* file for what the plan offloads, which must not exist; null: host memory; SLUICE_USAGE
                             with a GPU */
  uint64_t memory_limit;  /* most bytes for both arenas, or with a GPU for that of the device; 0: what the plan says */
  uint64_t seed;
  int threads; /* that compute; 0: as planned, with a GPU as many as the machine has. The first handle of a library
                  decides for all: other numbers are SLUICE_USAGE */
  /* A line of text that whoever runs this should see; may be null. On any thread. What it throws (C++) is dropped. */
  void (*log)(void *user, const char *line);
  /* Before each batch of an evaluation or a prediction; `done` samples of `all` were before it. Other than 0 cancels.
     May be null. On the thread of the call, whose handle it may close, for when the call ends, and not use otherwise;
     on a GPU that holds for all handles of the library.
     What it throws (C++) ends the call with a status. */
  int (*progress)(void *user, int64_t done, int64_t all);
  void *user;
} sluice_options;

/* Values that a call reads, as an argument of the model has them. */
typedef struct sluice_tensor {
  const char *name; /* of the model's input, "target" for what an attached loss compares with; null: by its place */
  const void *data;
  sluice_type type;
  int rank;
  const int64_t *shape;
} sluice_tensor;

/* Where a prediction goes: F32, the samples of the call in the place of the batch. */
typedef struct sluice_output {
  const char *name; /* of the model's output; null: the first one */
  void *data;
  size_t bytes; /* that `data` has room for; exactly what is written */
} sluice_output;

/* Gives a handle even where it fails (but for want of memory), which only tells its error and has to be closed. */
sluice_status sluice_open(const sluice_options *options, sluice_model **model);
void sluice_close(sluice_model *model); /* null is allowed */
/* What the last call that failed on this handle said; "" where none did. */
const char *sluice_error(const sluice_model *model);

/* Hyperparameters by the names of the program's flags: lr, momentum, weight-decay, beta1, beta2, epsilon, alpha,
   lr-decay, nesterov, clip-value, clip-norm, ema, label-smoothing, accumulate. Those that were never set are the
   optimizer's. Another name, or a value that the program's flag would not take, is SLUICE_USAGE and changes nothing. */
sluice_status sluice_set(sluice_model *model, const char *name, double value);
sluice_status sluice_get(sluice_model *model, const char *name, double *value);

/* One training step on `batch` samples, or accumulate x batch. `loss`: their mean, before the step; may be null. Inputs
   and targets are those of sluice_plan(), and are not read any more when it returns. With SLUICE_NOT_FINITE for a loss
   that is no number the step is done and `loss` written. Where tensors are refused (SLUICE_USAGE, SLUICE_BAD_DATA)
   nothing has changed. After a failure that leaves the weights unknown this, evaluations, predictions, sluice_save()
   and sluice_export() are SLUICE_INTERNAL until sluice_load(). */
sluice_status sluice_step(sluice_model *model, const sluice_tensor *inputs, int input_count,
                          const sluice_tensor *targets, int target_count, float *loss);
/* Steps done so far, before a checkpoint that was loaded, too; -1: no handle, one that was not opened, or in a
   callback of it. */
int64_t sluice_steps(sluice_model *model);

/* Loss and metrics over any number of samples, with running statistics and without dropout. `metrics`: as --metrics, or
   null. `loss` may be null, `json` too: {"samples": N, "loss": X, "accuracy": Y, ...}; null for what is no number. */
sluice_status sluice_evaluate(sluice_model *model, const sluice_tensor *inputs, int input_count,
                              const sluice_tensor *targets, int target_count, const char *metrics, double *loss,
                              const char **json);
/* The model's outputs for any number of samples, likewise. Nothing is written unless all is well. */
sluice_status sluice_predict(sluice_model *model, const sluice_tensor *inputs, int input_count,
                             const sluice_output *outputs, int output_count);

/* Samples of files, in libraries that sluicec made with --data-formats; others say SLUICE_USAGE. `flags` are those of
   the program that are about data, each "--name=value" or "--name": --data, --evaluate, --validation-split, --predict,
   --shuffle, --augment, --mean, --std, --input, --columns, --class, --workers, --on-bad-data, --metrics, --mixup,
   --seed, ... . Files are read as steps come to them; the handle's log hears what is doubtful. What is open when the
   model is closed is closed with it. */
typedef struct sluice_data sluice_data;
sluice_status sluice_data_open(sluice_model *model, const char *const *flags, int count, sluice_data **data);
void sluice_data_close(sluice_model *model, sluice_data *data); /* null is allowed */
/* {"training": {"samples": N, "batches": of an epoch}, "evaluation": {"samples": N}, "prediction": {"samples": N},
   "classes": {TARGET: [...]}}, of each what there is. */
sluice_status sluice_data_plan(sluice_model *model, sluice_data *data, const char **json);
/* As sluice_step(), on the next batch of --data, or the next `accumulate` ones; the order begins anew with each epoch.
   `epoch`: of the batch, from 0; may be null. The one after it is read while the step runs: with SLUICE_BAD_DATA for a
   sample of that, the step itself may be done, which sluice_steps() tells. */
sluice_status sluice_data_step(sluice_model *model, sluice_data *data, int64_t *epoch, float *loss);
/* As sluice_evaluate() on --evaluate or the part of --validation-split, and sluice_predict() on --predict. */
sluice_status sluice_data_evaluate(sluice_model *model, sluice_data *data, double *loss, const char **json);
sluice_status sluice_data_predict(sluice_model *model, sluice_data *data, const sluice_output *outputs,
                                  int output_count);

/* Weights, running statistics and the optimizer's state by their names, which sluice_variables() lists:
   [{"name": ..., "also": [other names], "role": "parameter", "weight": true, "type": "float32", "shape": [...],
   "bytes": N},
   ...]; a weight is what files of weights hold. `bytes` has to be exact. */
sluice_status sluice_variables(sluice_model *model, const char **json);
sluice_status sluice_read(sluice_model *model, const char *name, void *data, size_t bytes);
sluice_status sluice_write(sluice_model *model, const char *name, const void *data, size_t bytes);

/* Checkpoints of the program's --checkpoint and --resume: a folder, and for sluice_load() also a file. Weights alone:
   sluice_init() reads what --init, sluice_export() writes what --export takes. */
sluice_status sluice_save(sluice_model *model, const char *folder);
sluice_status sluice_load(sluice_model *model, const char *path);
sluice_status sluice_init(sluice_model *model, const char *file);
sluice_status sluice_export(sluice_model *model, const char *file);

/* What the plan says: {"version": 1, "compiler": which sluicec, "model": ..., "batch": N, "device_bytes": N,
   "host_bytes": N, "predicted_seconds": X, "inputs":
   [{"name", "type", "shape", "target", "predicted", "shared"}], "outputs": [{"name", "shape"}], "tensors": [{"name",
   "node", "action", "bytes", "first", "last", "host"}]}. */
sluice_status sluice_plan(sluice_model *model, const char **json);

/* Ends the evaluation or prediction that runs at its next batch, or else the next step, evaluation or prediction before
   it begins. From any thread. */
void sluice_cancel(sluice_model *model);

#ifdef __cplusplus
}
#endif

#endif
