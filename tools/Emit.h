// SPDX-License-Identifier: Apache-2.0
// Writes what --emit asks for. Output appears under its final name only when it is complete.
#pragma once

#include "frontend/OnnxFile.h"
#include "tools/Destinations.h"
#include "tools/Driver.h"
#include "tools/Sweep.h"

#include "mlir/IR/BuiltinOps.h"

namespace sluice {

/// Whether the output itself may be written.
Status checkDestination(const DriverOptions &options, const OnnxFile &file);

/// Makes what --emit asks for of a module at its level, on standard output or at outputPath(). Errors name the file
/// that could not be written.
Status emit(const DriverOptions &options, const OnnxFile &file, mlir::ModuleOp module);

/// The report as HTML, or as CSV where the output ends in .csv.
Status writeReportFile(const std::filesystem::path &output, const Sweep &sweep, const Destinations &destinations);

} // namespace sluice
