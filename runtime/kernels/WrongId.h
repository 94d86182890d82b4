// SPDX-License-Identifier: Apache-2.0
// What both targets say of an integer that names nothing. Data are compared with what they name when they are read;
// what a graph computes from them, kernels find out.
#pragma once

#include "runtime/Errors.h"

#include <cstdint>

namespace sluice {

/// The kernels that index with integers, by what these name.
enum class IdUse { Row, Element, Class };

/// The error of an id outside [0, limit), at a position among the ids of the kernel of `node`. It is one of the data:
/// a graph that is right computes such ids from nothing else.
inline DataError wrongId(IdUse use, const char *node, int64_t id, int64_t position, int64_t limit) {
  const char *kernel = use == IdUse::Row ? "embedding" : use == IdUse::Element ? "selection" : "loss";
  const bool isClass = use == IdUse::Class;
  return DataError(text(kernel, " '", node, isClass ? "': class id " : "': id ", id,
                        isClass ? " of sample " : " at position ", position, " of this batch, must lie between 0 and ",
                        limit - 1));
}

} // namespace sluice
