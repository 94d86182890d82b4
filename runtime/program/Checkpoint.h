// SPDX-License-Identifier: Apache-2.0
// Checkpoints as files: parameters, frozen ones too, BatchNorm and optimizer state under their ONNX names; step,
// position in the epoch, seed and optimizer as metadata, see docs/files.md. All that randomness does is a function of
// these, so a resumed run continues with the bits of an uninterrupted one, whatever exact plan either was compiled
// with. CheckpointWriter.h writes them.
#pragma once

#include "runtime/LossScale.h"
#include "runtime/Program.h"
#include "runtime/files/Safetensors.h"
#include "runtime/program/Dataset.h"
#include "runtime/program/Plateau.h"
#include "runtime/program/Preparation.h"
#include "runtime/program/Selection.h"
#include "runtime/program/WeightNames.h"

#include <string>

namespace sluice {

/// What a checkpoint says besides tensors.
struct RunState {
  int64_t step = 0; ///< steps done
  Position position;
  uint64_t seed = 0;
  int64_t samples = 0;        ///< of the data set that `position` is in; 0: not known, or synthetic data
  std::string data = {};      ///< its fingerprint; empty: not known, or synthetic data
  bool evaluationDue = false; ///< `step` is followed by an evaluation, which has not been made
  std::string metric = {};    ///< of --best or --patience; empty: none
  Standing standing = {};     ///< by that metric
  PlateauState plateau = {};  ///< of --schedule=plateau
  Preparation preparation = {};
  std::string frozen = {}; ///< checksum of the frozen weights, which the checkpoint lacks; empty: it holds them
};

inline constexpr char checkpointFormat[] = "sluice-checkpoint-1";

/// FOLDER/checkpoint.safetensors, the newest.
std::string checkpointPath(const std::string &folder);
/// The checkpoint that --resume names: a file, or the newest of a folder.
std::string resumedPath(const std::string &fileOrFolder);

/// Throws DataError when the file says that it belongs to another model than the program's; shapes may fit by chance.
void checkIdentity(const SafetensorsFile &file, const Program &program);

/// Throws DataError when a tensor of fewer bits lies in the file in another form than the program's, whose bytes may be
/// as many.
void checkForm(const SafetensorsFile &file, const Variable &variable);

/// Whether a checkpoint holds it: all that a run may have changed, frozen weights among it, which --init replaces,
/// unless it is of what is trained alone.
inline bool isSaved(const Variable &variable, bool trainedOnly) {
  return variable.role == Role::Optimizer || (isModelTensor(variable) && (isTrained(variable) || !trainedOnly));
}

/// Of the session's frozen weights, in hexadecimal digits.
std::string frozenChecksum(Session &session, const Program &program);

Metadata metadataOf(const Program &program, const RunState &state);

/// A checkpoint to go on from. Its file is opened once: whatever another program writes meanwhile, numbers and tensors
/// are of one moment.
class SavedRun {
public:
  /// Reads all of it. Throws DataError when this is no whole checkpoint of a program like this one.
  SavedRun(const std::string &fileOrFolder, const Program &program);

  const RunState &state() const { return saved; }
  const std::string &path() const { return file.path(); }
  /// Whether the scale of a loss is among its tensors; programs of other precisions write none.
  bool carriesLossScale() const { return file.contains(lossScaleName); }
  /// Nothing is written into the session before all tensors were found to fit. Throws DataError where the session's
  /// frozen weights are not those of a checkpoint that lacks them.
  void load(Session &session) const;
  /// Whether the checkpoint is to have it.
  bool isCarried(const Variable &variable) const;

private:
  void checkTensors() const;

  const Program &program;
  SafetensorsFile file;
  RunState saved;
};

} // namespace sluice
