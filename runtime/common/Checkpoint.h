// SPDX-License-Identifier: Apache-2.0
// DIR/checkpoint.safetensors: parameters, BatchNorm and optimizer state under their ONNX names; step, position in the
// epoch, seed and optimizer as metadata. All that randomness does is a function of these, so a resumed run continues
// with the bits of an uninterrupted one, whatever exact plan either was compiled with.
#pragma once

#include "runtime/Program.h"
#include "runtime/common/Dataset.h"

#include <string>

namespace sluice {

/// What a checkpoint says besides tensors.
struct RunState {
  int64_t step = 0; ///< steps done
  Position position;
  uint64_t seed = 0;
};

/// Creates the folder when it is missing; throws DataError when a checkpoint could not be written there.
void prepareCheckpoint(const std::string &folder);

/// A former checkpoint survives every failure.
void writeCheckpoint(const std::string &folder, Session &session, const Program &program, const RunState &state);

/// Reads only the metadata. Throws DataError when this is no checkpoint of a program like this one.
RunState readRunState(const std::string &folder, const Program &program);

/// Reads the tensors. Nothing is written into the session before all of them were found to fit.
void readCheckpoint(const std::string &folder, Session &session, const Program &program);

} // namespace sluice
