// SPDX-License-Identifier: Apache-2.0
// planner-reproduce FOLDER [PAGE]: writes the reproduction's pages into FOLDER, all or one of them. Each ends with the
// command and the commit that it comes from.
#include "tools/bench/reproduce/Pages.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

/// Of the folder that this runs in, "and changes" where the code differs from it; "unknown" where git does not know.
static std::string commit() {
  std::string name;
  if (FILE *git = popen("git -c safe.directory='*' describe --always --exclude='*' 2>/dev/null && "
                        "(git -c safe.directory='*' diff --quiet HEAD -- passes tools || echo and changes)",
                        "r")) {
    for (char line[64]; std::fgets(line, sizeof line, git);)
      name += (name.empty() ? "" : " ") + std::string(line, std::strcspn(line, "\n"));
    pclose(git);
  }
  return name.empty() ? "unknown" : name;
}

int main(int argc, char **argv) {
  using namespace sluice::bench;
  const struct {
    const char *name;
    void (*write)(std::ostream &);
  } pages[] = {{"planning-growth", planningGrowth},
               {"1-makespan-over-bound", chainRatios},
               {"2-throughput", throughput},
               {"3-image-sizes", imageSizes},
               {"4-release", releaseRatio},
               {"5-layer-times", layerTimes},
               {"6-vdnn-pools", vdnnPools},
               {"8-vdnn-times", vdnnTimes},
               {"9-pinned-memory", pinnedMemory},
               {"11-hascoet", hascoetTables},
               {"12-freelunch-batches", freeLunchBatches},
               {"13-freelunch-tables", freeLunchTables},
               {"14-freelunch-sizes", freeLunchSizes},
               {"16-mixed", mixedSweep},
               {"split-copies", splitCopies},
               {"hidden-copies", hiddenCopies}};
  const bool known = argc < 3 || std::any_of(
                                     std::begin(pages), std::end(pages),
                                     [&](const auto &page) { return std::string(page.name) == argv[2]; });
  if (argc < 2 || argv[1][0] == '-' || !known) {
    std::fprintf(stderr, "usage: planner-reproduce FOLDER [PAGE]; pages:");
    for (const auto &page : pages)
      std::fprintf(stderr, " %s", page.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  const std::string source = commit(); // now: pages take minutes, in which the folder may move on
  for (const auto &page : pages)
    if (argc < 3 || std::string(page.name) == argv[2]) {
      std::ofstream file(std::string(argv[1]) + "/" + page.name + ".md");
      page.write(file);
      file << "\nWritten by `planner-reproduce docs/reproduction " << page.name << "` at commit " << source << ".\n";
      std::printf("wrote %s/%s.md\n", argv[1], page.name);
    }
}
