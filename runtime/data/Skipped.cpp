// SPDX-License-Identifier: Apache-2.0
// Ten are enough to see what is wrong; a million lines would hide it.

#include "runtime/data/Skipped.h"

#include "runtime/Errors.h"
#include "runtime/Printable.h"

#include <cstdio>

namespace sluice {

static constexpr int64_t told = 10;

void Skipped::say(const std::string &line) const {
  if (tell)
    tell(line);
  else
    std::fprintf(stderr, "%s\n", printable(line).c_str());
}

void Skipped::note(const std::string &what) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (++noted <= told)
    say(text("skipped: ", from, from.empty() ? "" : ": ", what, noted == told ? " (more are counted, not told)" : ""));
}

void Skipped::sayHowMany(const std::string &of) const {
  if (noted > told)
    say(text("skipped: ", noted, " in all of ", of));
}

std::string leftOutText(int64_t count) {
  return count == 0 ? "" : text(", ", count, count == 1 ? " bad one left out" : " bad ones left out");
}

} // namespace sluice
