// SPDX-License-Identifier: Apache-2.0
// The functions of sluice.h: each takes its turn on the handle, and makes statuses of exceptions. Those that users call
// go through the handle's own table, see Library.h.
#include "runtime/library/Model.h"

#include "runtime/program/Failure.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>

using namespace sluice;

/// By this the compiler knows the libraries that it may write over.
__attribute__((used, section(".sluice"))) static const volatile char mark[] = "sluice-library-1";

struct sluice_model {
  const sluice_functions *const functions = &libraryFunctions; ///< stays the first member
  std::mutex mutex;                                            ///< of all but Model::cancel()
  std::atomic<std::thread::id> owner = {};                     ///< who holds it
  bool closes = false;                                         ///< a callback has asked for it
  std::unique_ptr<Model> model;                                ///< null where it could not be opened
  std::string error, json;
};

namespace {

sluice_status fail(sluice_model *handle, const Failure &failure) {
  try {
    handle->error = failure.message;
  } catch (...) {
    handle->error.clear(); // no memory for the words
  }
  return static_cast<sluice_status>(failure.status);
}

/// The turn of a call on the device, where handles share one: before that on its handle, so that nobody who waits for
/// the device has a handle that the device's holder may wait for.
class DeviceTurn {
public:
  DeviceTurn() = default;
  ~DeviceTurn() {
    if (taken)
      leaveDevice();
  }
  DeviceTurn(const DeviceTurn &) = delete;
  DeviceTurn &operator=(const DeviceTurn &) = delete;

