// SPDX-License-Identifier: Apache-2.0
// --export: the compiler (frontend/ExportTemplate.h) left an ONNX file beside the program in which the raw data of
// every trained tensor lie at known byte offsets. A copy with those bytes replaced is the trained model; no protobuf is
// needed. Or the weights alone, as PyTorch's load_state_dict takes them.
#pragma once

#include "runtime/program/Preparation.h"
#include "runtime/program/WeightNames.h"

#include <string>

namespace sluice {

/// What templates and exports begin with: a metadata entry {"sluice": "export"} of the ONNX file, as protobuf writes
/// it.
inline constexpr char exportMark[] = "\x72\x10\x0a\x06"
                                     "sluice\x12\x06"
                                     "export";

/// A key of the metadata of weights that are written here; its value is the model's name.
inline constexpr char exportedBy[] = "sluice-export";

/// Throws what exportModel() would throw before it reads the session: UsageError, DataError.
void checkExport(const WeightFile &to, const Program &program);

/// `words` are those of the flag, see WeightFile: ONNX, or safetensors by the file's ending.
void exportModel(const std::string &words, Session &session, const Program &program, const Preparation &preparation);

} // namespace sluice
