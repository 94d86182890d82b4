// SPDX-License-Identifier: Apache-2.0
// The scale of the loss of programs that compute in f16, as flags, checkpoints and logs know it; runtime/LossScale.h
// says what it is. Each step the device changes it by itself, this only looks.
#pragma once

#include "runtime/Program.h"
#include "runtime/files/Safetensors.h"
#include "runtime/program/Arguments.h"
#include "runtime/program/Log.h"

namespace sluice {

/// Steps in a row that may be skipped: by then the scale has been halved as often.
constexpr int64_t mostSkippedInRow = 50;

/// Whether it is one of the variables of LossScale.h, which checkpoints of other precisions lack.
bool belongsToLossScale(const Variable &variable);

/// Throws UsageError where --loss-scale is no scale, or this program scales nothing.
void checkLossScale(const Arguments &arguments, const Program &program);

/// Throws DataError when what `file` says of it cannot have been written by a run with so many steps.
void checkLossScale(const SafetensorsFile &file, const Program &program, int64_t steps);

/// What --loss-scale says goes into its variable, or the first scale where it is dynamic and `carried` from no
/// checkpoint.
void startLossScale(Session &session, const Program &program, const Arguments &arguments, bool carried);

class LossScaling {
public:
  LossScaling(Session &session, const Program &program, const Arguments &arguments);

  /// What a step leaves: its scale, and the number of skipped steps; absent where nothing is scaled.
  Tensor scaleTensor() const { return scale ? scale->tensor : none; }
  Tensor skippedTensor() const { return skipped ? skipped->tensor : none; }

  /// The scale of the next step, and how many were skipped in the whole training.
  struct Seen {
    float scale = 0, skipped = 0;
  };
  /// What a step has left, in order. Throws ValueNotStorable when it was the last of mostSkippedInRow steps that were
  /// skipped.
  Seen follow(float scale, float skipped);
  /// For the log.
  void describe(const Seen &seen, LogFields &fields) const;

private:
  const Variable *const scale, *const skipped; ///< null: nothing is scaled
  const bool isFixed;
  float before = 0; ///< skipped steps
  int64_t inRow = 0;
};

} // namespace sluice
