// SPDX-License-Identifier: Apache-2.0
// By what a data set is known again when a run goes on.
#pragma once

#include <string>
#include <vector>

namespace sluice {

/// "3 files of 4567 bytes with checksum 0123abcd" for the files of a data set, in its order; empty for none. The sum is
/// of what differs in their paths (so that a data set may be moved), their sizes and, of at most 256 files, of up to
/// 256 pages of 4 KiB spread over them: all of a small data set, never so much of a large one that a start takes long.
/// Times do not matter. Throws DataError for a file that cannot be read.
std::string fingerprintOf(const std::vector<std::string> &paths);

} // namespace sluice
