// SPDX-License-Identifier: Apache-2.0
// cuDNN's attention as its frontend describes it: y = dropout(softmax(scale * q k^T + bias)) v, with the logarithm of
// each row's sum of exponentials, and its gradients. Scores are floats, in units of log 2, in which the least float is
// -infinity; sums are in double; what is stored is rounded.
#pragma once

#include <algorithm>
#include <cmath>

namespace cudnn_frontend {
namespace graph {

template <int Pass> struct Attention_attributes {
  float scale = 1;
  bool causal = false;
  std::shared_ptr<Tensor_attributes> kept = {}, factor = {}, bias = {};
  Attention_attributes &set_name(const std::string &) { return *this; }
  Attention_attributes &set_generate_stats(bool) { return *this; }
  Attention_attributes &set_deterministic_algorithm(bool) { return *this; }
  Attention_attributes &set_attn_scale(float value) { return scale = value, *this; }
  Attention_attributes &set_causal_mask(bool value) { return causal = value, *this; }
  Attention_attributes &set_bias(std::shared_ptr<Tensor_attributes> value) { return bias = value, *this; }
  Attention_attributes &set_dropout(std::shared_ptr<Tensor_attributes> mask, std::shared_ptr<Tensor_attributes> scale,
                                    std::shared_ptr<Tensor_attributes> = {}) {
    return kept = mask, factor = scale, *this;
  }
};
using SDPA_attributes = Attention_attributes<0>;
using SDPA_backward_attributes = Attention_attributes<1>;

struct EmulatedAttention {
  using Pointer = std::shared_ptr<Tensor_attributes>;
  using Pack = std::unordered_map<int64_t, void *>;
  float scale = 1;
  bool causal = false;
  Pointer kept = {}, factor = {}, bias = {}, q = {}, k = {}, v = {}, y = {}, sums = {}, dy = {}, dq = {}, dk = {},
          dv = {};

  int64_t members() const { return q->dim[0] * q->dim[1]; }
  bool refused() const { return q->type == DataType_t::FLOAT || q->dim[3] % 8 != 0 || v->dim[3] % 8 != 0; }
  /// As cuDNN 9.19 has it.
  int64_t workspace() const {
    auto whole = [](int64_t extent, int64_t tile) { return (extent + tile - 1) / tile * tile; };
    return dy ? members() * (2 * whole(q->dim[2], 64) * whole(k->dim[2], 128) + 4 * q->dim[2]) + 256 : 256;
  }
  void run(Pack &pack) const {
    for (int64_t member = 0; member < members(); ++member)
      dy ? backward(pack, member) : forward(pack, member);
  }

private:
  static constexpr double toLog2 = 1.4426950408889634;
  static int64_t at(const Pointer &t, int64_t member, int64_t row, int64_t column) {
    return member / t->dim[1] * t->stride[0] + member % t->dim[1] * t->stride[1] + row * t->stride[2] +
           column * t->stride[3];
  }
  static double get(Pack &pack, const Pointer &t, int64_t member, int64_t row, int64_t column) {
    return t->value(pack.at(t->uid), at(t, member, row, column));
  }
  static void put(Pack &pack, const Pointer &t, int64_t member, int64_t row, int64_t column, double value) {
    t->put(pack.at(t->uid), at(t, member, row, column), static_cast<float>(value));
  }
  /// The product of two rows.
  static double dot(Pack &pack, const Pointer &a, int64_t row, const Pointer &b, int64_t other, int64_t member) {
    double sum = 0;
    for (int64_t d = 0; d < a->dim[3]; ++d)
      sum += get(pack, a, member, row, d) * get(pack, b, member, other, d);
    return sum;
  }
  double score(Pack &pack, int64_t member, int64_t row, int64_t key) const {
    if (causal && key > row)
      return -INFINITY;
    const double product = static_cast<double>(scale) * dot(pack, q, row, k, key, member);
    if (!bias)
      return product * toLog2;
    const int64_t heads = q->dim[1], sample = bias->dim[0] > 1 ? member / heads : 0,
                  head = bias->dim[1] > 1 ? member % heads : 0;
    const int64_t place = sample * bias->stride[0] + head * bias->stride[1] +
                          (bias->dim[2] > 1 ? row : 0) * bias->stride[2] + key * bias->stride[3];
    const double added = bias->value(pack.at(bias->uid), place);
    const float sum = static_cast<float>(product) + static_cast<float>(added);
    return static_cast<double>(sum * static_cast<float>(toLog2));
  }

  /// What dropout makes of a value at this place.
  double dropped(Pack &pack, int64_t member, int64_t row, int64_t key, double value) const {
    return kept ? value * get(pack, kept, member, row, key) * factor->scalar : value;
  }

  void forward(Pack &pack, int64_t member) const {
    const int64_t keys = k->dim[2];
    std::vector<double> p(static_cast<size_t>(keys));
    for (int64_t row = 0; row < q->dim[2]; ++row) {
      double sum = 0, most = -INFINITY;
      for (int64_t key = 0; key < keys; ++key)
        most = std::max(most, p[static_cast<size_t>(key)] = score(pack, member, row, key));
      for (double &value : p)
        sum += value = std::exp2(value - most);
      put(pack, sums, member, row, 0, (most + std::log2(sum)) / toLog2);
      for (int64_t column = 0; column < v->dim[3]; ++column) {
        double result = 0;
        for (int64_t key = 0; key < keys; ++key)
          result +=
              dropped(pack, member, row, key, p[static_cast<size_t>(key)] / sum) * get(pack, v, member, key, column);
        put(pack, y, member, row, column, result);
      }
    }
  }

  void backward(Pack &pack, int64_t member) const {
    const int64_t rows = q->dim[2], keys = k->dim[2];
    std::vector<double> p(static_cast<size_t>(rows * keys)), slopes(p);
    for (int64_t row = 0; row < rows; ++row) {
      const double whole = dot(pack, dy, row, y, row, member);
      for (int64_t key = 0; key < keys; ++key) {
        const auto i = static_cast<size_t>(row * keys + key);
        const auto logarithm = static_cast<float>(get(pack, sums, member, row, 0) * toLog2);
        p[i] = std::exp2(score(pack, member, row, key) - static_cast<double>(logarithm));
        const double slope = dropped(pack, member, row, key, dot(pack, dy, row, v, key, member));
        slopes[i] = static_cast<double>(scale) * p[i] * (slope - whole);
        p[i] = dropped(pack, member, row, key, p[i]);
      }
    }
    auto product = [&](const Pointer &to, const Pointer &from, const std::vector<double> &factors, bool turned) {
      for (int64_t i = 0; i < to->dim[2]; ++i)
        for (int64_t column = 0; column < to->dim[3]; ++column) {
          double sum = 0;
          for (int64_t j = 0; j < from->dim[2]; ++j)
            sum +=
                factors[static_cast<size_t>(turned ? j * keys + i : i * keys + j)] * get(pack, from, member, j, column);
          put(pack, to, member, i, column, sum);
        }
    };
    product(dq, k, slopes, false);
    product(dk, q, slopes, true);
    product(dv, dy, p, true);
  }
};

} // namespace graph
} // namespace cudnn_frontend
