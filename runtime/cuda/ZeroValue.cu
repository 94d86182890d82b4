// SPDX-License-Identifier: Apache-2.0
// Zero values left out of copies to the host, in the form of runtime/Codec.h. A captured graph copies fixed sizes, so
// no copy engine does this: kernels write what is not zero into the locked host slot themselves, and read no more than
// that back. Every part has its place in the slot, so that no block waits for another. A block first finds the bits of
// its part, in shared memory; then each thread moves 16 bytes of elements that are not zero and stand side by side in
// the slot, so that what crosses the link are whole aligned lines. The second look at a part finds it in the L2 cache.
// In a pool a part's place is drawn from a counter in device memory when its size is known.
#include "runtime/cuda/ZeroValue.h"

#include "runtime/Codec.h"
#include "runtime/cuda/Codec.h"
#include "runtime/cuda/Device.h"

#include <cstring>
#include <type_traits>

namespace sluice {

namespace {

constexpr int lanes = 32;

/// Bytes of tensors, and what they took packed, since clearPackedTotals().
__device__ unsigned long long totals[2];
bool packed = false;

/// Of a part whose elements are Words of 32 or 16 bits.
template <typename Word> struct Cut {
  static constexpr int64_t width = sizeof(Word);
  static constexpr int elements = static_cast<int>(zvcPart / width), groups = elements / lanes,
                       groupsOfThread = groups / blockThreads;
  static constexpr int vector = 16 / static_cast<int>(width); ///< elements that a thread moves at a time
  static constexpr int stride = vector * blockThreads;
};

/// Neighbours that are moved together.
template <typename Word> struct Vector {
  Word at[Cut<Word>::vector] = {};
  __device__ void load(const void *from) {
    const uint4 whole = *static_cast<const uint4 *>(from);
    memcpy(at, &whole, sizeof whole);
  }
  __device__ void store(void *to) const {
    uint4 whole;
    memcpy(&whole, at, sizeof whole);
    *static_cast<uint4 *>(to) = whole;
  }
};

/// What all threads of a block know of the part at work.
struct Shared {
  uint32_t *bits;  ///< by group of 32 elements
  int *before;     ///< elements in front of a group that are not zero; after the last group, all of them
  int *warpTotals; ///< scratch
};

__device__ inline int firstOfThread(int vector) { return vector * static_cast<int>(threadIdx.x); }

template <typename Word> __device__ inline void clearElements(Word *to, int64_t count) {
  using C = Cut<Word>;
  for (int64_t at = firstOfThread(C::vector); at < count; at += C::stride)
    if (at + C::vector <= count)
      *reinterpret_cast<uint4 *>(to + at) = make_uint4(0, 0, 0, 0);
    else
      for (int64_t i = at; i < count; ++i)
        to[i] = 0;
}

/// Neighbouring threads make a word of bits together. All threads go round equally often, whatever `count` is.
template <typename Word> __device__ inline void findBits(const Word *x, int64_t count, Shared part) {
  using C = Cut<Word>;
#pragma unroll 4
  for (int at = firstOfThread(C::vector); at < C::elements; at += C::stride) {
    Vector<Word> here;
    if (at + C::vector <= count)
      here.load(x + at);
    else
      for (int i = 0; at + i < count; ++i)
        here.at[i] = x[at + i];
    uint32_t word = 0;
    for (int i = 0; i < C::vector; ++i)
      word |= static_cast<uint32_t>(here.at[i] != 0) << (at % lanes + i);
    for (int distance = lanes / C::vector / 2; distance > 0; distance /= 2)
      word |= __shfl_xor_sync(0xffffffffu, word, distance);
    if (at % lanes == 0)
      part.bits[at / lanes] = word;
  }
  __syncthreads();
}

/// Counts along the groups.
template <typename Word> __device__ inline void countBefore(Shared part) {
  using C = Cut<Word>;
  const int thread = static_cast<int>(threadIdx.x), first = C::groupsOfThread * thread;
  int total = 0, mine = 0;
  for (int i = 0; i < C::groupsOfThread; ++i)
    total += __popc(part.bits[first + i]);
  for (int distance = 1; distance < lanes; distance *= 2) {
    const int other = __shfl_xor_sync(0xffffffffu, total, distance);
    mine += thread & distance ? other : 0;
    total += other;
  }
  if (thread % lanes == 0)
    part.warpTotals[thread / lanes] = total;
  __syncthreads();
  for (int warp = 0; warp < thread / lanes; ++warp)
    mine += part.warpTotals[warp];
  for (int i = 0; i < C::groupsOfThread; ++i) {
    part.before[first + i] = mine;
    mine += __popc(part.bits[first + i]);
  }
  if (thread == blockThreads - 1)
    part.before[C::groups] = mine;
  __syncthreads();
}

/// Calls visit(i, element) for the elements that are not zero from the one of number `first` on, a vector of them at
/// most.
template <typename Word, typename Visit> __device__ inline void visitVector(Shared part, int first, Visit visit) {
  using C = Cut<Word>;
  int group = 0;
  for (int step = C::groups / 2; step > 0; step /= 2)
    if (part.before[group + step] <= first)
      group += step;
  uint32_t bits = part.bits[group];
  for (int skipped = part.before[group]; skipped < first; ++skipped)
    bits &= bits - 1;
#pragma unroll
  for (int i = 0; i < C::vector; ++i) {
    if (first + i >= part.before[C::groups])
      return;
    while (bits == 0)
      bits = part.bits[++group];
    visit(i, lanes * group + __ffs(static_cast<int>(bits)) - 1);
    bits &= bits - 1;
  }
}

/// Where a part lies, raw and in the slot.
template <typename Word> struct Place {
  int64_t first, count;      ///< elements
  int64_t begin, raw, masks; ///< bytes
  __device__ Place(int64_t part, int64_t elements)
      : first(part * Cut<Word>::elements), count(min(int64_t(Cut<Word>::elements), elements - first)),
        begin(zvcTableBytes(elements * Cut<Word>::width) + part * zvcPart), raw(count * Cut<Word>::width),
        masks(zvcMaskBytes(count)) {}
};

/// PackedHome, for kernels.
struct Home {
  char *slot; ///< null: in the pool
  PoolPlace pool;
  unsigned long long node; ///< as an address of this process
};

/// Draws a part's place in the pool; null where it has none left.
__device__ inline char *draw(const Home &home, int64_t part, int64_t bytes) {
  constexpr unsigned long long line = PoolPlace::line;
  const PoolPlace &pool = home.pool;
  const unsigned long long size = (static_cast<unsigned long long>(bytes) + line - 1) / line * line,
                           at = atomicAdd(&pool.used[0], size), end = at + size;
  const bool fits = end <= pool.room;
  pool.entries[part] = fits ? at / line << 24 | static_cast<unsigned long long>(bytes) : 0;
  if (fits)
    return pool.parts + at;
  pool.full[1] = pool.room;
  for (unsigned long long seen = pool.full[2]; seen < end;) {
    const unsigned long long before = atomicCAS(&pool.full[2], seen, end);
    if (before == seen)
      break;
    seen = before;
  }
  atomicCAS(&pool.full[0], 0ull, home.node);
  return nullptr;
}

template <typename Word> __global__ void packZeroValuesKernel(const Word *x, Home home, int64_t elements) {
  using C = Cut<Word>;
  __align__(16) __shared__ uint32_t bits[C::groups];
  __shared__ int before[C::groups + 1], warpTotals[blockThreads / lanes];
  __shared__ char *drawn;
  const Shared shared{bits, before, warpTotals};
  auto *table = reinterpret_cast<int64_t *>(home.slot);
  const int64_t bytes = elements * C::width;
  for (int64_t part = blockIdx.x; part < zvcParts(bytes); part += gridDim.x) {
    const Place<Word> place(part, elements);
    const Word *from = x + place.first;
    findBits(from, place.count, shared);
    countBefore<Word>(shared);
    const int nonzero = before[C::groups];
    const int64_t taken = min(place.raw, place.masks + C::width * nonzero);
    if (threadIdx.x == 0)
      drawn = home.slot ? home.slot + place.begin : draw(home, part, taken);
    __syncthreads();
    char *to = drawn;
    if (to && taken == place.raw) {
      moveElements(from, reinterpret_cast<Word *>(to), place.count);
    } else if (to) {
      moveElements(bits, reinterpret_cast<uint32_t *>(to), place.masks / 4);
      auto *values = reinterpret_cast<Word *>(to + place.masks);
      for (int at = firstOfThread(C::vector); at < nonzero; at += C::stride) {
        Vector<Word> here;
        visitVector<Word>(shared, at, [&](int i, int element) { here.at[i] = from[element]; });
        if (at + C::vector <= nonzero)
          here.store(values + at);
        else
          for (int i = 0; at + i < nonzero; ++i)
            values[at + i] = here.at[i];
      }
    }
    if (threadIdx.x == 0) {
      const bool first = home.slot && part == 0;
      if (home.slot)
        table[part + 1] = place.begin + taken;
      if (first)
        table[0] = zvcTableBytes(bytes);
      atomicAdd(&totals[0], static_cast<unsigned long long>(place.raw));
      atomicAdd(&totals[1], static_cast<unsigned long long>(taken + (first ? zvcTableBytes(bytes) : 0)));
    }
    __syncthreads(); // all have read the bits, which the next part overwrites
  }
}

template <typename Word> __global__ void unpackZeroValuesKernel(Home home, Word *x, int64_t elements) {
  using C = Cut<Word>;
  __align__(16) __shared__ uint32_t bits[C::groups];
  __shared__ int before[C::groups + 1], warpTotals[blockThreads / lanes];
  const Shared shared{bits, before, warpTotals};
  const auto *table = reinterpret_cast<const int64_t *>(home.slot);
  for (int64_t part = blockIdx.x; part < zvcParts(elements * C::width); part += gridDim.x) {
    const Place<Word> place(part, elements);
    const unsigned long long entry = home.slot ? 0 : home.pool.entries[part];
    const char *from = home.slot ? home.slot + place.begin : home.pool.parts + (entry >> 24) * PoolPlace::line;
    const int64_t taken = home.slot ? table[part + 1] - place.begin : static_cast<int64_t>(entry & 0xffffff);
    Word *to = x + place.first;
    if (taken == 0) { // had no place: the step ends with that
      clearElements(to, place.count);
      continue;
    }
    if (taken == place.raw) {
      moveElements(reinterpret_cast<const Word *>(from), to, place.count);
      continue;
    }
    for (int i = static_cast<int>(threadIdx.x); i < C::groups; i += blockThreads)
      bits[i] = i < place.masks / 4 ? reinterpret_cast<const uint32_t *>(from)[i] : 0;
    clearElements(to, place.count);
    __syncthreads();
    countBefore<Word>(shared);
    const int nonzero = before[C::groups];
    const auto *values = reinterpret_cast<const Word *>(from + place.masks);
    for (int at = firstOfThread(C::vector); at < nonzero; at += C::stride) {
      Vector<Word> here;
      if (at + C::vector <= nonzero)
        here.load(values + at);
      else
        for (int i = 0; at + i < nonzero; ++i)
          here.at[i] = values[at + i];
      visitVector<Word>(shared, at, [&](int i, int element) { to[element] = here.at[i]; });
    }
    __syncthreads(); // all have read the bits, which the next part overwrites
  }
}

unsigned gridOf(const Tensor &tensor) {
  return std::min(copyBlocks, blocksFor(zvcParts(static_cast<int64_t>(tensor.bytes())), 1));
}

/// Calls work(pointer to words as large as the elements, null).
template <typename Work> void forWords(const Tensor &tensor, Work &&work) {
  if (tensor.type == DataType::F32)
    work(static_cast<uint32_t *>(nullptr));
  else
    work(static_cast<uint16_t *>(nullptr));
}

unsigned long long *totalsAddress() {
  void *address = nullptr;
  checkCuda(cudaGetSymbolAddress(&address, totals), "cannot find what packed tensors took");
  return static_cast<unsigned long long *>(address);
}

Home homeOf(const PackedHome &home, const char *node) {
  return {home.slot, home.pool ? home.pool->placeOf(home.place) : PoolPlace(), reinterpret_cast<uintptr_t>(node)};
}

} // namespace

void packZeroValues(cudaStream_t stream, const void *x, const PackedHome &home, const Tensor &tensor,
                    const char *node) {
  packed = true;
  const Home place = homeOf(home, node);
  forWords(tensor, [&](auto *word) {
    using Word = std::remove_pointer_t<decltype(word)>;
    const auto kernel = packZeroValuesKernel<Word>;
    const auto *from = static_cast<const Word *>(x);
    const int64_t elements = tensor.shape.elements();
    kernel<<<gridOf(tensor), blockThreads, 0, stream>>>(from, place, elements);
  });
}

void unpackZeroValues(cudaStream_t stream, const PackedHome &home, void *x, const Tensor &tensor) {
  const Home place = homeOf(home, "");
  forWords(tensor, [&](auto *word) {
    using Word = std::remove_pointer_t<decltype(word)>;
    const auto kernel = unpackZeroValuesKernel<Word>;
    auto *to = static_cast<Word *>(x);
    const int64_t elements = tensor.shape.elements();
    kernel<<<gridOf(tensor), blockThreads, 0, stream>>>(place, to, elements);
  });
}

void clearPackedTotals() {
  if (packed)
    checkCuda(cudaMemset(totalsAddress(), 0, sizeof totals), "cannot clear what packed tensors took");
  packed = false;
}

void Session::notePacked(size_t, size_t) {}
Session::PackedBytes Session::packedBytes() const {
  unsigned long long bytes[2] = {};
  if (packed)
    checkCuda(cudaMemcpy(bytes, totalsAddress(), sizeof bytes, cudaMemcpyDeviceToHost),
              "cannot read what packed tensors took");
  return {bytes[0], bytes[1], 0, packedPool() ? packedPool()->peakBytes() : 0};
}

} // namespace sluice
