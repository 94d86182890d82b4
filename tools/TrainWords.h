// SPDX-License-Identifier: Apache-2.0
// The command line of `sluice train`, in which flags of the compiler and of the program that it makes stand together.
#pragma once

#include "runtime/Result.h"

#include <string>
#include <vector>

namespace sluice {

/// The two command lines that `sluice train` runs.
struct TrainWords {
  std::vector<std::string> compiler; ///< of sluicec, the model among them
  std::vector<std::string> program;  ///< of what it makes
  std::string made;                  ///< path of the program, as sluicec writes it
};

/// Gives each word to whom it belongs. Flags that both have go by their values (--init, --input), by whether samples
/// are predicted (--output), or to both (--threads, --force; --clip-norm, --accumulate and --ema, which the compiler
/// allows and the program sets). An error for a flag that neither has, without a model, and for flags with which
/// sluicec makes no program.
Result<TrainWords> splitTrainWords(const std::vector<std::string> &words);

} // namespace sluice
