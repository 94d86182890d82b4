// SPDX-License-Identifier: Apache-2.0
// Samples of training, evaluation or prediction, gathered into batches: which part of a source, in which order, checked
// and in the layout of the staging slots. What they are read from is runtime/data's. An epoch is floor(N / batch)
// batches, in the source's order or in one drawn from (seed, epoch).
#pragma once

#include "runtime/Errors.h"
#include "runtime/data/Augment.h"
#include "runtime/data/Fingerprint.h"
#include "runtime/data/Planes.h"
#include "runtime/data/Skipped.h"
#include "runtime/data/Source.h"
#include "runtime/program/BucketBatches.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

namespace sluice {

struct Arguments;

/// Where a run stands: the first sample of the next batch, counted in the epoch's order. Kept in checkpoints.
struct Position {
  int64_t epoch = 0, sample = 0;
};

struct DataOptions {
  std::string where;                     ///< DIR, "synthetic" or KIND:PATH
  std::string purpose = "training data"; ///< what messages call it beside its place
  uint64_t seed = 0;                     ///< of order, split and synthetic data
  bool shuffle = false;
  bool targets = true; ///< false: nothing of the target is read, its slot is filled with zeros (new data)
  bool padded = false; ///< the last samples of an epoch make a batch too, filled up with repetitions of the last one

  /// The part of the samples that is taken: floor(percent * samples / 100) of them, drawn from (seed), are Validation,
  /// the others Training.
  enum class Share { All, Training, Validation } share = Share::All;
  double validationPercent = 0;

  ImageOptions images;
  ColumnWords columns; ///< of tables
  InputKinds inputs;   ///< --input
  /// What classes are called: those of folders are matched by name. Empty: by the order of the folders.
  std::vector<std::string> classes;
  std::vector<std::string> offered; ///< instead: names that count where the folders have no others
  double mixup = 0;                 ///< above 0: the samples of a batch are mixed (Mixup.h), which must be possible
  bool skipBad = false;             ///< the next one takes the place of a sample that cannot be used; see leaveOutBad()
  std::string noSkip;     ///< without `skipBad`: why, said with the first such sample; empty: it was not asked for
  Tell tell = nullptr;    ///< hears of those that are skipped, see Skipped
  bool keepNan = false;   ///< floats that are no numbers can be used
  bool keepSizes = false; ///< those of images are remembered, for imageSize()
  int workers = 1;        ///< threads that read samples, the caller's among them
  bool cuts = false;      ///< samples that no bucket holds are cut to the largest; else they cannot be used
  std::set<int> filled;   ///< inputs of which samples may be shorter in a program of one shape, too
  /// --pad: what fills up samples of an input, by its name; others: 0, targets what does not count.
  std::map<std::string, int64_t> padding;
};

/// Elements of the inputs whose extents vary that were read, and those that they were filled up to.
struct Filled {
  int64_t own = 0, all = 0;
  double paddingPercent() const {
    return all > 0 ? 100.0 * (1 - static_cast<double>(own) / static_cast<double>(all)) : 0;
  }
};

/// What the command line says of data in general: everything but `where`, `purpose`, `shuffle`, `share`, `targets`,
/// `padded`, `mixup` and `images.random`.
DataOptions dataOptions(const Arguments &arguments, uint64_t seed);

class Dataset {
public:
  /// Throws DataError when the data do not fit the program or hold less than one batch (padded: nothing), UsageError
  /// for options that do not fit the data.
  Dataset(const DataOptions &options, const Program &program);
  /// The same of samples from elsewhere; `where` is what messages call them.
  Dataset(const DataOptions &options, const Program &program, std::unique_ptr<SampleSource> source);

  /// Paths of its files.
  std::vector<std::string> paths() const { return source->paths(); }
  /// Of these files: Fingerprint.h.
  std::string fingerprint() const { return fingerprintOf(source->paths()); }
  /// SampleSource::classNames().
  ClassNames classNames() const { return source->classNames(); }
  bool isTable() const { return options.where.compare(0, 4, "csv:") == 0; }
  /// SampleSource::knownColumns().
  std::string knownColumns() const { return source->knownColumns(); }
  /// What a sample is called: SampleSource::name() of its first input.
  std::string sampleName(int64_t index) const {
    int input = 0; // the first that is read
    while (!options.targets && input + 1 < program.inputCount && !isPredictedFrom(program, input))
      ++input;
    return source->name(input, memberAt(index));
  }
  /// SampleSource::fileStem(), or the sample's number in the data, in as many digits as the last one has.
  std::string fileStem(int64_t index) const;
  /// SampleSource::maskValues().
  std::optional<std::string> maskValues() const { return source->maskValues(); }
  /// What gives a plane of this size over the image of a sample that was gathered with `keepSizes`, the image's own
  /// size (Planes.h); nothing where the sample has no image.
  ImageChanges backToImage(int64_t index, ImageSize plane) const;
  /// SampleSource::notes(), and how samples are spread over buckets.
  std::vector<std::string> notes() const;
  /// SampleSource::warnings(), and what is to be said of the order.
  std::vector<std::string> warnings() const;
  int64_t samples() const { return count; }
  int64_t batches() const {
    return !spread.empty()  ? sortedBatches
           : options.padded ? (count + program.batch - 1) / program.batch
                            : count / program.batch;
  }
  /// Samples that no batch of an epoch holds.
  int64_t dropped() const { return options.padded ? 0 : count - batches() * program.batch; }
  /// Whether others take the place of samples that cannot be used.
  bool skipsBad() const { return options.skipBad; }
  /// Samples that were found bad so far and skipped. While nothing is gathered.
  int64_t skipped() const { return static_cast<int64_t>(bad.size()); }
  /// Takes those out of the data, so that no others count in their place: where each sample is to count once. False
  /// where all are out already, as those are that were found when it was opened `padded`. While nothing is gathered, of
  /// data that are not shuffled. Throws DataError when no sample is left.
  bool leaveOutBad();
  /// All that there were.
  int64_t samplesWithBad() const { return count + leftOut; }
  /// The batches of `padded` data, each sample in one: their first samples as positions have them, and how many samples
  /// they have. Those that are not full are filled up with repetitions of their last one. Of new data (without targets)
  /// they are in the order of the samples.
  std::vector<BucketBatch> forwardBatches();
  /// The shape of the batch at `position`: its number in Program::buckets.
  int bucketAt(Position position);
  /// The program as batches of this shape have it.
  const Program &shape(int bucket) const { return shapes[static_cast<size_t>(bucket)]; }
  /// Of all that was gathered so far. While nothing is.
  Filled filled() const { return {ownElements, allElements}; }

