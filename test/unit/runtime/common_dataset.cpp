// SPDX-License-Identifier: Apache-2.0
// Data sets: which sample lands where in which layout, in which order, and what does not fit.
#include "runtime/program/Dataset.h"

#include "runtime/Errors.h"
#include "runtime/program/Mixup.h"

#include "test/unit/runtime/Folder.h"

#include <numeric>
#include <set>

using namespace sluice;

// Two images of [3,2,2] and their classes in a batch.
static const Input inputs[] = {
    {"x", {}, host(0, {2, 3, 2, 2}, Layout::NHWC), 0},
    {"target", {}, host(96, {2}, Layout::RowMajor, DataType::I64), 5, Loss::none, false, true}};

static const Output attached[] = {{"y", {}, 1, "softmax-cross-entropy"}}, compared[] = {{"y", {}, 1, "mse"}};

static Program programWith(const Input *list, int count, int64_t batch = 2) {
  Program program{};
  program.batch = batch;
  program.inputs = list;
  program.inputCount = count;
  program.outputs = attached;
  program.outputCount = 1;
  return program;
}

/// `samples` images whose element e of sample n is 100 n + e, classes n % 5.
static void writeImages(const Folder &folder, int samples) {
  std::vector<float> values;
  std::vector<int64_t> classes;
  for (int n = 0; n < samples; ++n) {
    classes.push_back(n % 5);
    for (int e = 0; e < 12; ++e)
      values.push_back(static_cast<float>(100 * n + e));
  }
  std::string count = std::to_string(samples);
  folder.write("input.npy", npyArray("<f4", "(" + count + ", 3, 2, 2)", values));
  folder.write("target.npy", npyArray("<i8", "(" + count + ",)", classes));
}

static std::vector<int64_t> classesAt(Dataset &data, Position position) {
  std::vector<int64_t> classes(2);
  data.gather(position, {nullptr, classes.data()});
  return classes;
}

static DataOptions from(const std::string &where, uint64_t seed = 0, bool shuffle = false) {
  DataOptions options;
  options.where = where;
  options.seed = seed;
  options.shuffle = shuffle;
  return options;
}

/// Moments of Beta(alpha, alpha): the mean is 1/2, the variance 1 / (4 (2 alpha + 1)), the fourth central moment
/// 3 / (16 (2 alpha + 1) (2 alpha + 3)).
TEST(Mixup, SharesAreBetaDistributed) {
  for (double alpha : {0.1, 0.4, 1.0, 1.5, 8.0}) {
    constexpr int count = 20000;
    double mean = 0, square = 0, fourth = 0;
    for (uint64_t key = 0; key < count; ++key) {
      const double share = static_cast<double>(mixupShare(alpha, key)), away = (share - 0.5) * (share - 0.5);
      EXPECT_TRUE(share >= 0 && share <= 1) << share;
      mean += share / count, square += away / count, fourth += away * away / count;
    }
    EXPECT_NEAR(mean, 0.5, 0.015) << alpha;
    EXPECT_NEAR(square * 4 * (2 * alpha + 1), 1, 0.04) << alpha;
    EXPECT_NEAR(fourth * 16 * (2 * alpha + 1) * (2 * alpha + 3) / 3, 1, 0.08) << alpha;
  }
  for (double alpha : {1e-300, 1e300})
    EXPECT_TRUE(mixupShare(alpha, 1) >= 0 && mixupShare(alpha, 1) <= 1) << alpha;
}

TEST(Mixup, MixesEachSampleWithTheOneBefore) {
  Folder folder;
  writeImages(folder, 6);
  const Program program = programWith(inputs, 2);
  DataOptions options = from(folder.path);
  options.mixup = 0.5;
  Dataset data(options, program);
  std::vector<float> values(24);
  std::vector<int64_t> classes(2);
  std::set<float> shares;
  for (const Position position : {Position{0, 0}, {0, 2}, {1, 0}}) {
    data.gather(position, {values.data(), classes.data()});
    const float share = data.mixShare(position), first = static_cast<float>(100 * position.sample),
                second = first + 100;
    EXPECT_FLOAT_EQ(values[0], share * first + (1 - share) * second);
    EXPECT_FLOAT_EQ(values[12], share * second + (1 - share) * first);
    EXPECT_EQ(classes, (std::vector<int64_t>{position.sample % 5, position.sample % 5 + 1})); // the loss mixes them
    shares.insert(share);
  }
  EXPECT_EQ(shares.size(), 3u);
}

