// SPDX-License-Identifier: Apache-2.0
// See ProductBench.h.
#include "tools/bench/ProductBench.h"

#include "runtime/Dequantize.h"
#include "runtime/Runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

namespace sluice {

namespace {

using Forms = std::vector<Quantization>;

/// Seconds of each of some products, one after the other in every round: the median over the rounds.
std::vector<double> alternating(Session &session, const std::vector<std::function<void()>> &runs, int rounds) {
  std::vector<std::vector<double>> times(runs.size());
  for (int round = 0; round <= rounds; ++round) // the first one finds memory and threads
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      runs[i]();
      session.synchronize();
      if (round > 0)
        times[i].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  std::vector<double> medians;
  for (std::vector<double> &own : times) {
    std::sort(own.begin(), own.end());
    medians.push_back(own[own.size() / 2]);
  }
  return medians;
}

/// x w, or where it is turned x w^T, as gradients have it.
void benchProduct(int64_t rows, int64_t depth, int64_t columns, bool turned, DataType type, const Forms &forms) {
  const Shape a{rows, depth}, b = turned ? Shape{columns, depth} : Shape{depth, columns}, c{rows, columns};
  const auto options = MatmulOptions().withTransposeB(turned).withFactors(type).withResult(type);
  size_t end = 0;
  const auto place = [&end](Shape shape, DataType of) {
    const Tensor tensor = device(end, shape, Layout::RowMajor, of);
    end += (tensor.bytes() + 255) / 256 * 256;
    return tensor;
  };
  const Matmul plain("plain", a, b, c, options);
  std::vector<QuantizedMatmul> kernels;
  size_t most = plain.workspaceBytes();
  for (const Quantization &form : forms) {
    kernels.emplace_back("form", a, b, form.bits, form.group, form.dimension, form.coding, options);
    most = std::max(most, kernels.back().workspaceBytes());
  }
  const Tensor x = place(a, type), w = place(b, type), y = place(c, type);
  std::vector<Tensor> held;
  for (Quantization form : forms) {
    form.rows = b[0], form.columns = b[1];
    held.push_back(place({form.bytes()}, DataType::U8));
  }
  const Tensor space = scratch(end, static_cast<int64_t>(most));
  Session session(end + most, 0, 1);
  const std::vector<char> numbers(static_cast<size_t>(std::max(w.bytes(), x.bytes())), '\x3c'); // of any type
  for (const Tensor &tensor : {x, w})
    session.write(tensor, numbers.data());
  for (const Tensor &tensor : held)
    session.write(tensor, numbers.data());
  std::vector<std::function<void()>> runs{[&] { plain.run(session.compute, x, w, none, y, space); }};
  for (size_t i = 0; i < forms.size(); ++i)
    runs.push_back([&, i] { kernels[i].run(session.compute, x, held[i], none, y, space); });
  const std::vector<double> times = alternating(session, runs, 7);
  printf("%5lld x %5lld x %5lld%s  floats %8.2f ms", static_cast<long long>(rows), static_cast<long long>(depth),
         static_cast<long long>(columns), turned ? " turned" : "       ", times[0] * 1e3);
  for (size_t i = 0; i < forms.size(); ++i)
    printf("  %s %.3f", forms[i].name(), times[i + 1] / times[0]);
  printf("\n");
}

} // namespace

void benchProducts(int64_t batch, DataType type) {
  const Forms forms{
      {8, 64, 0}, {4, 64, 0}, {4, 64, 0, 0, 0, Coding::Asymmetric}, {4, 64, 0, 0, 0, Coding::NormalFloat}};
  for (auto [depth, columns] : {std::pair<int64_t, int64_t>{768, 768}, {768, 3072}, {3072, 768}, {2048, 5632}})
    for (bool turned : {false, true})
      for (int64_t rows : {batch * 512, int64_t(1)})
        benchProduct(rows, depth, columns, turned, type, forms);
}

} // namespace sluice
