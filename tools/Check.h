// SPDX-License-Identifier: Apache-2.0
// --check: whether a model can be trained, without planning anything.
#pragma once

#include "frontend/OnnxFile.h"
#include "tools/Driver.h"

namespace sluice {

/// Imports the model and builds its backward graph. Prints a line with what it holds and returns 0, or says all that is
/// not supported in it and returns the status of a refused model.
int checkModel(const DriverOptions &options, OnnxFile &file);

} // namespace sluice
