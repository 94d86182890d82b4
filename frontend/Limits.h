// SPDX-License-Identifier: Apache-2.0
// How large a model and what is made of it may be, one table of words for --limit. What a file asks for beyond them is
// refused before it costs time or memory; the defaults lie far above any model that is trained.
#ifndef SLUICE_FRONTEND_LIMITS_H
#define SLUICE_FRONTEND_LIMITS_H

#include "runtime/Result.h"
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace sluice {

struct Limits {
  int64_t nodes = 200'000;        ///< of the file, those of functions and subgraphs among them
  int64_t inlinedNodes = 200'000; ///< of the graph, once functions are inlined and loops unrolled
  int64_t rank = 6;               ///< of a tensor; the runtime holds no more than the default
  int64_t extent =
      std::numeric_limits<int32_t>::max(); ///< of a dimension; kernel libraries hold no more than the default
  int64_t elements = int64_t(1) << 40;     ///< of a tensor
  int64_t constantBytes = 1 << 30;         ///< of all values that are computed at compile time, 8 an element
  /// Of all weights in half or double precision once they are float32 in memory; a message of protobuf holds 2 GiB.
  int64_t widenedBytes = (int64_t(1) << 31) - (int64_t(1) << 26);
  int64_t compilerSeconds = 3600;            ///< until the C++ compiler has built the program
  int64_t compilerBytes = int64_t(16) << 30; ///< of addresses, for each process of the C++ compiler
};

/// Sets the limit that `NAME=N` names.
Status parseLimit(const std::string &argument, Limits &limits);
/// "nodes (200000), inlined-nodes (200000), ...", for --help.
std::string describeLimits();

/// Refuses a tensor of this shape by the end of a sentence that begins with the tensor; empty ones, too.
Status checkShape(const std::vector<int64_t> &shape, const Limits &limits);
/// "has 300 nodes, more than the limit of 200; raise it with --limit nodes=N"
std::string overLimit(const std::string &has, int64_t limit, const char *name);

} // namespace sluice

#endif
