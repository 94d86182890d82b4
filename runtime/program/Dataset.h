// SPDX-License-Identifier: Apache-2.0
// Samples of training or evaluation data, gathered into batches. A data set is a folder of .npy files, one per input,
// or made up ("synthetic"). An epoch is floor(N / batch) batches, in file order or in an order drawn from (seed,
// epoch).
#pragma once

#include "runtime/Program.h"
#include "runtime/files/Npy.h"

#include <string>
#include <vector>

namespace sluice {

/// Where a run stands: the first sample of the next batch, counted in the epoch's order. Kept in checkpoints.
struct Position {
  int64_t epoch = 0, sample = 0;
};

class Dataset {
public:
  /// `where` is a folder or "synthetic". Throws DataError when files do not fit the program or hold less than one
  /// batch.
  Dataset(const std::string &where, const Program &program, uint64_t seed, bool shuffle);

  /// Paths of its files.
  std::vector<std::string> paths() const;
  int64_t samples() const { return count; }
  int64_t batches() const { return count / program.batch; }
  int64_t dropped() const { return count % program.batch; }

  /// The position itself while its epoch still has a whole batch, else the begin of the next epoch.
  Position normalize(Position position) const;

  /// Fills `physical` with one input's batch in the order of the staging tensor, with that many threads at most. Throws
  /// DataError for an I64 value out of range, naming file and sample.
  void gather(int input, Position position, void *physical, int threads = 1);

private:
  void openFiles(const std::string &folder);
  void checkFile(const NpyFile &file, const Input &input) const;
  void readSamples(int input, int64_t first, int64_t samples, std::vector<char> &buffer) const;
  void checkAllRanges(int input) const;
  void checkRange(int input, int64_t sample, const void *values) const;
  void drawSample(int input, int64_t sample, void *values) const;
  int64_t sampleAt(Position position);
  void gatherSamples(int input, int64_t begin, int64_t end, std::vector<char> &buffer, char *physical) const;

  const Program &program;
  uint64_t seed;
  bool shuffle;
  int64_t count = 0;
  std::vector<NpyFile> files;                   ///< one per input; empty: synthetic
  std::vector<std::vector<char>> sampleBuffers; ///< one a thread
  std::vector<int64_t> gathered;                ///< samples of the batch that is gathered
  std::vector<uint32_t> order;                  ///< of epoch `orderEpoch`, when shuffled
  int64_t orderEpoch = -1;
};

} // namespace sluice
