// SPDX-License-Identifier: Apache-2.0
// Adapters as PEFT keeps them: tensors under its names in a safetensors file, and adapter_config.json beside it, which
// PeftModel.from_pretrained() reads. What its files call a tensor is the name in the model with adapters, without the
// adapter's own name ("default"); other trained layers are its modules_to_save, and have the names of the model without
// adapters.
#pragma once

#include "runtime/Program.h"

#include <string>

namespace sluice {

/// What PEFT's files call a trained tensor of the program.
std::string peftName(const std::string &name);

/// Throws UsageError where the program trains no adapter, several of one layer, or one that sluicec does not know,
/// whose scale nobody can say.
void checkPeft(const std::string &path, const Program &program);

/// Writes adapter_config.json into the folder of `weights`.
void writePeftConfig(const std::string &weights, const Program &program);

} // namespace sluice
