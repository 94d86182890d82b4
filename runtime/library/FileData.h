// SPDX-License-Identifier: Apache-2.0
// What a handle of sluice.h reads from files, in libraries that were made with --data-formats. Others leave the formats
// out: nothing but the pointer to openFileData() in their program refers to them.
#pragma once

#include "runtime/library/Library.h"
#include "runtime/program/Batches.h"
#include "runtime/program/DataSets.h"
#include "runtime/program/Preparation.h"

#include <optional>

namespace sluice {

struct FileData {
  DataSets sets;
  Preparation preparation;        ///< what weights are trained for on these data
  Position position;              ///< of the next step
  std::optional<Batches> batches; ///< of the training data; nothing before the first step
};

/// What a handle knows of its weights when it opens data.
struct OpenedFor {
  const Program &program;
  const Entry &entry;
  const Preparation &preparation; ///< of the weights
  bool goesOn;                    ///< they were trained here: classes keep their numbers
  uint64_t seed;                  ///< of orders and splits, unless a flag says one
};

} // namespace sluice
