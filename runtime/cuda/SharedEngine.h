// SPDX-License-Identifier: Apache-2.0
// Engines of cuDNN are sought once for all kernels of one geometry, when a program builds what its kernels described.
#pragma once

#include "runtime/cuda/Device.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace sluice {

template <typename Engine> class SharedEngine : public Buildable {
public:
  /// The engine, or null and a reason; an engine with a reason stands in for another one.
  using Choose = std::function<std::unique_ptr<Engine>(std::string &reason)>;

  /// What all kernels with this key share. `node` is the first of them; where there is no engine, noteFallback() says
  /// of it what happens `otherwise`, with the reason after that.
  static std::shared_ptr<SharedEngine> of(const std::string &key, const char *node, const char *otherwise,
                                          Choose choose) {
    // Never destroyed: from 9.10 on cuDNN may crash when plans are while the process ends, where CUDA has gone already.
    static auto &known = *new std::map<std::string, std::shared_ptr<SharedEngine>>;
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<SharedEngine> &slot = known[key];
    if (!slot) {
      slot = std::make_shared<SharedEngine>(node, otherwise, std::move(choose));
      buildLater(slot);
    }
    return slot;
  }

  SharedEngine(const char *node, const char *otherwise, Choose choose)
      : node(node), otherwise(otherwise), choose(std::move(choose)) {}

  void build() override {
    std::call_once(built, [this] { engine = choose(reason); });
  }
  void report() override {
    if (!engine)
      noteFallback(node, otherwise + reason);
    else if (!reason.empty())
      noteFallback(node, "runs on cuDNN's own choice: " + reason);
  }
  /// Null: there is none. Waits for a thread that builds it; also for kernels that buildPrimitives() never saw.
  const Engine *get() {
    build();
    return engine.get();
  }

private:
  const std::string node, otherwise;
  const Choose choose;
  std::once_flag built;
  std::unique_ptr<Engine> engine;
  std::string reason;
};

} // namespace sluice
