// SPDX-License-Identifier: Apache-2.0
// Notes of what a file says wrongly go to the error stream, as those of the compiler do.
#include "tools/FilePreparation.h"

#include "runtime/Printable.h"
#include "runtime/program/Preparation.h"

#include <onnx/onnx_pb.h>

#include <iostream>

using namespace sluice;

std::string sluice::preparationOf(const OnnxFile &file) {
  Metadata metadata;
  for (const onnx::StringStringEntryProto &entry : file.model().metadata_props())
    metadata[entry.key()] = entry.value();
  try {
    const Preparation preparation = readPreparation(metadata, file.path());
    return preparation.isEmpty() ? "" : textOf(preparation);
  } catch (const DataError &error) {
    std::cerr << "sluicec: note: " << printable(error.what()) << "; it is left out" << std::endl;
    return "";
  }
}