TEST(Mixup, NeedsValuesThatCanBeMixed) {
  Program program = programWith(inputs, 2);
  EXPECT_NO_THROW(requireMixable(program));
  program.outputs = compared;
  expectError<UsageError>([&] { requireMixable(program); }, "'target' takes integers");
  program.outputCount = 0;
  expectError<UsageError>([&] { requireMixable(program); }, "needs a loss that compares with targets");
  program.batch = 1;
  expectError<UsageError>([&] { requireMixable(program); }, "mixes the samples of a batch, this program's has 1");
}

TEST(Dataset, GathersInStagingLayout) {
  Folder folder;
  writeImages(folder, 5);
  Program program = programWith(inputs, 2);
  Dataset data(from(folder.path), program);
  EXPECT_EQ(data.samples(), 5);
  EXPECT_EQ(data.batches(), 2);
  EXPECT_EQ(data.dropped(), 1);
  std::vector<float> batch(24);
  data.gather({0, 2}, {batch.data(), nullptr});
  // Sample 2: pixel 0 holds channels 0, 1, 2 = elements 0, 4, 8; pixel 1 elements 1, 5, 9.
  EXPECT_EQ(std::vector<float>(batch.begin(), batch.begin() + 6), (std::vector<float>{200, 204, 208, 201, 205, 209}));
  EXPECT_EQ(batch[12], 300);
  EXPECT_EQ(classesAt(data, {0, 2}), (std::vector<int64_t>{2, 3}));
}

TEST(Dataset, EndsEpochsAtWholeBatches) {
  Folder folder;
  writeImages(folder, 5);
  Program program = programWith(inputs, 2);
  Dataset data(from(folder.path), program);
  EXPECT_EQ(data.normalize({0, 2}).sample, 2);
  Position next = data.normalize({0, 4});
  EXPECT_EQ(next.epoch, 1);
  EXPECT_EQ(next.sample, 0);
  EXPECT_EQ(data.normalize({3, INT64_MAX}).epoch, 4);
}

TEST(Dataset, ShufflesBySeedAndEpoch) {
  Folder folder;
  const int samples = 200;
  std::vector<int64_t> ids(samples);
  std::iota(ids.begin(), ids.end(), 0);
  folder.write("input.npy", npyArray("<i8", "(200, 1)", ids));
  const Input only[] = {{"ids", {}, host(0, {10, 1}, Layout::RowMajor, DataType::I64), 0}};
  Program program = programWith(only, 1, 10);
  auto order = [&](uint64_t seed, int64_t epoch) {
    Dataset data(from(folder.path, seed, true), program);
    std::vector<int64_t> all(samples);
    for (int i = 0; i < samples; i += 10)
      data.gather({epoch, i}, {all.data() + i});
    return all;
  };
  std::vector<int64_t> first = order(1, 0);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 200u);
  EXPECT_NE(first, ids);
  EXPECT_EQ(first, order(1, 0));
  EXPECT_NE(first, order(1, 1));
  EXPECT_NE(first, order(2, 0));
}

TEST(Dataset, SyntheticDataAreAFunctionOfTheSeed) {
  Program program = programWith(inputs, 2);
  Dataset one(from("synthetic", 1), program), same(from("synthetic", 1), program), other(from("synthetic", 2), program);
  std::vector<float> a(24), b(24), c(24);
  one.gather({0, 4}, {a.data(), nullptr});
  same.gather({7, 4}, {b.data(), nullptr});
  other.gather({0, 4}, {c.data(), nullptr});
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  for (int64_t i = 0; i < one.batches(); ++i)
    for (int64_t id : classesAt(one, {0, 2 * i}))
      EXPECT_TRUE(id >= 0 && id < 5);
}

TEST(Dataset, GathersTheSameWithSeveralThreads) {
  const Input large[] = {
      {"x", {}, host(0, {9, 3, 160, 160}, Layout::NHWC), 0},
      {"target", {}, host(0, {9, 65536}, Layout::RowMajor, DataType::I64), 7, Loss::none, false, true}};
  Program program = programWith(large, 2, 9);
  DataOptions options = from("synthetic", 1, true);
  Dataset alone(options, program);
  options.workers = 4;
  Dataset together(options, program);
  const auto batch = [&](Dataset &data, int64_t first) {
    std::vector<char> x(large[0].staging.bytes()), target(large[1].staging.bytes());
    data.gather({2, first}, {x.data(), target.data()});
    return std::pair(x, target);
  };
  for (int64_t first : {0, 9})
    EXPECT_EQ(batch(alone, first), batch(together, first));
}

