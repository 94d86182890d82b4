// SPDX-License-Identifier: Apache-2.0
// Callbacks that throw end a call with a status and words, and the next step has the bits that it would have had; ten
// thousand handles, opened and closed, leave nothing behind.
//
//   library_callbacks HANDLES

#include "one.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string &words) {
  std::fprintf(stderr, "%s\n", words.c_str());
  std::exit(1);
}

struct Batch {
  std::vector<float> x = std::vector<float>(size_t{8} * 16);
  std::vector<int64_t> y = std::vector<int64_t>(8);
  int64_t wide[2] = {8, 16}, narrow[1] = {8};
  sluice_tensor input = {"input", x.data(), SLUICE_F32, 2, wide};
  sluice_tensor target = {"target", y.data(), SLUICE_I64, 1, narrow};

  Batch() {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(i % 7) - 3;
    for (size_t i = 0; i < y.size(); ++i)
      y[i] = static_cast<int64_t>(i % 5);
  }
};

int throwWords(void *, int64_t, int64_t) { throw std::runtime_error("what the callback says"); }
int throwNumber(void *, int64_t, int64_t) { throw 7; }
void throwFromLog(void *, const char *) { throw std::runtime_error("from a log"); }

sluice_model *opened(int (*progress)(void *, int64_t, int64_t)) {
  sluice_options options = {};
  options.size = sizeof options;
  options.progress = progress;
  options.log = throwFromLog;
  sluice_model *model = nullptr;
  if (sluice_open(&options, &model) != SLUICE_OK)
    fail(sluice_error(model));
  return model;
}

float step(sluice_model *model, const Batch &batch) {
  float loss = 0;
  if (sluice_step(model, &batch.input, 1, &batch.target, 1, &loss) != SLUICE_OK)
    fail(sluice_error(model));
  return loss;
}

void throwing(int (*progress)(void *, int64_t, int64_t), const std::string &words) {
  const Batch batch;
  sluice_model *model = opened(progress), *other = opened(nullptr);
  if (sluice_evaluate(model, &batch.input, 1, &batch.target, 1, nullptr, nullptr, nullptr) != SLUICE_INTERNAL)
    fail("nobody met the exception of a callback");
  if (std::string(sluice_error(model)).find(words) == std::string::npos)
    fail("not the words of the exception: " + std::string(sluice_error(model)));
  std::vector<float> predicted(size_t{8} * 5);
  const sluice_output output = {nullptr, predicted.data(), predicted.size() * sizeof(float)};
  if (sluice_predict(model, &batch.input, 1, &output, 1) != SLUICE_INTERNAL)
    fail("nobody met the exception of a callback");
  for (int i = 0; i < 3; ++i)
    if (step(model, batch) != step(other, batch))
      fail("an exception has changed a step");
  sluice_close(model);
  sluice_close(other);
}

/// Bytes that lie in memory.
int64_t resident() {
  int64_t whole = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> whole >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

void manyHandles(int64_t handles) {
  int64_t before = 0;
  for (int64_t i = 0; i < handles; ++i) {
    sluice_close(opened(nullptr));
    if (i == handles / 10)
      before = resident();
  }
  std::printf("grown by %lld bytes\n", static_cast<long long>(resident() - before));
}

} // namespace

int main(int, char **argv) {
  throwing(throwWords, "what the callback says");
  throwing(throwNumber, "");
  manyHandles(std::atoll(argv[1]));
  return 0;
}
