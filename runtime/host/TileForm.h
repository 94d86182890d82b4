// SPDX-License-Identifier: Apache-2.0
// How our own products are cut into tiles, which decides about their workspaces. It follows from the level
// (runtime/CpuTable.h) that the runtime is compiled for, and the compiler, whose own runtime is for its machine, asks
// for that of programs for others.
#pragma once

#include "runtime/CpuTable.h"

#include <cstdint>

namespace sluice::tile {

/// Floats of a register, and rows of results that stay in registers.
struct Form {
  int64_t lanes, rows;
  bool operator==(const Form &other) const { return lanes == other.lanes && rows == other.rows; }
};

/// Less than a level: any processor. ARM has 32 registers of four floats.
constexpr Form formOf(int level) {
  return isArm(level) ? Form{4, 8} : level == 4 ? Form{16, 8} : level == 3 ? Form{8, 6} : Form{4, 6};
}

/// That of this runtime, or the one that a PlannedFor asks for.
Form form();

/// Whether oneDNN can tell what it offers: not for a level of another family of processors. On ARM it offers nothing
/// that counts here, as Debian has it.
bool asksVendor();

/// While it lives, kernels have the workspaces that they have in programs for the level (0: as usual), and cannot run.
class PlannedFor {
public:
  explicit PlannedFor(int level);
  ~PlannedFor();
  PlannedFor(const PlannedFor &) = delete;
  PlannedFor &operator=(const PlannedFor &) = delete;
};

/// Columns of a panel of the right factor with so many result columns: two vectors, or one where that is enough.
inline int64_t panelColumns(int64_t columns) { return columns > form().lanes ? 2 * form().lanes : form().lanes; }
inline int64_t panels(int64_t columns) { return (columns + panelColumns(columns) - 1) / panelColumns(columns); }

} // namespace sluice::tile
