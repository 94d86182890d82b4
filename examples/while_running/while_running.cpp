// SPDX-License-Identifier: Apache-2.0
// An application that learns while it runs: a loop reads a sensor, acts on what the model says, and hands what turned
// out to a thread that trains. Frames are never kept waiting for a step: the loop predicts with a handle of its own,
// which takes over the weights now and then.
//   sluicec mlp.onnx --batch=8 --emit=library -o mlp
//   c++ -std=c++17 while_running.cpp -L. -lmlp -Wl,-rpath,'$ORIGIN' -lpthread -o while_running
#include "mlp.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

constexpr size_t features = 16, batch = 8, classes = 5;
using Frame = std::array<float, features>;

/// A handle that closes itself, with exceptions in place of statuses.
class Model {
public:
  Model() {
    sluice_options options = {};
    options.size = sizeof options;
    check(sluice_open(&options, &handle));
  }
  ~Model() { sluice_close(handle); }
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;

  void set(const char *name, double value) { check(sluice_set(handle, name, value)); }
  float step(const std::vector<Frame> &x, const std::vector<int64_t> &y) {
    const int64_t shape[] = {batch, features};
    const sluice_tensor input = {"input", x.data(), SLUICE_F32, 2, shape};
    const sluice_tensor target = {"target", y.data(), SLUICE_I64, 1, shape};
    float loss = 0;
    check(sluice_step(handle, &input, 1, &target, 1, &loss));
    return loss;
  }
  int64_t answer(const Frame &frame) {
    const int64_t shape[] = {1, int64_t{features}};
    std::array<float, classes> scores = {};
    const sluice_tensor input = {"input", frame.data(), SLUICE_F32, 2, shape};
    const sluice_output output = {nullptr, scores.data(), sizeof scores};
    check(sluice_predict(handle, &input, 1, &output, 1));
    return std::max_element(scores.begin(), scores.end()) - scores.begin();
  }
  void copyWeights(Model &from) {
    for (const auto &[name, count] : {std::pair{"0.weight", 384},
                                      {"0.bias", 24},
                                      {"2.weight", 576},
                                      {"2.bias", 24},
                                      {"4.weight", 120},
                                      {"4.bias", 5}}) {
      std::vector<float> values(static_cast<size_t>(count));
      from.check(sluice_read(from.handle, name, values.data(), values.size() * sizeof(float)));
      check(sluice_write(handle, name, values.data(), values.size() * sizeof(float)));
    }
  }

private:
  void check(sluice_status status) const {
    if (status != SLUICE_OK)
      throw std::runtime_error(handle ? sluice_error(handle) : "no memory for a handle");
  }
  sluice_model *handle = nullptr;
};

/// Trains on what it is told, on a thread of its own, until it goes.
class Trainer {
public:
  Trainer() : thread([this] { run(); }) { model.set("lr", 0.1); }
  ~Trainer() {
    {
      const std::lock_guard<std::mutex> lock(queue);
      ends = true;
    }
    more.notify_one();
    thread.join();
  }

  void learn(const Frame &frame, int64_t truth) {
    {
      const std::lock_guard<std::mutex> lock(queue);
      seen.emplace_back(frame, truth);
    }
    more.notify_one();
  }
  void giveWeights(Model &to) { to.copyWeights(model); } // a handle serves one call at a time

private:
  void run() {
    std::vector<Frame> x(batch);
    std::vector<int64_t> y(batch);
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(queue);
        more.wait(lock, [&] { return ends || seen.size() >= batch; });
        if (seen.size() < batch)
          return;
        for (size_t i = 0; i < batch; ++i, seen.pop_front())
          std::tie(x[i], y[i]) = seen.front();
      }
      try {
        model.step(x, y);
      } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
    }
  }

  Model model;
  std::mutex queue;
  std::condition_variable more;
  std::deque<std::pair<Frame, int64_t>> seen;
  bool ends = false;
  std::thread thread; // last: it uses the others
};

int main() {
  try {
    Model used;
    Trainer trainer;
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(0, 1);
    int right = 0;
    for (int frame = 1; frame <= 4000; ++frame) {
      Frame sensed;
      for (float &value : sensed)
        value = uniform(random);
      const auto truth = static_cast<int64_t>(random() % classes); // what turns out a moment later
      sensed[static_cast<size_t>(truth)] += 1;
      right += used.answer(sensed) == truth;
      trainer.learn(sensed, truth);
      if (frame % 100 == 0)
        trainer.giveWeights(used);
      if (frame % 1000 == 0)
        std::printf("frames %d to %d: %d %% right\n", frame - 999, frame, std::exchange(right, 0) / 10);
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
