// SPDX-License-Identifier: Apache-2.0
// Images a second that a data set decodes and augments, without a model: data-bench WHERE AUGMENT WORKERS BATCHES.
// Batches of 32 for an input of 3 x 224 x 224, with ImageNet's mean and deviation; the first batch is not counted.
#include "runtime/program/Dataset.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

using namespace sluice;

int main(int argc, char **argv) {
  if (argc != 5)
    return std::fprintf(stderr, "usage: data-bench WHERE AUGMENT WORKERS BATCHES\n"), 2;
  constexpr int64_t batch = 32;
  const Input inputs[] = {{"input", {}, host(0, {batch, 3, 224, 224}), 0},
                          {"target", {}, host(0, {batch}, Layout::RowMajor, DataType::I64), 1000}};
  Program program{};
  program.batch = batch;
  program.inputs = inputs;
  program.inputCount = 2;
  DataOptions options;
  options.where = argv[1];
  options.shuffle = true;
  options.images = {argv[2], {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, true};
  options.workers = std::atoi(argv[3]);
  const int64_t batches = std::atoll(argv[4]);
  try {
    Dataset data(options, program);
    std::vector<char> images(inputs[0].staging.bytes()), classes(inputs[1].staging.bytes());
    std::chrono::steady_clock::time_point begin;
    Position position;
    for (int64_t i = 0; i <= batches; ++i) {
      position = data.normalize(position);
      data.gather(position, {images.data(), classes.data()});
      position.sample += batch;
      if (i == 0)
        begin = std::chrono::steady_clock::now();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%.1f\n", static_cast<double>(batches * batch) / seconds);
  } catch (const std::exception &error) {
    return std::fprintf(stderr, "data-bench: error: %s\n", error.what()), 1;
  }
  return 0;
}
