// SPDX-License-Identifier: Apache-2.0
// Samples of several shapes: which batches they make, how they are filled up, and what is refused.
#include "test/unit/runtime/DataPrograms.h"
#include "test/unit/runtime/Harness.h"

#include <algorithm>
#include <cfloat>
#include <gmock/gmock.h>
#include <numeric>

namespace sluice {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Of samples whose buckets are given.
BucketSorting sortingOf(const std::vector<int> &buckets, std::vector<int> larger, int64_t batch) {
  return {batch, std::move(larger), [buckets](uint32_t index) { return buckets[index]; }};
}

std::vector<uint32_t> countUp(size_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

std::vector<std::vector<uint32_t>> listOf(const BucketBatches &batches) {
  std::vector<std::vector<uint32_t>> list;
  for (const BucketBatch &batch : batches.list)
    list.emplace_back(batches.order.begin() + batch.first, batches.order.begin() + batch.first + batch.samples);
  return list;
}

} // namespace

TEST(BucketBatches, MoveUpWhatDoesNotFillABatch) {
  // 0, 2 and 5 are small: 5 moves up. 7 is left.
  const BucketSorting sorting = sortingOf({0, 1, 0, 1, 1, 0, 2, 2}, {1, 2, -1}, 2);
  const BucketBatches batches = sorting.forTraining(countUp(8), std::nullopt);
  EXPECT_EQ(listOf(batches), (std::vector<std::vector<uint32_t>>{{0, 2}, {1, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(batches.list[2].bucket, 1);
  EXPECT_EQ(sorting.trainingBatches({3, 3, 2}), 4);
  EXPECT_EQ(batches.at(5).bucket, 1);
  EXPECT_EQ(batches.at(0).bucket, 0);
}

TEST(BucketBatches, LeaveOutWhatNoBucketHolds) {
  const BucketSorting sorting = sortingOf({0, 1, 0, 0}, {-1, -1}, 2); // 32x48 and 48x32
  const BucketBatches batches = sorting.forTraining(countUp(4), std::nullopt);
  EXPECT_EQ(listOf(batches), (std::vector<std::vector<uint32_t>>{{0, 2}}));
  EXPECT_EQ(sorting.trainingBatches({3, 1}), 1);
  EXPECT_EQ(batches.order.size(), 4u);
}

TEST(BucketBatches, AreDrawnFromTheKey) {
  std::vector<int> buckets(100);
  for (size_t i = 0; i < buckets.size(); ++i)
    buckets[i] = static_cast<int>(i % 3);
  const BucketSorting sorting = sortingOf(buckets, {1, 2, -1}, 4);
  const BucketBatches first = sorting.forTraining(countUp(100), 1), again = sorting.forTraining(countUp(100), 1),
                      other = sorting.forTraining(countUp(100), 2);
  EXPECT_EQ(first.order, again.order);
  EXPECT_NE(first.order, other.order);
  EXPECT_EQ(static_cast<int64_t>(first.list.size()), sorting.trainingBatches({34, 33, 33}));
  std::vector<uint32_t> all = other.order;
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, countUp(100));
}

TEST(BucketBatches, OfEvaluationHaveEachSampleOnce) {
  const BucketSorting sorting = sortingOf({1, 0, 1, 0, 1, 0}, {1, -1}, 2);
  EXPECT_EQ(listOf(sorting.sorted(countUp(6))), (std::vector<std::vector<uint32_t>>{{1, 3}, {5}, {0, 2}, {4}}));
  EXPECT_EQ(listOf(sortingOf({1, 1, 1, 0, 1}, {1, -1}, 2).inOrder(countUp(5))),
            (std::vector<std::vector<uint32_t>>{{0, 1}, {2}, {3}, {4}}));
}

namespace {

constexpr Tensor ids(int64_t extent) { return host(0, {2, extent}, Layout::RowMajor, DataType::I64); }
constexpr Tensor targets(int64_t extent) { return host(512, {2, extent}, Layout::RowMajor, DataType::I64); }

const Input shorter[] = {{"ids", {}, ids(3), 10}, {"target", {}, targets(3), 10, -100, false, true}},
            longer[] = {{"ids", {}, ids(5), 10}, {"target", {}, targets(5), 10, -100, false, true}};
const Output tokens[] = {{"y", {}, 1, "token-cross-entropy"}};
const Bucket twoBuckets[] = {{"tokens=3", shorter, tokens, 1}, {"tokens=5", longer, tokens, 2}};

Program programOfBuckets() {
  Program program = programWith(longer);
  program.outputs = tokens;
  program.buckets = twoBuckets;
  program.bucketCount = 2;
  return program;
}

/// Ids that begin with the number of the line, of the given lengths.
void writeLines(const Folder &folder, const std::vector<int> &lengths) {
  std::string lines;
  for (size_t line = 0; line < lengths.size(); ++line) {
    std::string list = std::to_string(line);
    for (int i = 1; i < lengths[line]; ++i)
      list += ", 7";
    lines += "{\"ids\": [" + list + "], \"target\": [" + list + "]}\n";
  }
  folder.write("data.jsonl", lines);
}

std::pair<std::vector<int64_t>, std::vector<int64_t>> batchAt(Dataset &data, int64_t sample) {
  const Program &shape = data.shape(data.bucketAt({0, sample}));
  std::vector<int64_t> x(static_cast<size_t>(shape.inputs[0].staging.shape.elements())), y = x;
  data.gather({0, sample}, {x.data(), y.data()});
  return {x, y};
}

} // namespace

TEST(Buckets, FillUpToTheirShape) {
  Folder folder;
  writeLines(folder, {2, 5, 3, 4});
  const Program program = programOfBuckets();
  Dataset data(from("jsonl:" + folder / "data.jsonl"), program);
  EXPECT_EQ(data.batches(), 2);
  EXPECT_EQ(data.bucketAt({0, 0}), 0);
  EXPECT_EQ(data.bucketAt({0, 2}), 1);
  const auto [x, y] = batchAt(data, 0);
  EXPECT_THAT(x, ElementsAre(0, 7, 0, 2, 7, 7));
  EXPECT_THAT(y, ElementsAre(0, 7, -100, 2, 7, 7));
  EXPECT_THAT(batchAt(data, 2).first, ElementsAre(1, 7, 7, 7, 7, 3, 7, 7, 7, 0));
  EXPECT_NEAR(data.filled().paddingPercent(), 100.0 * 2 / 16, 1e-9);
  EXPECT_THAT(data.notes(), testing::Contains(HasSubstr("in buckets: tokens=3: 2, tokens=5: 2 samples")));
}

TEST(Buckets, FillUpWithWhatIsSaid) {
  Folder folder;
  writeLines(folder, {2, 3});
  const Program program = programOfBuckets();
  DataOptions options = from("jsonl:" + folder / "data.jsonl");
  options.padding = {{"ids", 9}};
  Dataset data(options, program);
  EXPECT_THAT(batchAt(data, 0).first, ElementsAre(0, 7, 9, 1, 7, 7));
  options.padding = {{"ids", 10}};
  expectError<UsageError>([&] { Dataset(options, program); },
                          "'ids' is filled up with 10, but takes numbers from 0 to 9");
  options.padding = {{"idz", 1}};
  expectError<UsageError>([&] { Dataset(options, program); }, "--pad idz=1: the inputs are 'ids'");
}

TEST(Buckets, RefuseCutOrSkipWhatIsTooLong) {
  Folder folder;
  writeLines(folder, {2, 6, 3, 5});
  const Program program = programOfBuckets();
  DataOptions options = from("jsonl:" + folder / "data.jsonl");
  expectError<DataError>([&] { Dataset(options, program); },
                         "data.jsonl: line 2: 'ids' has 6 values, which no bucket holds; the largest is tokens=5");
  options.cuts = true;
  Dataset cut(options, program);
  EXPECT_EQ(cut.batches(), 2);
  EXPECT_THAT(batchAt(cut, 2).first, ElementsAre(1, 7, 7, 7, 7, 3, 7, 7, 7, 7));
  options.cuts = false;
  options.skipBad = true;
  Dataset skipped(options, program);
  EXPECT_EQ(skipped.samples(), 3);
  EXPECT_EQ(skipped.skipped(), 1);
  EXPECT_EQ(skipped.batches(), 1);
  EXPECT_EQ(skipped.dropped(), 1);
}

TEST(Buckets, GoOnAtAnyBatch) {
  Folder folder;
  std::vector<int> lengths;
  for (int i = 0; i < 9; ++i)
    lengths.push_back(2 + i % 4);
  writeLines(folder, lengths);
  const Program program = programOfBuckets();
  DataOptions options = from("jsonl:" + folder / "data.jsonl");
  options.shuffle = true;
  Dataset data(options, program), other(options, program);
  EXPECT_EQ(data.batches(), 4);
  batchAt(data, 0);
  EXPECT_EQ(batchAt(data, 4), batchAt(other, 4));
  EXPECT_EQ(data.normalize({0, 8}).epoch, 1);
  EXPECT_EQ(data.normalize({0, 5}).sample, 4); // of a run with another batch size
}

TEST(Buckets, EvaluateEachSampleOnce) {
  Folder folder;
  writeLines(folder, {5, 2, 5, 2, 5});
  const Program program = programOfBuckets();
  DataOptions options = from("jsonl:" + folder / "data.jsonl");
  options.padded = true;
  Dataset data(options, program);
  std::vector<int64_t> samples;
  for (const BucketBatch &batch : data.forwardBatches())
    samples.push_back(batch.samples);
  EXPECT_THAT(samples, ElementsAre(2, 2, 1));
  EXPECT_THAT(batchAt(data, 4).first, ElementsAre(4, 7, 7, 7, 7, 4, 7, 7, 7, 7)); // filled up with its own last one
}

TEST(JsonLines, RefusesWhatIsNoSample) {
  Folder folder;
  const Program program = programOfBuckets();
  const auto open = [&] { Dataset(from("jsonl:" + folder / "data.jsonl"), program); };
  const std::pair<const char *, const char *> wrong[] = {
      {"[1]\n", "line 1 is no JSON object"},
      {"{\"ids\": [1], \"target\": [1]}\n\n{\"ids\": [1]\n", "line 3 is no JSON object"},
      {"{\"ids\": [1]}\n", "line 1 has nothing for 'target', which takes whole numbers"},
      {"{\"ids\": [1.5], \"target\": [1]}\n", "line 1 has for 'ids' something else than whole numbers"},
      {"{\"ids\": [[1]], \"target\": [1]}\n", "line 1 has for 'ids' something else than whole numbers"},
      {"{\"ids\": [99999999999999999999], \"target\": [1]}\n", "something else than whole numbers"},
      {"{\"ids\": 1, \"target\": [1]}\n{\"ids\": 1, \"target\": [1]}\n",
       "'ids' has one number, the model takes 5 values"},
      {"{\"ids\": [10], \"target\": [1]}\n{\"ids\": [1], \"target\": [1]}\n",
       "line 1 holds 10, 'ids' must lie between 0 and 9"}};
  for (const auto &[text, message] : wrong) {
    folder.write("data.jsonl", text);
    expectError<DataError>(open, message);
  }
  folder.write("data.jsonl", "");
  expectError<DataError>(open, "holds 0 samples, one batch takes 2");
}

/// 1e39 is a double and no float: it would be infinite without a word.
TEST(JsonLines, RefusesNumbersBeyondFloats) {
  Folder folder;
  const Input reals[] = {{"x", {}, host(0, {1, 2}, Layout::RowMajor, DataType::F32)}};
  Program program = programWith(reals);
  program.outputCount = 0;
  for (const char *number : {"1e39", "-3.5e38", "1e309"}) {
    folder.write("data.jsonl", std::string("{\"x\": [0.5, 1]}\n{\"x\": [1, ") + number + "]}\n");
    expectError<DataError>([&] { Dataset(from("jsonl:" + folder / "data.jsonl"), program); }, "data.jsonl: line 2 ");
  }
  folder.write("data.jsonl", "{\"x\": [3.4028234e38, -1e-60]}\n");
  Dataset data(from("jsonl:" + folder / "data.jsonl"), program);
  std::vector<float> values(2);
  data.gather({0, 0}, {values.data()});
  EXPECT_THAT(values, ElementsAre(FLT_MAX, 0));
}

TEST(JsonLines, OfOneShapeTakesThatAlone) {
  Folder folder;
  Program program = programWith(longer);
  program.outputs = tokens;
  writeLines(folder, {5, 5});
  Dataset data(from("jsonl:" + folder / "data.jsonl"), program);
  EXPECT_THAT(batchAt(data, 0).first, ElementsAre(0, 7, 7, 7, 7, 1, 7, 7, 7, 7));
  writeLines(folder, {5, 4});
  expectError<DataError>(
      [&] { Dataset(from("jsonl:" + folder / "data.jsonl"), program); },
      "line 2: 'ids' has 4 values, the model takes 5 values; sluicec --dim NAME=N0,N1 compiles it for several");
}

} // namespace sluice
