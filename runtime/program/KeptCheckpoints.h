// SPDX-License-Identifier: Apache-2.0
// The other checkpoints of a folder: FOLDER/checkpoint-STEP.safetensors were the newest once (--keep-checkpoints),
// FOLDER/best.safetensors is what an evaluation liked best.
#pragma once

#include "runtime/program/Checkpoint.h"

#include <string>

namespace sluice {

std::string bestPath(const std::string &folder);

/// Whether the file is a checkpoint of this program's model, as far as its header tells.
bool isCheckpointOf(const std::string &path, const Program &program);

/// Gives the newest checkpoint of a folder, which one of step `next` is about to replace, its second name, under which
/// it stays. Does nothing where there is none of this program. Throws DataError when that name is a file of others.
void keepFormer(const std::string &folder, const Program &program, int64_t next);

/// Removes all of this program's former checkpoints but the `kept` that were written last.
void dropFormer(const std::string &folder, const Program &program, int64_t kept);

/// Removes the best checkpoint of another run of this program, beside which this one's would be taken for its own.
void dropBest(const std::string &folder, const Program &program);

/// The whole checkpoint of this program in `folder` that was written last, leaving out `damaged`; empty where there is
/// none.
std::string lastWholeCheckpoint(const std::string &folder, const Program &program, const std::string &damaged);

} // namespace sluice