  /// The position itself while its epoch still has a batch, else the start of the next epoch.
  Position normalize(Position position) const;
  /// So many batches after a position at which there is one.
  Position after(Position position, int64_t batches) const;

  /// --mixup: what a sample of the batch at `position` has of itself; 1 without.
  float mixShare(Position position) const;

  /// Fills one batch of every input, in the order of its staging tensor: `staging` has an address for each, or null for
  /// one that is not wanted. Throws DataError for a sample that cannot be read or an I64 value out of range, naming
  /// file and sample: of several the one that comes first in the batch, however many workers there are.
  void gather(Position position, const std::vector<void *> &staging);

private:
  void preparePipelines();
  void checkMoved() const;
  void takeShare();
  void checkAllRanges();
  void noteClass(const char *value);
  void checkSample(int input, int64_t sample);
  void checkValues(int input, int64_t sample, const char *values, int64_t elements, int width = 0) const;
  void checkNumbers(int input, int64_t sample, const char *values, int64_t elements) const;
  void drawOrder(int64_t epoch);
  void chooseBuckets();
  int bucketFor(int64_t sample) const;
  int bucketForImage(ImageSize size) const;
  void spreadSamples();
  void preparePadding();
  bool holds(int bucket, int other) const;
  BucketSorting sorting() const;
  const BucketBatches &batchesOf(int64_t epoch);
  void readSample(int input, int64_t sample, const Tensor &one, std::vector<char> &buffer) const;
  int64_t memberAt(int64_t index) const;
  int64_t indexAt(Position first, int64_t number);
  /// Where a batch is, and what it has of an epoch.
  struct Place {
    int64_t epoch;
    int bucket;
    const std::vector<void *> &staging;
  };
  void gatherOne(int64_t index, const Place &place, size_t at, std::vector<char> &buffer);
  /// Returns the size of the first image, where there is one.
  std::optional<ImageSize> gatherSample(int64_t sample, const Place &place, size_t at, std::vector<char> &buffer) const;
  ImageChanges changesOf(int input, ImageSize size, int64_t epoch, int bucket, int64_t sample) const;
  PlaneValues readPlanes(int input, int64_t sample) const;
  void gatherImage(int input, int64_t sample, const Place &place, std::optional<ImageSize> &size,
                   std::vector<char> &buffer) const;
  void gatherPlanes(int input, int64_t sample, const Place &place, std::optional<ImageSize> size,
                    std::vector<char> &buffer) const;
  void handleBad(int64_t sample, const DataError &error);
  int64_t behindBad(int64_t index);

  const Program &program;
  const std::vector<Program> shapes; ///< of its buckets
  const DataOptions options;
  std::unique_ptr<SampleSource> source;
  /// Of each shape, for each input that takes the source's images.
  std::vector<std::vector<std::optional<ImagePipeline>>> pipelines;
  int firstImage = -1;           ///< of these, whose changes planes follow; -1: there is none
  int64_t count = 0;             ///< of this share
  std::vector<uint32_t> members; ///< of this share, rising; empty: all samples
  std::vector<uint32_t> order;   ///< of epoch `orderEpoch`, when shuffled; counts members
  int64_t orderEpoch = -1;
  std::set<int64_t> classesSeen; ///< of the target, in the order of the source, while they lie together
  int64_t classBefore = -1;
  bool byClass = true; ///< so far
  std::set<int64_t> bad;
  int64_t leftOut = 0; ///< of these
  Skipped told{options.tell, options.purpose};
  std::unordered_map<int64_t, int64_t> instead; ///< of bad ones the next good one, counting members
  std::unordered_map<int64_t, ImageSize> sizes; ///< of the images of samples, where they are to be remembered
  std::mutex badMutex;                          ///< and of these
  std::vector<uint8_t> buckets;                 ///< of all samples of the source; empty: there is one bucket
  std::vector<int64_t> spread;                  ///< samples of this share in each; likewise
  int64_t sortedBatches = 0;                    ///< of an epoch, of samples in buckets
  BucketBatches cut;                            ///< of epoch `cutEpoch`
  int64_t cutEpoch = -1;
  std::vector<std::vector<char>> fill; ///< of each input an element that fills up
  mutable std::atomic<int64_t> ownElements{0}, allElements{0};
};

} // namespace sluice
