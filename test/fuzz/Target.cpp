// SPDX-License-Identifier: Apache-2.0
// The list of targets, and what they share.
#include "test/fuzz/Target.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <limits>
#include <new>
#include <unistd.h>

namespace sluice::fuzz {

uint64_t Random::next() {
  uint64_t x = state += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

int64_t Random::number() {
  static constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  switch (below(8)) {
  case 0:
  case 1:
  case 2:
    return static_cast<int64_t>(below(5));
  case 3:
    return static_cast<int64_t>(below(20)) - 4;
  case 4: { // near a power of two, of either sign
    const uint64_t near = (uint64_t{1} << below(64)) + below(3) - 1;
    return static_cast<int64_t>(oneIn(4) ? 0 - near : near);
  }
  case 5:
    return pick(std::initializer_list<int64_t>{least, least + 1, most, most - 1, -1});
  case 6: // products of two of them overflow or just do not
    return pick(std::initializer_list<int64_t>{3037000499, 3037000500, 65536, 46341, 1000000007, 100000, 1 << 20});
  default:
    return static_cast<int64_t>(next() >> below(64));
  }
}

const std::vector<Target> &targets() {
  static const std::vector<Target> all = {
      {"model", ".onnx", runModel, mutateModel},
      {"npy", ".npy", runNpy, mutateNpy},
      {"safetensors", ".safetensors", runSafetensors, mutateSafetensors},
      {"checkpoint", ".safetensors", runCheckpoint, mutateSafetensors},
      {"recipe", ".toml", runRecipe, mutateText},
      {"image", ".png", runImage, mutateText},
      {"npz", ".npz", runNpz, mutateText},
      {"table", ".csv", runTable, mutateText},
      {"jsonlines", ".jsonl", runJsonLines, mutateText},
      {"shards", ".tar", runShards, mutateText},
      {"idx", ".gz", runIdx, mutateText},
      {"problem", ".json", runProblem, mutateText},
      {"packing", ".csv", runPacking, mutateText},
      {"profile", ".json", runProfile, mutateText},
  };
  return all;
}

const Target *findTarget(std::string_view name) {
  for (const Target &target : targets())
    if (name == target.name)
      return &target;
  return nullptr;
}

void (*onFinding)(const std::string &what) = nullptr;

void finding(const std::string &what) {
  if (onFinding)
    onFinding(what);
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Files are made anew: some file systems flush one that is cut and written again.
void writeFile(const std::string &path, const std::string &bytes) {
  unlink(path.c_str());
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  size_t done = 0;
  while (file >= 0 && done < bytes.size()) {
    ssize_t count = write(file, bytes.data() + done, bytes.size() - done);
    if (count <= 0)
      break;
    done += static_cast<size_t>(count);
  }
  if (file < 0 || done < bytes.size() || close(file) != 0) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    std::_Exit(2);
  }
}

} // namespace sluice::fuzz
