// SPDX-License-Identifier: Apache-2.0
// The functions behind sluice.h: each takes its turn on the handle, and makes statuses of exceptions.
#include "runtime/library/Handle.h"

#include "runtime/program/Failure.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <new>

using namespace sluice;

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

/// The loss of a step that is done.
void handOut(float found, const Model &model, float *loss) {
  if (loss)
    *loss = found;
  if (!std::isfinite(found))
    throw LossNotFinite(text("the loss is ", found, " at step ", model.steps()));
}

sluice_status step(sluice_model *handle, const sluice_tensor *inputs, int inputCount, const sluice_tensor *targets,
                   int targetCount, float *loss) {
  return guarded(handle,
                 [&](Model &model) { handOut(model.step({inputs, inputCount}, {targets, targetCount}), model, loss); });
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

// ---- Samples of files. A sluice_data is a FileData.

FileData *dataOf(sluice_data *data) { return reinterpret_cast<FileData *>(data); }

sluice_status dataOpen(sluice_model *handle, const char *const *flags, int count, sluice_data **data) {
  if (data)
    *data = nullptr;
  return guarded(handle, [&](Model &model) {
    if (!data || count < 0 || (count > 0 && !flags))
      throw UsageError(!data ? "there is no place for the data" : "flags are null, or fewer than none");
    std::vector<std::string> list;
    for (int i = 0; i < count; ++i)
      list.push_back(words(flags[i], "a flag"));
    *data = reinterpret_cast<sluice_data *>(model.openData(list));
  });
}

void dataClose(sluice_model *handle, sluice_data *data) {
  guarded(handle, [&](Model &model) {
    if (data)
      model.closeData(dataOf(data));
  });
}

sluice_status dataPlan(sluice_model *handle, sluice_data *data, const char **json) {
  return tell(handle, json, [&](const Model &model) { return model.describeData(dataOf(data)); });
}

sluice_status dataStep(sluice_model *handle, sluice_data *data, int64_t *epoch, float *loss) {
  return guarded(handle, [&](Model &model) { handOut(model.stepOn(dataOf(data), epoch), model, loss); });
}

sluice_status dataEvaluate(sluice_model *handle, sluice_data *data, double *loss, const char **json) {
  return tell(handle, json, [&](Model &model) { return model.evaluateOn(dataOf(data), loss); });
}

sluice_status dataPredict(sluice_model *handle, sluice_data *data, const sluice_output *outputs, int outputCount) {
  return guarded(handle, [&](Model &model) { model.predictOn(dataOf(data), outputs, outputCount); });
}

} // namespace

/// How often functions were added since SLUICE_ABI is what it is.
constexpr int addedTo = 1;

const sluice_functions sluice::libraryFunctions = {SLUICE_ABI | addedTo << 16,
                                                   open,
                                                   close,
                                                   error,
                                                   set,
                                                   get,
                                                   step,
                                                   steps,
                                                   evaluate,
                                                   predict,
                                                   variables,
                                                   read,
                                                   write,
                                                   save,
                                                   load,
                                                   init,
                                                   exportTo,
                                                   plan,
                                                   cancel,
                                                   dataOpen,
                                                   dataClose,
                                                   dataPlan,
                                                   dataStep,
                                                   dataEvaluate,
                                                   dataPredict};
