// SPDX-License-Identifier: Apache-2.0
// oneDNN after Primitive. A described primitive waits in a list until buildPrimitives() compiles it; calls go through
// the C interface with arguments on the stack.
#include "runtime/host/Dnnl.h"

#include "runtime/CpuTable.h"
#include "runtime/Kernels.h"
#include "runtime/Ranks.h"

#include <cstdlib>
#include <mutex>
#include <strings.h>
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

/// What DNNL_MAX_CPU_ISA leaves of `limit`, of which oneDNN would forget the variable; other names leave all. The sets
/// are bit masks.
static int lessByEnvironment(int limit) {
  struct Known {
    const char *name;
    int set;
  };
  static const Known known[] = {{"SSE41", dnnl_cpu_isa_sse41},
                                {"AVX", dnnl_cpu_isa_avx},
                                {"AVX2", dnnl_cpu_isa_avx2},
                                {"AVX2_VNNI", dnnl_cpu_isa_avx2},
                                {"AVX512_MIC", dnnl_cpu_isa_avx2},
                                {"AVX512_MIC_4OPS", dnnl_cpu_isa_avx2},
                                {"AVX512_CORE", dnnl_cpu_isa_avx512_core},
                                {"AVX512_CORE_VNNI", dnnl_cpu_isa_avx512_core_vnni},
                                {"AVX512_CORE_BF16", dnnl_cpu_isa_avx512_core_bf16}};
  const char *name = getenv("ONEDNN_MAX_CPU_ISA");
  if (!name)
    name = getenv("DNNL_MAX_CPU_ISA");
  for (const Known &k : known)
    if (name && strcasecmp(name, k.name) == 0)
      return limit & k.set;
  return limit;
}

void limitInstructions(int level) {
  if (isArm(level)) // there is one kind of kernels, ours
    return;
  static const int limits[] = {0, dnnl_cpu_isa_sse41, dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2, dnnl_cpu_isa_avx512_core};
  static int limited = 0;
  // Of a level only some have instructions for bf16.
  const int limit = level == 4 && kernelPrecision() == Precision::BF16 ? dnnl_cpu_isa_avx512_core_amx : limits[level];
  if (limit != limited)
    check(dnnl_set_max_cpu_isa(static_cast<dnnl_cpu_isa_t>(lessByEnvironment(limit))), "limit its instructions");
  limited = limit;
}

std::string instructionsInEffect() {
  switch (dnnl_get_effective_cpu_isa()) {
  case dnnl_cpu_isa_sse41:
    return "SSE41";
  case dnnl_cpu_isa_avx:
    return "AVX";
  case dnnl_cpu_isa_avx2:
    return "AVX2";
  case dnnl_cpu_isa_avx2_vnni:
    return "AVX2_VNNI";
  case dnnl_cpu_isa_avx512_core:
    return "AVX512_CORE";
  case dnnl_cpu_isa_avx512_core_vnni:
    return "AVX512_CORE_VNNI";
  case dnnl_cpu_isa_avx512_core_bf16:
    return "AVX512_CORE_BF16";
  case dnnl_cpu_isa_avx512_core_amx:
    return "AVX512_CORE_AMX";
  default:
    return "other";
  }
}

dnnl::memory::data_type dnnlType(DataType type) {
  return type == DataType::BF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
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
