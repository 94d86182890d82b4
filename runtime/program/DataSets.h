// SPDX-License-Identifier: Apache-2.0
// The data that flags name: what is trained on, measured and predicted, which agree about classes, columns and masks.
#pragma once

#include "runtime/program/Arguments.h"
#include "runtime/program/Dataset.h"
#include "runtime/program/Metrics.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sluice {

struct Preparation;

struct DataSets {
  /// Opens what --data, --evaluate, --validation-split and --predict ask for; `seed`: of orders and splits, `tell`: see
  /// DataOptions. Throws as Dataset does, and UsageError for metrics that the program has not.
  DataSets(const Arguments &arguments, const Program &program, uint64_t seed, Tell tell = nullptr);

  std::unique_ptr<Dataset> training, evaluation, prediction; ///< null when not asked for
  std::unique_ptr<MetricChoice> metrics;                     ///< of the evaluation
  ClassNames classes;                                        ///< what they are called, as far as it is known
  bool readsTable = false;                                   ///< any of the three
  std::string knownColumns;                                  ///< of a table that is trained on, or of the weights
  std::string maskValues;                                    ///< likewise of masks, see Preparation

  /// How values are taken where files do not say it, and what is probably wrong, each once.
  void tellNotes(const std::function<void(const std::string &line, bool warns)> &tell) const;
  /// What weights are trained for on these data by these flags.
  Preparation preparation(const Arguments &arguments) const;
};

} // namespace sluice
