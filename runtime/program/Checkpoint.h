// SPDX-License-Identifier: Apache-2.0
// DIR/checkpoint.safetensors: parameters, BatchNorm and optimizer state under their ONNX names; step, position in the
// epoch, seed and optimizer as metadata, see docs/files.md. All that randomness does is a function of these, so a
// resumed run continues with the bits of an uninterrupted one, whatever exact plan either was compiled with.
#pragma once

#include "runtime/Program.h"
#include "runtime/files/Safetensors.h"
#include "runtime/program/Dataset.h"

#include <string>

namespace sluice {

/// What a checkpoint says besides tensors.
struct RunState {
  int64_t step = 0; ///< steps done
  Position position;
  uint64_t seed = 0;
};

inline constexpr char checkpointFormat[] = "sluice-checkpoint-1";
std::string checkpointPath(const std::string &folder);
/// Of the checkpoint that --best keeps.
std::string bestCheckpointPath(const std::string &folder);

/// Throws DataError when the file says that it belongs to another model than the program's; shapes may fit by chance.
void checkIdentity(const SafetensorsFile &file, const Program &program);

/// A former checkpoint survives every failure.
void writeCheckpoint(const std::string &folder, Session &session, const Program &program, const RunState &state);
/// The same under another name, with `more` in its metadata.
void writeCheckpointFile(const std::string &path, Session &session, const Program &program, const RunState &state,
                         const Metadata &more);

/// A checkpoint to go on from. Its file is opened once: whatever another program writes meanwhile, numbers and tensors
/// are of one moment.
class SavedRun {
public:
  /// Throws DataError when this is no checkpoint of a program like this one.
  SavedRun(const std::string &folder, const Program &program);

  const RunState &state() const { return saved; }
  /// Nothing is written into the session before all tensors were found to fit.
  void load(Session &session) const;

private:
  const Program &program;
  SafetensorsFile file;
  RunState saved;
};

} // namespace sluice
