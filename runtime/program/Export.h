// SPDX-License-Identifier: Apache-2.0
// --export: the compiler (frontend/ExportTemplate.h) left an ONNX file beside the program in which the raw data of
// every trained tensor lie at known byte offsets. A copy with those bytes replaced is the trained model; no protobuf is
// needed.
#pragma once

#include "runtime/Program.h"

#include <string>

namespace sluice {

/// What templates and exports begin with: a metadata entry {"sluice": "export"} of the ONNX file, as protobuf writes
/// it.
inline constexpr char exportMark[] = "\x72\x10\x0a\x06"
                                     "sluice\x12\x06"
                                     "export";

void exportModel(const std::string &path, Session &session, const Program &program);

} // namespace sluice
