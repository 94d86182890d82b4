// SPDX-License-Identifier: Apache-2.0
// What comes of an exception where a program or a library ends it.
#pragma once

#include <exception>
#include <string>

namespace sluice {

struct Failure {
  int status; ///< exit status of programs, and of calls of a library
  std::string message;
};

/// Of any exception; those of this project say what was wrong, others are internal errors.
Failure failureOf(const std::exception_ptr &thrown);

} // namespace sluice
