// SPDX-License-Identifier: Apache-2.0
// What our kernels need of oneDNN: one engine, primitives that are described at once and built later, and calls that
// neither allocate scratch nor build argument maps.
#pragma once

#include "runtime/Kernels.h"
#include "runtime/Stream.h"

#include <functional>
#include <initializer_list>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>

namespace sluice {

const dnnl::engine &dnnlEngine();

/// What setKernelPolicy() said last.
Precision kernelPrecision();

/// F32 or BF16 as it calls them.
dnnl::memory::data_type dnnlType(DataType type);

/// Attributes that put oneDNN's scratchpad into memory of ours.
dnnl::primitive_attr userScratchpad();

/// A described primitive; built by buildPrimitives() or, at the latest, by its first call.
class Primitive {
public:
  Primitive() = default;
  explicit Primitive(std::function<dnnl::primitive()> make, const dnnl::memory::desc &scratchpad);

  struct Argument {
    int id;
    const dnnl::memory::desc *desc;
    const void *data;
  };
  /// `scratchpad` holds scratchpadBytes() bytes.
  void execute(std::initializer_list<Argument> arguments, void *scratchpad) const;
  size_t scratchpadBytes() const { return state ? state->scratchpad.get_size() : 0; }
  explicit operator bool() const { return state != nullptr; }

  struct State {
    std::function<dnnl::primitive()> make;
    dnnl::memory::desc scratchpad;
    dnnl::primitive primitive;
    void build();
  };

private:
  std::shared_ptr<State> state;
};

/// A copy between two memory formats; absent where they are equal.
Primitive dnnlReorder(const dnnl::memory::desc &from, const dnnl::memory::desc &to);

/// Rounds a part of the scratch tensor up, so that the next part is aligned.
constexpr size_t scratchPart(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Runs `make` and turns oneDNN's errors into std::invalid_argument naming the node.
template <typename Make> auto describe(const char *node, const char *what, Make &&make) -> decltype(make()) {
  try {
    return make();
  } catch (const dnnl::error &error) {
    throw std::invalid_argument(std::string("oneDNN has no ") + what + " for '" + node + "': " + error.what());
  }
}

} // namespace sluice
