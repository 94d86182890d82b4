// SPDX-License-Identifier: Apache-2.0
// No kernel takes memory of its own while it runs: all of it lies in the arena, or the budget would be a lie. This
// program puts counters in front of the allocator; small objects (closures, descriptions of memory) pass.
#include "test/unit/runtime/Harness.h"

#include <atomic>
#include <cerrno>

namespace {
std::atomic<size_t> largest{0};

void note(size_t bytes) {
  size_t seen = largest;
  while (bytes > seen && !largest.compare_exchange_weak(seen, bytes))
    ;
}
} // namespace

// glibc's own names for what is wrapped here; oneDNN allocates through posix_memalign.
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void *malloc(size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void **result, size_t alignment, size_t bytes) {
  *result = memalign(alignment, bytes);
  return *result ? 0 : ENOMEM;
}
}

namespace sluice {
namespace {

constexpr size_t smallObjects = 8192;

/// Largest allocation of the second of two runs: the first may build thread-local state.
template <typename Run> size_t largestAllocation(Session &session, Run &&run) {
  run();
  session.synchronize();
  largest = 0;
  run();
  session.synchronize();
  return largest;
}

TEST(Allocations, CountersWork) {
  largest = 0;
  void *volatile used = ::operator new(12345);
  ::operator delete(used);
  EXPECT_EQ(largest, 12345u);
  void *aligned = nullptr;
  ASSERT_EQ(posix_memalign(&aligned, 64, 23456), 0);
  free(aligned);
  EXPECT_EQ(largest, 23456u);
}

TEST(Allocations, Convolutions) {
  struct Case {
    Shape x, w;
    int64_t stride, pad, groups;
  };
  for (const Case &c :
       {Case{{4, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1}, Case{{4, 256, 28, 28}, {512, 256, 1, 1}, 2, 0, 1},
        Case{{4, 3, 64, 64}, {32, 3, 7, 7}, 2, 3, 1}, Case{{4, 96, 28, 28}, {96, 1, 3, 3}, 1, 1, 96},
        Case{{2, 256, 28, 28}, {64, 256, 3, 3}, 1, 1, 1}, Case{{4, 64, 28, 28}, {128, 16, 3, 3}, 1, 1, 4}}) {
    const int64_t extent = (c.x[2] + 2 * c.pad - c.w[2]) / c.stride + 1;
    const Shape y{c.x[0], c.w[0], extent, extent};
    const Window window{{c.w[2], c.w[3]}, {c.stride, c.stride}, {c.pad, c.pad, c.pad, c.pad}};
    Harness h;
    const Tensor tx = h.image(c.x), tw = h.tensor(c.w), ty = h.image(y);
    const Conv forward("conv", ConvPass::Forward, c.x, c.w, y, window, ConvOptions().withGroups(c.groups));
    const Conv data("conv", ConvPass::BackwardData, c.x, c.w, y, window, ConvOptions().withGroups(c.groups));
    const Conv weight("conv", ConvPass::BackwardWeight, c.x, c.w, y, window, ConvOptions().withGroups(c.groups));
    const Tensor a = h.workspace(forward), b = h.workspace(data), d = h.workspace(weight);
    Stream &stream = h.session.compute;
    EXPECT_LE(largestAllocation(h.session, [&] { forward.forward(stream, tx, tw, none, ty, a); }), smallObjects);
    EXPECT_LE(largestAllocation(h.session, [&] { data.backwardData(stream, ty, tw, tx, b); }), smallObjects);
    EXPECT_LE(largestAllocation(h.session, [&] { weight.backwardWeight(stream, ty, tx, tw, none, d); }), smallObjects);
  }
}

TEST(Allocations, LargeLinearLayer) {
  Harness h(size_t(128) << 20);
  const Shape x{16, 4096}, w{2048, 4096}, y{16, 2048};
  const Tensor tx = h.tensor(x), tw = h.tensor(w), ty = h.tensor(y), bias = h.tensor({2048});
  const Matmul forward("fc", x, w, y, MatmulOptions().withTransposeB(true).withBias({2048})), data("fc", y, w, x),
      weight("fc", y, x, w, MatmulOptions().withTransposeA(true));
  const Tensor a = h.workspace(forward), b = h.workspace(data), c = h.workspace(weight);
  Stream &stream = h.session.compute;
  EXPECT_LE(largestAllocation(h.session, [&] { forward.run(stream, tx, tw, bias, ty, a); }), smallObjects);
  EXPECT_LE(largestAllocation(h.session, [&] { data.run(stream, ty, tw, none, tx, b); }), smallObjects);
  EXPECT_LE(largestAllocation(h.session, [&] { weight.run(stream, ty, tx, none, tw, c); }), smallObjects);
}

TEST(Allocations, OwnKernels) {
  Harness h;
  const Shape x{4, 64, 56, 56}, y{4, 64, 28, 28};
  const Tensor tx = h.image(x), ty = h.image(y), mean = h.tensor({64}), rstd = h.tensor({64});
  const Tensor indices = h.tensor(y, Layout::NHWC, DataType::U8), flat = h.tensor(x);
  const BatchNormStatistics statistics("bn", x, 1e-5f);
  const MaxPool pool("pool", x, y, {{2, 2}, {2, 2}, {0, 0, 0, 0}});
  const Lrn lrn("lrn", x, 5, 1, 0.75f, 1);
  const SumTo sum("sum", tx, channel(mean));
  const Reorder reorder("flatten", tx, flat, {0, 1, 2, 3});
  const Tensor a = h.workspace(statistics), b = h.workspace(lrn), c = h.workspace(sum);
  Stream &stream = h.session.compute;
  EXPECT_LE(largestAllocation(h.session,
                              [&] {
                                statistics.run(stream, tx, mean, rstd, a);
                                pool.forward(stream, tx, ty, indices, none);
                                pool.backward(stream, ty, indices, tx, none);
                                lrn.forward(stream, tx, tx, b);
                                sum.run(stream, tx, channel(mean), c);
                                reorder.run(stream, tx, flat);
                                updateSgd(stream, {}, tx, flat, none, none, "w");
                              }),
            smallObjects);
}

} // namespace
} // namespace sluice
