// SPDX-License-Identifier: Apache-2.0
// --export=FOLDER/model.safetensors,config: config.json beside the weights, as model hubs lay a folder out. That of the
// model that training began from, `config=FILE.json`, keeps all that it says, and gets the names of classes; without
// one it says what the program knows.
#pragma once

#include "runtime/program/Preparation.h"
#include "runtime/program/WeightNames.h"

namespace sluice {

/// Throws DataError for a FILE.json that is no JSON object, and where the config.json that would be written is
/// somebody else's; UsageError where the flag cannot be honoured.
void checkHubConfig(const WeightFile &to);

void writeHubConfig(const WeightFile &to, const Program &program, const Preparation &preparation);

} // namespace sluice
