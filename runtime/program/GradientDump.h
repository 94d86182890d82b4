// SPDX-License-Identifier: Apache-2.0
// --dump-gradients: keeps a copy of every gradient of one step as the program shows them, before their updates.
#pragma once

#include "runtime/Stream.h"

#include <map>
#include <string>
#include <vector>

namespace sluice {

/// Catches from construction until save() or destruction.
class GradientDump {
public:
  explicit GradientDump(Session &session);
  ~GradientDump();
  GradientDump(const GradientDump &) = delete;
  GradientDump &operator=(const GradientDump &) = delete;

  /// Writes what was caught, under the parameters' names, in logical order. Call after synchronizing.
  void save(const std::string &path);

private:
  struct Gradient {
    Tensor tensor;
    std::vector<char> bytes; ///< logical order
  };
  Session &session;
  std::map<std::string, Gradient> caught;
};

} // namespace sluice
