// SPDX-License-Identifier: Apache-2.0
// What a handle of sluice.h reads from files, in libraries that were made with --data-formats. Others leave the formats
// out: nothing but the pointer to openFileData() in their program refers to them.
#pragma once

#include "runtime/program/Batches.h"
#include "runtime/program/DataSets.h"
#include "runtime/program/Preparation.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

struct FileData {
  Arguments arguments; ///< the flags of data
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

/// `flags`: those that a program has for data, as on its command line. `tell` hears what whoever trains should know.
/// Throws as Dataset does, and UsageError for flags that are not of data.
std::unique_ptr<FileData> openFileData(const std::vector<std::string> &flags, const OpenedFor &how, const Tell &tell);

} // namespace sluice