  /// A callback may not use other handles, either, where they share a device.
  bool isRefused() const { return takeDevice && !taken; }

private:
  const bool taken = takeDevice && takeDevice();
};

/// The turn of a call on its handle.
class Turn {
public:
  explicit Turn(sluice_model *handle) : handle(handle) {
    handle->mutex.lock();
    handle->owner = std::this_thread::get_id();
  }
  ~Turn() {
    handle->owner = std::thread::id();
    const bool closes = handle->closes;
    handle->mutex.unlock();
    if (closes)
      delete handle;
  }
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;

private:
  sluice_model *const handle;
};

/// Whether the caller is a callback of a call on this handle.
bool isInside(const sluice_model *handle) { return handle->owner.load() == std::this_thread::get_id(); }

/// Runs `work`, which may throw anything. A callback that calls its own handle, or another one that has to wait for the
/// same device, would wait for itself.
template <typename Work> sluice_status guarded(sluice_model *handle, const Work &work) {
  if (!handle || isInside(handle))
    return SLUICE_USAGE;
  try {
    const DeviceTurn device;
    if (device.isRefused())
      return SLUICE_USAGE;
    const Turn turn(handle);
    try {
      if (!handle->model)
        throw UsageError(handle->error.empty() ? "the handle was not opened" : handle->error);
      work(*handle->model);
      return SLUICE_OK;
    } catch (const Cancelled &cancelled) {
      return fail(handle, {SLUICE_CANCELLED, cancelled.what()});
    } catch (...) {
      return fail(handle, failureOf(std::current_exception()));
    }
  } catch (...) {
    return SLUICE_INTERNAL;
  }
}

/// The options of a caller, who may know fewer of them.
sluice_options known(const sluice_options *given) {
  sluice_options options = {};
  if (!given)
    return options;
  if (given->size < offsetof(sluice_options, program) + sizeof(void *) || given->size > 4096)
    throw UsageError(text("options.size is ", given->size, ", set it to sizeof(sluice_options)"));
  std::memcpy(&options, given, std::min(given->size, sizeof options));
  return options;
}

sluice_status open(const sluice_options *given, sluice_model **to) {
  if (!to)
    return SLUICE_USAGE;
  *to = nullptr;
  sluice_model *handle = new (std::nothrow) sluice_model;
  if (!handle)
    return SLUICE_NO_MEMORY;
  *to = handle;
  try {
    const sluice_options options = known(given);
    const DeviceTurn device;
    if (device.isRefused())
      throw UsageError("a callback of a call on a GPU cannot open another handle of its library");
    if (lesserProcessor && *lesserProcessor())
      throw MemoryNotAvailable(lesserProcessor());
    handle->model = std::make_unique<Model>(options.program ? *options.program : *libraryProgram(), options);
    return SLUICE_OK;
  } catch (...) {
    return fail(handle, failureOf(std::current_exception()));
  }
}

void close(sluice_model *handle) {
  if (isInside(handle)) {
    handle->closes = true; // when the call ends that this is a callback of
    return;
  }
  const DeviceTurn device;
  handle->mutex.lock(); // a call that still runs ends before
  handle->mutex.unlock();
  delete handle;
}

const char *error(const sluice_model *handle) { return handle->error.c_str(); }

/// A text that a caller has to give.
std::string words(const char *given, const char *what) {
  if (!given)
    throw UsageError(text(what, " is null"));
  return given;
}

sluice_status set(sluice_model *handle, const char *name, double value) {
  return guarded(handle, [&](Model &model) { model.set(words(name, "the name"), value); });
}

sluice_status get(sluice_model *handle, const char *name, double *value) {
  return guarded(handle, [&](Model &model) {
    const double found = model.get(words(name, "the name"));
    if (value)
      *value = found;
  });
}

sluice_status step(sluice_model *handle, const sluice_tensor *inputs, int inputCount, const sluice_tensor *targets,
                   int targetCount, float *loss) {
  return guarded(handle, [&](Model &model) {
    const float found = model.step({inputs, inputCount}, {targets, targetCount});
    if (loss)
      *loss = found;
    if (!std::isfinite(found))
      throw LossNotFinite(text("the loss is ", found, " at step ", model.steps()));
  });
}

int64_t steps(sluice_model *handle) {
  int64_t found = -1;
  guarded(handle, [&](Model &model) { found = model.steps(); });
  return found;
}

sluice_status evaluate(sluice_model *handle, const sluice_tensor *inputs, int inputCount, const sluice_tensor *targets,
                       int targetCount, const char *metrics, double *loss, const char **json) {
  return guarded(handle, [&](Model &model) {
    const auto chosen = metrics ? std::optional<std::string>(metrics) : std::nullopt;
    handle->json = model.evaluate({inputs, inputCount}, {targets, targetCount}, chosen, loss);
    if (json)
      *json = handle->json.c_str();
  });
}

sluice_status predict(sluice_model *handle, const sluice_tensor *inputs, int inputCount, const sluice_output *outputs,
                      int outputCount) {
  return guarded(handle, [&](Model &model) { model.predict({inputs, inputCount}, outputs, outputCount); });
}

/// Hands out what `describe` says.
template <typename Describe> sluice_status tell(sluice_model *handle, const char **json, const Describe &describe) {
  return guarded(handle, [&](Model &model) {
    handle->json = describe(model);
    if (json)
      *json = handle->json.c_str();
  });
}

sluice_status variables(sluice_model *handle, const char **json) {
  return tell(handle, json, [](const Model &model) { return model.variables(); });
}

sluice_status plan(sluice_model *handle, const char **json) {
  return tell(handle, json, [](const Model &model) { return model.plan(); });
}

sluice_status read(sluice_model *handle, const char *name, void *data, size_t bytes) {
  return guarded(handle, [&](Model &model) { model.read(words(name, "the name"), data, bytes); });
}

sluice_status write(sluice_model *handle, const char *name, const void *data, size_t bytes) {
  return guarded(handle, [&](Model &model) { model.write(words(name, "the name"), data, bytes); });
}

sluice_status save(sluice_model *handle, const char *folder) {
  return guarded(handle, [&](Model &model) { model.save(words(folder, "the folder")); });
}

sluice_status load(sluice_model *handle, const char *path) {
  return guarded(handle, [&](Model &model) { model.load(words(path, "the path")); });
}

sluice_status init(sluice_model *handle, const char *file) {
  return guarded(handle, [&](Model &model) { model.init(words(file, "the file")); });
}

sluice_status exportTo(sluice_model *handle, const char *file) {
  return guarded(handle, [&](Model &model) { model.exportTo(words(file, "the file")); });
}

void cancel(sluice_model *handle) {
  if (handle->model)
    handle->model->cancel();
}

} // namespace

const sluice_functions sluice::libraryFunctions = {SLUICE_ABI, open,     close,    error,     set,   get,   step,
                                                   steps,      evaluate, predict,  variables, read,  write, save,
                                                   load,       init,     exportTo, plan,      cancel};

// ---- What users call.

extern "C" {

int sluice_abi(void) { return mark[0] == 's' ? SLUICE_ABI : 0; } // a linker that drops sections keeps it so

sluice_status sluice_open(const sluice_options *options, sluice_model **model) {
  const bool named = options && options->size >= offsetof(sluice_options, program) + sizeof(void *) && options->program;
  return named ? options->program->functions->open(options, model) : open(options, model);
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
}
