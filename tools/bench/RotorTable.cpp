// SPDX-License-Identifier: Apache-2.0
// rotor-table CHAIN.json SLOTS: the seconds of rotor's table for every number of slots from 0 to SLOTS, one a line,
// `inf` where there is no schedule. For rotor_peer.py.
#include "passes/planner/Files.h"
#include "passes/strategies/Rotor.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  using namespace sluice::planner;
  const int slots = argc == 3 ? std::atoi(argv[2]) : 0;
  if (slots < 1 || slots > 10'000) {
    std::fprintf(stderr, "usage: rotor-table CHAIN.json SLOTS\n");
    return 2;
  }
  const auto text = readInput(argv[1]);
  const auto file = text ? parseChain(*text) : sluice::Error{text.error()};
  if (!file) {
    std::fprintf(stderr, "rotor-table: error: %s: %s\n", argv[1], file.error().c_str());
    return 1;
  }
  const RotorTable table(file->chain, slots);
  for (int m = 0; m <= slots; ++m)
    std::printf("%.17g\n", table.best(m));
}
