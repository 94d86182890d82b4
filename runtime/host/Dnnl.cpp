// SPDX-License-Identifier: Apache-2.0
// oneDNN behind Primitive. A described primitive waits in a list until buildPrimitives() compiles it; calls go through
// the C interface with arguments on the stack.
#include "runtime/host/Dnnl.h"

#include "runtime/Kernels.h"

#include <mutex>
#include <vector>

namespace sluice {

namespace {

std::mutex pendingMutex;
std::vector<std::weak_ptr<Primitive::State>> &pending() {
  static std::vector<std::weak_ptr<Primitive::State>> list;
  return list;
}

void check(dnnl_status_t status, const char *what) {
  if (status != dnnl_success)
    throw std::runtime_error(std::string("oneDNN failed to ") + what + " (status " + std::to_string(status) + ")");
}

/// A memory object that ends with its scope; oneDNN copies only the description, never the bytes.
struct BorrowedMemory {
  dnnl_memory_t memory = nullptr;
  BorrowedMemory() = default;
  BorrowedMemory(const BorrowedMemory &) = delete;
  BorrowedMemory &operator=(const BorrowedMemory &) = delete;
  ~BorrowedMemory() { dnnl_memory_destroy(memory); }
};

} // namespace

const dnnl::engine &dnnlEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::primitive_attr userScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Primitive::Primitive(std::function<dnnl::primitive()> make, const dnnl::memory::desc &scratchpad)
    : state(std::make_shared<State>(State{std::move(make), scratchpad, {}})) {
  std::lock_guard<std::mutex> lock(pendingMutex);
  pending().push_back(state);
}

void Primitive::State::build() {
  if (!primitive.get(true))
    primitive = make();
}

void Primitive::execute(std::initializer_list<Argument> arguments, void *scratchpad) const {
  static constexpr int most = 8;
  thread_local dnnl::stream stream(dnnlEngine());
  state->build();
  BorrowedMemory memories[most];
  dnnl_exec_arg_t list[most];
  int count = 0;
  auto add = [&](int id, const dnnl::memory::desc &desc, const void *data) {
    check(dnnl_memory_create(&memories[count].memory, &desc.data, dnnlEngine().get(), const_cast<void *>(data)),
          "wrap memory");
    list[count] = {id, memories[count].memory};
    ++count;
  };
  for (const Argument &argument : arguments)
    add(argument.id, *argument.desc, argument.data);
  if (scratchpadBytes())
    add(DNNL_ARG_SCRATCHPAD, state->scratchpad, scratchpad);
  check(dnnl_primitive_execute(state->primitive.get(), stream.get(), count, list), "execute a primitive");
  check(dnnl_stream_wait(stream.get()), "wait for a primitive");
}

Primitive dnnlReorder(const dnnl::memory::desc &from, const dnnl::memory::desc &to) {
  if (from == to)
    return {};
  dnnl::reorder::primitive_desc pd(dnnlEngine(), from, dnnlEngine(), to, userScratchpad());
  return Primitive([pd] { return dnnl::reorder(pd); }, pd.scratchpad_desc());
}

void buildPrimitives() {
  std::vector<std::weak_ptr<Primitive::State>> list;
  {
    std::lock_guard<std::mutex> lock(pendingMutex);
    list.swap(pending());
  }
  for (const std::weak_ptr<Primitive::State> &weak : list)
    if (std::shared_ptr<Primitive::State> state = weak.lock())
      state->build();
}

} // namespace sluice
