// SPDX-License-Identifier: Apache-2.0
// What a handle of sluice.h holds. Errors are the exceptions of runtime/Errors.h; one call at a time.
#pragma once

#include "runtime/library/FileData.h"
#include "runtime/library/Library.h"
#include "runtime/library/MemorySource.h"
#include "runtime/program/Batches.h"
#include "runtime/program/Step.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace sluice {

/// A call was cancelled.
struct Cancelled : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Model {
public:
  /// Takes all memory, and gives the weights their first values.
  Model(const sluice_program &library, const sluice_options &options);

  void set(const std::string &name, double value);
  double get(const std::string &name) const;

  /// The mean loss of the step, which may be no number.
  float step(MemorySource::Tensors inputs, MemorySource::Tensors targets);
  int64_t steps() const { return run.step; }
  /// Loss and metrics as JSON; `loss` only where there is one.
  std::string evaluate(MemorySource::Tensors inputs, MemorySource::Tensors targets,
                       const std::optional<std::string> &metrics, double *loss);
  void predict(MemorySource::Tensors inputs, const sluice_output *outputs, int count);

  /// Of files, see sluice_data_open(). `data` is one that openData() gave and closeData() did not take back; UsageError
  /// for any other, and for what its flags did not ask for.
  FileData *openData(const std::vector<std::string> &flags);
  void closeData(const FileData *data);
  std::string describeData(const FileData *data) const;
  float stepOn(const FileData *data, int64_t *epoch);
  std::string evaluateOn(const FileData *data, double *loss);
  void predictOn(const FileData *data, const sluice_output *outputs, int count);

  std::string variables() const;
  void read(const std::string &name, void *data, size_t bytes);
  void write(const std::string &name, const void *data, size_t bytes);

  void save(const std::string &folder);
  void load(const std::string &path);
  void init(const std::string &words);
  void exportTo(const std::string &words);

  std::string plan() const;
  void cancel() { cancelled = true; }

private:
  void applyHyperparameters();
  void beginSteps();
  void endStepThatFailed();
  void endStepBesideBadData(FileData &data, Position began, const DataError &error);
  void requireWhole() const;
  /// To the caller's log, if there is one; on any thread.
  void tell(const std::string &line) const noexcept;
  void throwIfCancelled();
  FileData &known(const FileData *data) const;
  /// Before anything else than the next step on the same files goes into the staging slots.
  void forgetPrefetched();
  std::string evaluate(Dataset &samples, const MetricChoice &choice, double *loss);
  void predict(Dataset &samples, const sluice_output *outputs, int count);
  std::vector<std::string> files() const;
  bool isCancelled(int64_t all);
  const Variable &variable(const std::string &name, size_t bytes) const;

  const sluice_options options;
  Program program; ///< with the files where they are
  const Entry entry;
  const OpenFileData openFiles; ///< null: the library has no formats
  std::string weightsFile, exportTemplate;
  Arguments arguments; ///< hyperparameters
  RunState run;
  std::atomic<bool> cancelled{false};
  int64_t askedBatches = 0; ///< of the running call
  std::unique_ptr<Session> session;

  MemorySource *shown = nullptr; ///< of `data`
  std::unique_ptr<Dataset> data; ///< what a step trains on, whatever its samples are
  std::optional<Batches> batches;
  std::optional<Step> stepper;
  std::vector<std::unique_ptr<FileData>> fileData;
  const FileData *prefetched = nullptr; ///< whose next batch lies in the slots; null: none does
  float lastLoss = 0;
  std::string broken; ///< what failed so that nothing is known of the weights; empty: nothing did
};

/// What sluice_plan() and sluice_variables() say.
std::string describePlan(const Program &program);
std::string describeVariables(const Program &program);

} // namespace sluice
