// SPDX-License-Identifier: Apache-2.0
// Data sets: which sample lands where in which layout, in which order, and what does not fit.
#include "runtime/program/Dataset.h"

#include "test/unit/runtime/Folder.h"

#include <numeric>
#include <set>

using namespace sluice;

// Two images of [3,2,2] and their classes in a batch.
static const Input inputs[] = {{"x", {}, host(0, {2, 3, 2, 2}, Layout::NHWC), 0},
                               {"target", {}, host(96, {2}, Layout::RowMajor, DataType::I64), 5}};

static Program programWith(const Input *list, int count, int64_t batch = 2) {
  Program program{};
  program.batch = batch;
  program.inputs = list;
  program.inputCount = count;
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
  data.gather(1, position, classes.data());
  return classes;
}

TEST(Dataset, GathersInStagingLayout) {
  Folder folder;
  writeImages(folder, 5);
  Program program = programWith(inputs, 2);
  Dataset data(folder.path, program, 0, false);
  EXPECT_EQ(data.samples(), 5);
  EXPECT_EQ(data.batches(), 2);
  EXPECT_EQ(data.dropped(), 1);
  std::vector<float> batch(24);
  data.gather(0, {0, 2}, batch.data());
  // Sample 2: pixel 0 holds channels 0, 1, 2 = elements 0, 4, 8; pixel 1 elements 1, 5, 9.
  EXPECT_EQ(std::vector<float>(batch.begin(), batch.begin() + 6), (std::vector<float>{200, 204, 208, 201, 205, 209}));
  EXPECT_EQ(batch[12], 300);
  EXPECT_EQ(classesAt(data, {0, 2}), (std::vector<int64_t>{2, 3}));
}

TEST(Dataset, EndsEpochsAtWholeBatches) {
  Folder folder;
  writeImages(folder, 5);
  Program program = programWith(inputs, 2);
  Dataset data(folder.path, program, 0, false);
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
    Dataset data(folder.path, program, seed, true);
    std::vector<int64_t> all(samples);
    for (int i = 0; i < samples; i += 10)
      data.gather(0, {epoch, i}, all.data() + i);
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
  Dataset one(std::string("synthetic"), program, 1, false), same("synthetic", program, 1, false),
      other("synthetic", program, 2, false);
  std::vector<float> a(24), b(24), c(24);
  one.gather(0, {0, 4}, a.data());
  same.gather(0, {7, 4}, b.data());
  other.gather(0, {0, 4}, c.data());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  for (int64_t i = 0; i < one.batches(); ++i)
    for (int64_t id : classesAt(one, {0, 2 * i}))
      EXPECT_TRUE(id >= 0 && id < 5);
}

TEST(Dataset, GathersTheSameWithSeveralThreads) {
  const Input large[] = {{"x", {}, host(0, {9, 3, 160, 160}, Layout::NHWC), 0},
                         {"target", {}, host(0, {9, 65536}, Layout::RowMajor, DataType::I64), 7}};
  Program program = programWith(large, 2, 9);
  for (int input : {0, 1}) {
    const size_t bytes = large[input].staging.bytes();
    Dataset data("synthetic", program, 1, true);
    std::vector<char> one(bytes), several(bytes);
    for (int64_t first : {0, 9}) {
      data.gather(input, {2, first}, one.data());
      data.gather(input, {2, first}, several.data(), 4);
      EXPECT_EQ(one, several);
    }
  }
}

/// Whichever thread met them: the first sample of the batch is named.
TEST(Dataset, NamesTheFirstBadSampleOfSeveralThreads) {
  constexpr int64_t classes = 65536;
  const Input only[] = {{"ids", {}, host(0, {8, classes}, Layout::RowMajor, DataType::I64), 5}};
  Folder folder;
  std::vector<int64_t> ids(8 * classes);
  folder.write("input.npy", npyArray("<i8", "(8, 65536)", ids));
  Program program = programWith(only, 1, 8);
  Dataset data(folder.path, program, 0, false);
  ids[3 * classes] = ids[7 * classes] = 5; // the file changes after it was checked
  folder.write("input.npy", npyArray("<i8", "(8, 65536)", ids));
  std::vector<int64_t> batch(ids.size());
  expectError<DataError>([&] { data.gather(0, {0, 0}, batch.data(), 4); }, "sample 3 holds 5");
}

TEST(Dataset, NamesFilesOfSeveralInputs) {
  const Input two[] = {{"left", {}, host(0, {1, 1}), 0}, {"../right", {}, host(4, {1, 1}), 0}};
  Folder folder;
  folder.write("left.npy", npyArray<float>("<f4", "(1, 1)", {1}));
  Program program = programWith(two, 2, 1);
  expectError<DataError>([&] { Dataset(folder.path, program, 0, false); }, folder / ".._right.npy");
  folder.write(".._right.npy", npyArray<float>("<f4", "(2, 1)", {1, 2}));
  expectError<DataError>([&] { Dataset(folder.path, program, 0, false); },
                         "holds 2 samples, " + (folder / "left.npy") + " holds 1");
}

TEST(Dataset, WidensSmallerIntegersAndBooleans) {
  const Input only[] = {{"ids", {}, host(0, {2, 3}, Layout::RowMajor, DataType::I64), 0}};
  Folder folder;
  Program program = programWith(only, 1);
  auto second = [&] { // batch of a file
    std::vector<int64_t> batch(6);
    Dataset(folder.path, program, 0, false).gather(0, {0, 2}, batch.data());
    return batch;
  };
  folder.write("input.npy", npyArray<int32_t>("<i4", "(4, 3)", {9, 9, 9, 9, 9, 9, 1, -2, 3, 4, -2147483647, 6}));
  EXPECT_EQ(second(), (std::vector<int64_t>{1, -2, 3, 4, -2147483647, 6}));
  folder.write("input.npy", npyArray<uint8_t>("|b1", "(4, 3)", {1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 255}));
  EXPECT_EQ(second(), (std::vector<int64_t>{0, 1, 0, 0, 1, 255}));
}

TEST(Dataset, LetsIgnoredTargetsPass) {
  const Input only[] = {{"target", {}, host(0, {2, 2}, Layout::RowMajor, DataType::I64), 4, -100}};
  Folder folder;
  Program program = programWith(only, 1);
  folder.write("target.npy", npyArray<int64_t>("<i8", "(2, 2)", {0, -100, 3, -100}));
  std::vector<int64_t> batch(4);
  Dataset(folder.path, program, 0, false).gather(0, {0, 0}, batch.data());
  EXPECT_EQ(batch, (std::vector<int64_t>{0, -100, 3, -100}));
  folder.write("target.npy", npyArray<int64_t>("<i8", "(2, 2)", {0, -100, 3, -1}));
  expectError<DataError>([&] { Dataset(folder.path, program, 0, false); }, "target.npy: sample 1 holds -1");
}

TEST(Dataset, RefusesWhatDoesNotFit) {
  Folder folder;
  Program program = programWith(inputs, 2);
  auto open = [&] { Dataset(folder.path, program, 0, false); };
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
  folder.write("target.npy", npyArray<int64_t>("<i8", "(3, 1)", {0, 1, 2}));
  expectError<DataError>(open, "is int64 (3, 1), input 'target' takes int64 (N,)");
  folder.write("input.npy", npyArray<float>("<f4", "()", {1}));
  expectError<DataError>(open, "is float32 (), input 'x' takes float32 (N, 3, 2, 2)");
}
