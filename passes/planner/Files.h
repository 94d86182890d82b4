// SPDX-License-Identifier: Apache-2.0
// Reads what people hand to sluice-plan: chain problems in JSON and packing problems in CSV. Every mistake is an error
// with line or key.
#pragma once

#include "passes/planner/Chain.h"
#include "passes/planner/Pack.h"
#include "runtime/Result.h"

#include <optional>
#include <string>

namespace sluice::planner {

/// A chain problem as read.
struct ChainFile {
  Chain chain;
  std::optional<double> memory; ///< bytes; "memory" of the file
};

/// The text of a regular file of 64 MiB at most. Pipes and devices, which may never end, are refused.
Result<std::string> readInput(const std::string &path);

/// {"kind":"chain","u_f":[...],"u_b":[...],"x":[...],"y":[...],"ex_f":[...],"ex_b":[...],"bandwidth":B,"memory":M} with
/// optional "op" and "saved"; "ex_f" and "ex_b" are 0 when missing. Kinds in "op" are conv, pool, relu or act, bn or
/// norm, fc, join, concat, dropout, loss or softmax, and other. Other keys and kinds are errors, as is a key given
/// twice.
Result<ChainFile> parseChain(const std::string &text);

/// Planning a chain takes time that grows with the square of its stages and more.
constexpr size_t mostStages = 10'000;

/// Header with the columns id, lower, upper, size, and optionally alignment, offset and high (0 or not), in any order;
/// one item a line, at most 100,000. Ids are printable text.
Result<std::vector<PackItem>> parseItems(const std::string &text);

} // namespace sluice::planner
