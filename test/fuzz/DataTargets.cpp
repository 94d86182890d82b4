// SPDX-License-Identifier: Apache-2.0
// Files of data that generated programs read: images, archives, tables and tokens, as data sets of a small program.
#include "test/fuzz/Reader.h"

#include "runtime/program/Prompts.h"

#include <cstdio>
#include <iterator>

namespace sluice::fuzz {

namespace {

constexpr Input images[] = {
    {"x", {}, host(0, {2, 3, 8, 8}), 0},
    {"target", {}, host(0, {2}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true},
};
constexpr Input rows[] = {
    {"x", {}, host(0, {2, 2}), 0},
    {"target", {}, host(0, {2}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true},
};

constexpr Input pixels[] = {
    // with a class each
    {"x", {}, host(0, {2, 3, 8, 8}), 0},
    {"target", {}, host(0, {2, 8, 8}, Layout::RowMajor, DataType::I64), 3, -100, false, true},
};

constexpr Input longer[] = {
    {"x", {}, host(0, {2, 4}), 0},
    {"target", {}, host(0, {2}, Layout::RowMajor, DataType::I64), 3, Loss::none, false, true},
};

constexpr Input tokens[] = {
    {"x", {}, host(0, {2, 4}, Layout::RowMajor, DataType::I64), 10},
    {"mask", {}, host(0, {2, 4})},
};
constexpr Output scored[] = {{"y", device(0, {2, 4, 10})}};

constexpr Output attached[] = {{"y", {}, 1, "softmax-cross-entropy"}};

/// Two epochs of the data, as training reads them: with random changes of images, in random order.
template <size_t inputs>
Outcome readData(const std::string &where, const Input (&list)[inputs], bool skip, const Bucket *buckets = nullptr,
                 int bucketCount = 0) {
  Program program = {};
  program.buckets = buckets;
  program.bucketCount = bucketCount;
  program.batch = 2;
  program.inputs = list;
  program.inputCount = inputs;
  program.outputs = attached;
  program.outputCount = 1;
  DataOptions options;
  options.where = where;
  options.shuffle = true;
  options.skipBad = skip;
  if (sampleBytes(list[0]) == sampleBytes(images[0]))
    options.images = {"random-resized-crop;flip;colour,contrast=1,saturation=1", {}, {}, true, true};
  return guarded([&] {
    Dataset data(options, program);
    std::vector<char> x(list[0].staging.bytes()), target(list[1].staging.bytes());
    for (int64_t i = 0; i < std::min<int64_t>(4, data.batches()); ++i)
      data.gather({i % 2, i / 2 * 2}, {x.data(), target.data()});
  });
}

/// The file as prompts, each of which gets a token more.
Outcome readPrompts(const std::string &path) {
  Program program = {};
  program.batch = 2;
  program.inputs = tokens;
  program.inputCount = 2;
  program.outputs = scored;
  program.outputCount = 1;
  Entry entry;
  entry.evaluate = [](Session &) {};
  return guarded([&] {
    Prompts prompts(path, {}, program, tokenPlaces(program, entry));
    for (size_t i = 0; i < prompts.size(); ++i)
      if (prompts.length(i) < 4)
        prompts.append(i, 9);
    std::vector<char> x(tokens[0].staging.bytes()), mask(tokens[1].staging.bytes());
    prompts.dataset({0})->gather({0, 0}, {x.data(), mask.data()});
  });
}

} // namespace

Outcome runImage(const std::string &input, const std::string &) {
  const std::vector<uint8_t> file(input.begin(), input.end());
  const Outcome mask = guarded([&] { decodeMask(file, "mask"); });
  const Outcome image = guarded([&] {
    const Image image = decodeImage(file, input.size() % 2 ? 1 : 3, "image");
    if (image.pixels.size() <= (1 << 20))
      resize(image, {0, 0, image.width, image.height}, 17, 5);
  });
  return mask == Outcome::Accepted ? mask : image;
}

Outcome runNpz(const std::string &input, const std::string &folder) {
  writeFile(folder + "/data.npz", input);
  const Outcome numbers = readData("npz:" + folder + "/data.npz", rows, false);
  const Outcome images = readData("npz:" + folder + "/data.npz", pixels, false);
  return numbers == Outcome::Accepted ? numbers : images;
}

Outcome runTable(const std::string &input, const std::string &folder) {
  writeFile(folder + "/data.csv", input);
  return readData("csv:" + folder + "/data.csv", rows, input.size() % 2 == 0);
}

Outcome runJsonLines(const std::string &input, const std::string &folder) {
  writeFile(folder + "/data.jsonl", input);
  static constexpr Bucket buckets[] = {{"n=2", rows, attached, 0}, {"n=4", longer, attached, 0}};
  const Outcome samples = readData("jsonl:" + folder + "/data.jsonl", longer, input.size() % 2 == 0, buckets, 2);
  const Outcome prompts = readPrompts(folder + "/data.jsonl");
  return samples == Outcome::Accepted ? samples : prompts;
}

/// Headers get the sums that are right, as somebody has them who means harm.
Outcome runShards(const std::string &input, const std::string &folder) {
  std::string tar = input;
  for (size_t at = 0; at + 512 <= tar.size(); at += 512) {
    if (tar.compare(at + 257, 5, "ustar") != 0)
      continue;
    tar.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (size_t i = at; i < at + 512; ++i)
      sum += static_cast<unsigned char>(tar[i]);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum & 0777777u);
    tar.replace(at + 148, 7, std::string(digits, 7));
  }
  writeFile(folder + "/data.tar", tar);
  return readData("shards:" + folder + "/data.tar", images, input.size() % 2 == 0);
}

Outcome runIdx(const std::string &input, const std::string &folder) {
  writeFile(folder + "/a-images-idx3-ubyte.gz", input);
  writeFile(folder + "/a-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x04\0\1\2\0", 12));
  return readData("idx:" + folder + "/a", images, false);
}

} // namespace sluice::fuzz
