// SPDX-License-Identifier: Apache-2.0
// Prints the workspaces of our own products: workspaces [LEVEL], as the compiler asks for them for programs of another
// level of x86-64 than its own. Linked with the runtime of that level it has to print the same without an argument.
#include "runtime/Kernels.h"
#include "runtime/host/BlockedConv.h"
#include "runtime/host/BlockedMatmul.h"
#include "runtime/host/TileForm.h"

#include <cstdio>
#include <cstdlib>

using namespace sluice;

static void printConvolution(ConvPass pass, int64_t batch, int64_t extent, int64_t in, int64_t out, int64_t window,
                             int64_t groups) {
  const Window same{{window, window}, {1, 1}, {window / 2, window / 2, window / 2, window / 2}};
  const ConvGeometry g{
      pass,  {batch, in, extent, extent}, {out, in / groups, window, window}, {batch, out, extent, extent}, same,
      groups};
  const int64_t most = BlockedConv(g).mostParts();
  std::printf("%d %d %d %d %d %d %d: %zu, %d parts %zu\n", static_cast<int>(pass), static_cast<int>(batch),
              static_cast<int>(extent), static_cast<int>(in), static_cast<int>(out), static_cast<int>(window),
              static_cast<int>(groups), BlockedConv(g).workspaceBytes(), static_cast<int>(most),
              BlockedConv(g, most).workspaceBytes());
}

int main(int argc, char **argv) {
  setThreads(3);
  const tile::PlannedFor planned(argc > 1 ? std::atoi(argv[1]) : 0);
  for (ConvPass pass : {ConvPass::Forward, ConvPass::BackwardData, ConvPass::BackwardWeight})
    for (int64_t batch : {1, 8})
      for (int64_t extent : {2, 9, 28})
        for (int64_t window : {1, 3})
          for (int64_t in : {4, 24, 40})
            for (int64_t out : {8, 20, 72})
              for (int64_t groups : {1, 4})
                printConvolution(pass, batch, extent, in, out, window, groups);
  for (int64_t n : {1, 5, 10, 20, 40, 100, 1000})
    for (int64_t k : {7, 300})
      std::printf(
          "%d %d: %zu\n", static_cast<int>(n), static_cast<int>(k),
          BlockedMatmul(MatmulShape("", {30, k}, {k, n}, {30, n}, false, false, 1, {}), false, false).workspaceBytes());
  return 0;
}
