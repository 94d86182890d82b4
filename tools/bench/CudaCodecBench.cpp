// SPDX-License-Identifier: Apache-2.0
// kernel-bench's codecs on a GPU: `cuda-codec-bench [BATCH]`. What it prints of copies is what a profile's "codecs" and
// "links" hold, in GB/s.
#include "tools/bench/CodecBench.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int argc, char **argv) try {
  sluice::benchCodecs(argc > 1 ? atoll(argv[1]) : 16);
  return 0;
} catch (const std::exception &error) {
  fprintf(stderr, "cuda-codec-bench: error: %s\n", error.what());
  return 1;
}
