// SPDX-License-Identifier: Apache-2.0
// Reads what people hand to sluice-plan: chain problems in JSON and packing problems in CSV. Every mistake is an error
// with line or key.
#pragma once

#include "passes/planner/Chain.h"
#include "passes/planner/Pack.h"

#include <optional>
#include <string>

namespace sluice::planner {

struct ChainFile {
  Chain chain;
  std::optional<double> memory; ///< bytes; "memory" of the file
};

/// Reads a regular file of 64 MiB at most; false: `error` says why not. Pipes and devices, which may never end, are
/// refused.
bool readInput(const std::string &path, std::string &text, std::string &error);

/// {"kind":"chain","u_f":[...],"u_b":[...],"x":[...],"y":[...],"ex_f":[...],"ex_b":[...],"bandwidth":B,"memory":M} with
/// optional "op" and "saved"; "ex_f" and "ex_b" are 0 when missing. False: `error` says what is wrong.
bool parseChain(const std::string &text, ChainFile &file, std::string &error);

/// Planning a chain takes time that grows with the square of its stages and more.
constexpr size_t mostStages = 10'000;

/// Header with the columns id, lower, upper, size, and optionally alignment and offset, in any order; one item a line,
/// at most 100,000. Ids are printable text.
bool parseItems(const std::string &text, std::vector<PackItem> &items, std::string &error);

} // namespace sluice::planner