/// Whichever thread met them: the first sample of the batch is named.
TEST(Dataset, NamesTheFirstBadSampleOfSeveralThreads) {
  constexpr int64_t classes = 65536;
  const Input only[] = {{"ids", {}, host(0, {8, classes}, Layout::RowMajor, DataType::I64), 5}};
  Folder folder;
  std::vector<int64_t> ids(8 * classes);
  folder.write("input.npy", npyArray("<i8", "(8, 65536)", ids));
  Program program = programWith(only, 1, 8);
  DataOptions options = from(folder.path);
  options.workers = 4;
  Dataset data(options, program);
  ids[3 * classes] = ids[7 * classes] = 5; // the file changes after it was checked
  folder.write("input.npy", npyArray("<i8", "(8, 65536)", ids));
  std::vector<int64_t> batch(ids.size());
  expectError<DataError>([&] { data.gather({0, 0}, {batch.data()}); }, "sample 3 holds 5");
}

TEST(Dataset, NamesFilesOfSeveralInputs) {
  const Input two[] = {{"left", {}, host(0, {1, 1}), 0}, {"../right", {}, host(4, {1, 1}), 0}};
  Folder folder;
  folder.write("left.npy", npyArray<float>("<f4", "(1, 1)", {1}));
  Program program = programWith(two, 2, 1);
  expectError<DataError>([&] { Dataset(from(folder.path), program); }, folder / ".._right.npy");
  folder.write(".._right.npy", npyArray<float>("<f4", "(2, 1)", {1, 2}));
  expectError<DataError>([&] { Dataset(from(folder.path), program); },
                         "holds 2 samples, " + (folder / "left.npy") + " holds 1");
}

TEST(Dataset, WidensSmallerIntegersAndBooleans) {
  const Input only[] = {{"ids", {}, host(0, {2, 3}, Layout::RowMajor, DataType::I64), 0}};
  Folder folder;
  Program program = programWith(only, 1);
  auto second = [&] { // batch of a file
    std::vector<int64_t> batch(6);
    Dataset(from(folder.path), program).gather({0, 2}, {batch.data()});
    return batch;
  };
  folder.write("input.npy", npyArray<int32_t>("<i4", "(4, 3)", {9, 9, 9, 9, 9, 9, 1, -2, 3, 4, -2147483647, 6}));
  EXPECT_EQ(second(), (std::vector<int64_t>{1, -2, 3, 4, -2147483647, 6}));
  folder.write("input.npy", npyArray<uint8_t>("|b1", "(4, 3)", {1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 255}));
  EXPECT_EQ(second(), (std::vector<int64_t>{0, 1, 0, 0, 1, 255}));
}

TEST(Dataset, LetsIgnoredTargetsPass) {
  const Input only[] = {{"target", {}, host(0, {2, 2}, Layout::RowMajor, DataType::I64), 4, -100, false, true}};
  Folder folder;
  Program program = programWith(only, 1);
  folder.write("target.npy", npyArray<int64_t>("<i8", "(2, 2)", {0, -100, 3, -100}));
  std::vector<int64_t> batch(4);
  Dataset(from(folder.path), program).gather({0, 0}, {batch.data()});
  EXPECT_EQ(batch, (std::vector<int64_t>{0, -100, 3, -100}));
  folder.write("target.npy", npyArray<int64_t>("<i8", "(2, 2)", {0, -100, 3, -1}));
  expectError<DataError>([&] { Dataset(from(folder.path), program); }, "target.npy: sample 1 holds -1");
}

TEST(Dataset, RefusesWhatDoesNotFit) {
  Folder folder;
  Program program = programWith(inputs, 2);
  auto open = [&] { Dataset(from(folder.path), program); };
  expectError<DataError>(open, "cannot open " + (folder / "input.npy"));
  writeImages(folder, 1);
  expectError<DataError>(open, "holds 1 samples, one batch takes 2");
  writeImages(folder, 0);
  expectError<DataError>(open, "holds 0 samples, one batch takes 2");
  writeImages(folder, 3);
  folder.write("target.npy", npyArray<int64_t>("<i8", "(3,)", {0, 1, 5}));
  expectError<DataError>(open, "target.npy: sample 2 holds 5, 'target' must lie between 0 and 4");
  folder.write("target.npy", npyArray<int64_t>("<i8", "(3,)", {0, -1, 4}));
  expectError<DataError>(open, "sample 1 holds -1");
  folder.write("target.npy", npyArray<float>("<f4", "(3,)", {0, 1, 2}));
  expectError<DataError>(open, "is float32 (3,), input 'target' takes int64 (N,)");
  folder.write("target.npy", npyArray<int32_t>("<i4", "(3,)", {0, 1, 5}));
  expectError<DataError>(open, "target.npy: sample 2 holds 5, 'target' must lie between 0 and 4");
  folder.write("target.npy", npyArray<int64_t>("<i8", "(3, 2)", {0, 1, 2, 0, 1, 2}));
  expectError<DataError>(open, "is int64 (3, 2), input 'target' takes int64 (N,)");
  folder.write("input.npy", npyArray<float>("<f4", "()", {1}));
  expectError<DataError>(open, "is float32 (), input 'x' takes float32 (N, 3, 2, 2)");
}

