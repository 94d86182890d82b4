// SPDX-License-Identifier: Apache-2.0
// Convolutions of a network through oneDNN alone, of version 2 or 3, to compare versions on a processor; no part of
// Sluice is in it.
//
//   g++ -std=c++17 -O2 -fopenmp tools/bench/onednn_convs.cpp -ldnnl -o convs            Debian's 2.6.3
//   g++ ... -Iinclude -Llib -Wl,-rpath,$PWD/lib                                         another one's headers and
//   library chrt -f 10 ./convs bf16 2 < resnet50.txt                                            type, threads
//
// A line of the input is a layer: how many of it there are, batch, channels in and out, extent, window, stride, pad;
// `--resnet50` in place of the threads prints those of ResNet-50, batch 16. Activations are NHWC, weights in the format
// that oneDNN wants; a number is the median of a few runs in a row, whose operands caches may hold.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <omp.h>
#include <string>
#include <vector>

using namespace dnnl;

namespace {

const engine &cpu() {
  static const engine only(engine::kind::cpu, 0);
  return only;
}

struct Layer {
  int count, batch, in, out, extent, window, stride, pad;
};

constexpr Layer resnet50[] = {
    {1, 16, 3, 64, 224, 7, 2, 3},    {1, 16, 64, 64, 56, 1, 1, 0},    {3, 16, 64, 64, 56, 3, 1, 1},
    {4, 16, 64, 256, 56, 1, 1, 0},   {2, 16, 256, 64, 56, 1, 1, 0},   {1, 16, 256, 128, 56, 1, 1, 0},
    {1, 16, 128, 128, 56, 3, 2, 1},  {4, 16, 128, 512, 28, 1, 1, 0},  {1, 16, 256, 512, 56, 1, 2, 0},
    {3, 16, 512, 128, 28, 1, 1, 0},  {3, 16, 128, 128, 28, 3, 1, 1},  {1, 16, 512, 256, 28, 1, 1, 0},
    {1, 16, 256, 256, 28, 3, 2, 1},  {6, 16, 256, 1024, 14, 1, 1, 0}, {1, 16, 512, 1024, 28, 1, 2, 0},
    {5, 16, 1024, 256, 14, 1, 1, 0}, {5, 16, 256, 256, 14, 3, 1, 1},  {1, 16, 1024, 512, 14, 1, 1, 0},
    {1, 16, 512, 512, 14, 3, 2, 1},  {3, 16, 512, 2048, 7, 1, 1, 0},  {1, 16, 1024, 2048, 14, 1, 2, 0},
    {2, 16, 2048, 512, 7, 1, 1, 0},  {2, 16, 512, 512, 7, 3, 1, 1}};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Milliseconds of a primitive with these operands.
double measure(const primitive &convolution, const std::vector<std::pair<int, memory::desc>> &operands) {
  constexpr size_t page = 4096;
  stream order(cpu());
  std::vector<void *> room;
  std::unordered_map<int, memory> arguments;
  for (const auto &[id, desc] : operands) {
    const size_t bytes = (desc.get_size() + page) / page * page;
    room.push_back(aligned_alloc(page, bytes));
    memset(room.back(), 0, bytes);
    arguments.emplace(id, memory(desc, cpu(), room.back()));
  }
  std::vector<double> times;
  for (const double begin = now(); times.size() < 6 || now() - begin < 0.15;) {
    const double start = now();
    convolution.execute(order, arguments);
    order.wait();
    times.push_back(now() - start);
  }
  for (void *of : room)
    free(of);
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return 1e3 * times[times.size() / 2];
}

struct Passes {
  double milliseconds[3];
  std::string names[3];
};

Passes measure(const Layer &l, memory::data_type type) {
  const int side = (l.extent + 2 * l.pad - l.window) / l.stride + 1;
  const memory::desc x({l.batch, l.in, l.extent, l.extent}, type, memory::format_tag::nhwc),
      y({l.batch, l.out, side, side}, type, memory::format_tag::nhwc);
  const memory::dims extents{l.out, l.in, l.window, l.window}, strides{l.stride, l.stride}, pads{l.pad, l.pad};
  const memory::desc w(extents, type, memory::format_tag::any),
      dw(extents, memory::data_type::f32, memory::format_tag::any);
  const auto kind = prop_kind::forward_training;
  const auto direct = algorithm::convolution_direct;
  primitive_attr own;
  own.set_scratchpad_mode(scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  const convolution_forward::primitive_desc forward(cpu(), kind, direct, x, w, y, strides, pads, pads, own);
  const convolution_backward_data::primitive_desc data(cpu(), direct, x, w, y, strides, pads, pads, forward, own);
  const convolution_backward_weights::primitive_desc weights(cpu(), direct, x, dw, y, strides, pads, pads, forward,
                                                             own);
#else
  const convolution_forward::primitive_desc forward({kind, direct, x, w, y, strides, pads, pads}, own, cpu());
  const convolution_backward_data::primitive_desc data({direct, x, w, y, strides, pads, pads}, own, cpu(), forward);
  const convolution_backward_weights::primitive_desc weights({direct, x, dw, y, strides, pads, pads}, own, cpu(),
                                                             forward);
#endif
  const auto pad = [](const auto &of) {
    return std::pair<int, memory::desc>(DNNL_ARG_SCRATCHPAD, of.scratchpad_desc());
  };
  return {
      {measure(convolution_forward(forward),
               {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, forward.weights_desc()}, {DNNL_ARG_DST, y}, pad(forward)}),
       measure(convolution_backward_data(data),
               {{DNNL_ARG_DIFF_SRC, x}, {DNNL_ARG_WEIGHTS, data.weights_desc()}, {DNNL_ARG_DIFF_DST, y}, pad(data)}),
       measure(convolution_backward_weights(weights), {{DNNL_ARG_SRC, x},
                                                       {DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc()},
                                                       {DNNL_ARG_DIFF_DST, y},
                                                       pad(weights)})},
      {forward.impl_info_str(), data.impl_info_str(), weights.impl_info_str()}};
}

} // namespace

int main(int count, char **words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: convs f32|bf16 THREADS|--resnet50 < LAYERS\n");
    return 2;
  }
  const auto type = std::string(words[1]) == "bf16" ? memory::data_type::bf16 : memory::data_type::f32;
  if (std::string(words[2]) == "--resnet50") {
    for (const Layer &l : resnet50)
      std::printf("%d %d %d %d %d %d %d %d\n", l.count, l.batch, l.in, l.out, l.extent, l.window, l.stride, l.pad);
    return 0;
  }
  omp_set_num_threads(std::atoi(words[2]));
  double totals[3] = {};
  for (Layer l{}; std::scanf("%d %d %d %d %d %d %d %d", &l.count, &l.batch, &l.in, &l.out, &l.extent, &l.window,
                             &l.stride, &l.pad) == 8;) {
    const Passes passes = measure(l, type);
    std::printf("%d x %d: %d -> %d of %d, window %d, stride %d:", l.count, l.batch, l.in, l.out, l.extent, l.window,
                l.stride);
    for (int i = 0; i < 3; ++i) {
      std::printf("  %.2f ms %s", passes.milliseconds[i], passes.names[i].c_str());
      totals[i] += l.count * passes.milliseconds[i];
    }
    std::puts("");
    std::fflush(stdout);
  }
  std::printf("all: forward %.1f, data %.1f, weights %.1f ms\n", totals[0], totals[1], totals[2]);
}
