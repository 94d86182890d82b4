// SPDX-License-Identifier: Apache-2.0
// How readers of generated programs are judged.
#pragma once

#include "test/fuzz/Target.h"

#include "runtime/Errors.h"

#include <exception>

namespace sluice::fuzz {

/// Runs a reader; what a program would answer with status 4 is a finding.
template <typename Reader> Outcome guarded(Reader reader) {
  try {
    reader();
    return Outcome::Accepted;
  } catch (const DataError &error) {
    if (error.what()[0] == '\0')
      finding("an error without a text");
    return Outcome::Refused;
  } catch (const std::exception &error) {
    finding(std::string("exit status 4: ") + error.what());
  }
}

} // namespace sluice::fuzz