/// The classes of all batches of an epoch: sample n has id n in a file that these tests write.
static std::vector<int64_t> idsOf(const DataOptions &options, const Program &program) {
  Dataset data(options, program);
  std::vector<int64_t> ids, batch(static_cast<size_t>(program.batch));
  for (int64_t i = 0; i < data.batches(); ++i, ids.insert(ids.end(), batch.begin(), batch.end()))
    data.gather({0, i * program.batch}, {batch.data()});
  ids.resize(std::min(ids.size(), static_cast<size_t>(data.samples()))); // of padded data repetitions come last
  return ids;
}

static void writeIds(const Folder &folder, int samples) {
  std::vector<int64_t> ids(static_cast<size_t>(samples));
  std::iota(ids.begin(), ids.end(), 0);
  folder.write("input.npy", npyArray("<i8", "(" + std::to_string(samples) + ",)", ids)); // for an input (N, 1)
}

static const Input idsOnly[] = {{"ids", {}, host(0, {3, 1}, Layout::RowMajor, DataType::I64), 0}};

TEST(Dataset, SplitsOnceForAllEpochs) {
  Folder folder;
  writeIds(folder, 99);
  const Program program = programWith(idsOnly, 1, 3);
  const auto part = [&](DataOptions::Share share, uint64_t seed, bool shuffle) {
    DataOptions options = from(folder.path, seed, shuffle);
    options.share = share;
    options.validationPercent = 10;
    options.padded = true;
    return idsOf(options, program);
  };
  const std::vector<int64_t> validation = part(DataOptions::Share::Validation, 1, false);
  EXPECT_EQ(validation.size(), 9u); // floor(9.9)
  EXPECT_TRUE(std::is_sorted(validation.begin(), validation.end()));
  EXPECT_EQ(validation, part(DataOptions::Share::Validation, 1, false));
  EXPECT_NE(validation, part(DataOptions::Share::Validation, 2, false));
  std::vector<int64_t> all = part(DataOptions::Share::Training, 1, true);
  EXPECT_EQ(all.size(), 90u);
  all.insert(all.end(), validation.begin(), validation.end());
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 99u);
}

TEST(Dataset, NamesThePartThatIsTooSmall) {
  Folder folder;
  writeIds(folder, 20);
  const Program program = programWith(idsOnly, 1, 3);
  DataOptions options = from(folder.path);
  options.share = DataOptions::Share::Validation;
  options.validationPercent = 10;
  expectError<DataError>([&] { Dataset(options, program); },
                         ": the validation part holds 2 samples, one batch takes 3");
  options.padded = true, options.validationPercent = 4;
  expectError<DataError>([&] { Dataset(options, program); },
                         ": the validation part holds no sample: 4 % of 20 are less than one");
}

TEST(Dataset, PadsTheLastBatch) {
  Folder folder;
  writeIds(folder, 4);
  const Program program = programWith(idsOnly, 1, 3);
  DataOptions options = from(folder.path);
  options.padded = true;
  Dataset data(options, program);
  EXPECT_EQ(data.batches(), 2);
  EXPECT_EQ(data.dropped(), 0);
  EXPECT_EQ(data.forwardBatches()[0].samples, 3);
  EXPECT_EQ(data.forwardBatches()[1].samples, 1);
  EXPECT_EQ(data.normalize({0, 3}).sample, 3);
  EXPECT_EQ(data.normalize({0, 6}).epoch, 1);
  std::vector<int64_t> batch(3);
  data.gather({0, 3}, {batch.data()});
  EXPECT_EQ(batch, (std::vector<int64_t>{3, 3, 3}));
}

/// New data have no target, and no file of it is looked for.
TEST(Dataset, ReadsInputsWithoutTargets) {
  Folder folder;
  writeImages(folder, 2);
  std::filesystem::remove(folder / "target.npy");
  const Program program = programWith(inputs, 2);
  DataOptions options = from(folder.path);
  options.targets = false;
  std::vector<float> batch(24);
  std::vector<int64_t> classes = {7, 7};
  Dataset(options, program).gather({0, 0}, {batch.data(), classes.data()});
  EXPECT_EQ(batch[12], 100);
  EXPECT_EQ(classes, (std::vector<int64_t>{0, 0}));
}
