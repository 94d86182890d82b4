// SPDX-License-Identifier: Apache-2.0
// A session and tensors for kernel tests: values are written and read as doubles in logical (row-major) order, whatever
// the layout and the floating-point type, so that references are plain loops over NCHW.
#pragma once

#include "runtime/Runtime.h"
#include "runtime/kernels/BFloat16.h"
#include "runtime/kernels/Float16.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace sluice {

using Numbers = std::vector<double>;

class Harness {
public:
  explicit Harness(size_t bytes = size_t(64) << 20) : session(bytes, 1 << 20, 8), limit(bytes) {}

  Tensor tensor(Shape shape, Layout layout = Layout::RowMajor, DataType type = DataType::F32) {
    const Tensor result = device(next, shape, layout, type);
    take(result.bytes());
    return result;
  }
  Tensor image(Shape shape, DataType type = DataType::F32) { return tensor(shape, Layout::NHWC, type); }
  Tensor tensor(Shape shape, Layout layout, const Numbers &values, DataType type = DataType::F32) {
    const Tensor result = tensor(shape, layout, type);
    write(result, values);
    return result;
  }
  Tensor workspace(const Kernel &kernel) {
    const Tensor result = scratch(next, static_cast<int64_t>(kernel.workspaceBytes()));
    take(result.bytes());
    std::vector<char> rubbish(result.bytes(), '\xff'); // kernels may rely on nothing there
    if (!rubbish.empty())
      session.write(result, rubbish.data());
    return result;
  }
  Tensor classes(const std::vector<int64_t> &values) {
    const Tensor result = tensor({static_cast<int64_t>(values.size())}, Layout::RowMajor, DataType::I64);
    session.write(result, values.data());
    return result;
  }

  void write(const Tensor &tensor, const Numbers &values) {
    std::vector<float> raw(values.size());
    for (size_t i = 0; i < values.size(); ++i)
      raw[physical(tensor, i)] = static_cast<float>(values[i]);
    if (tensor.type == DataType::F32)
      return session.write(tensor, raw.data());
    std::vector<uint16_t> halves;
    for (float value : raw)
      halves.push_back(tensor.type == DataType::F16 ? float16Of(value).bits : bfloat16Of(value).bits);
    session.write(tensor, halves.data());
  }
  Numbers read(const Tensor &tensor) {
    const auto count = static_cast<size_t>(tensor.shape.elements());
    std::vector<float> raw(count);
    if (tensor.type == DataType::F32) {
      session.read(tensor, raw.data());
    } else {
      std::vector<uint16_t> halves(count);
      session.read(tensor, halves.data());
      std::transform(halves.begin(), halves.end(), raw.begin(), [&](uint16_t half) {
        return tensor.type == DataType::F16 ? widened(Float16{half}) : widened(BFloat16{half});
      });
    }
    Numbers values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = raw[physical(tensor, i)];
    return values;
  }

  static size_t physical(const Tensor &tensor, size_t index) {
    if (tensor.layout != Layout::NHWC || tensor.shape.rank < 3)
      return index;
    const auto c = static_cast<size_t>(tensor.shape[1]),
               hw = static_cast<size_t>(tensor.shape.elements() / tensor.shape[0] / tensor.shape[1]);
    return index / (c * hw) * c * hw + index % hw * c + index / hw % c;
  }

  Session session;

private:
  void take(size_t bytes) {
    next += (bytes + 255) / 256 * 256; // as in programs: cuBLASLt wants workspaces there
    if (next > limit)
      throw std::runtime_error("the test's arena is too small");
  }
  size_t limit, next = 0;
};

/// Random values that are exact in float, so that references see the same numbers.
inline Numbers randomNumbers(int64_t count, unsigned seed, double spread = 1, double center = 0) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(center, spread);
  Numbers values(static_cast<size_t>(count));
  for (double &v : values)
    v = static_cast<double>(static_cast<float>(normal(generator)));
  return values;
}

/// Norm of the difference over the norm of the reference.
inline double relativeError(const Numbers &got, const Numbers &want) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(difference / std::max(norm, 1e-30));
}

#define EXPECT_CLOSE(got, want, tolerance)                                                                             \
  do {                                                                                                                 \
    ASSERT_EQ((got).size(), (want).size());                                                                            \
    EXPECT_LE(relativeError(got, want), tolerance);                                                                    \
  } while (false)

inline double dot(const Numbers &a, const Numbers &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

/// Derivative of `f` at x in direction d by central differences.
template <typename F> double slope(F &&f, const Numbers &x, const Numbers &d, double h = 1e-4) {
  Numbers plus = x, minus = x;
  for (size_t i = 0; i < x.size(); ++i) {
    plus[i] += h * d[i];
    minus[i] -= h * d[i];
  }
  return (f(plus) - f(minus)) / (2 * h);
}

} // namespace sluice
