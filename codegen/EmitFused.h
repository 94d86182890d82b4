// SPDX-License-Identifier: Apache-2.0
// Function objects for fused regions. Regions with the same body share one.
#pragma once

#include "codegen/Text.h"
#include "ir/Sched.h"

#include <map>

namespace sluice::codegen {

/// The objects of one emitted file. Names come from the document's own, which must outlive it.
class FusedTable {
public:
  explicit FusedTable(Names &names) : names(names) {}
  /// Name of the function object for a "fused" run; printed once.
  std::string objectFor(sched::RunOp run);
  /// Definitions of all objects asked for so far.
  const std::string &definitions() const { return text; }

private:
  Names &names;
  std::map<std::string, std::string> byBody;
  std::string text;
};

} // namespace sluice::codegen
