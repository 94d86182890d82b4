// SPDX-License-Identifier: Apache-2.0
// Pointwise ops and sums over all but channels after a convolution, as cuDNN's frontend describes them.
#pragma once

namespace cudnn_frontend {
namespace graph {

struct Pointwise_attributes {
  PointwiseMode_t mode = PointwiseMode_t::ADD;
  Pointwise_attributes &set_mode(PointwiseMode_t value) { return mode = value, *this; }
};
struct Reduction_attributes {
  bool deterministic = false;
  Reduction_attributes &set_mode(ReductionMode_t) { return *this; }
  Reduction_attributes &set_is_deterministic(bool value) { return deterministic = value, *this; }
};

class EmulatedEpilogue {
public:
  using Pointer = std::shared_ptr<Tensor_attributes>;
  using Pack = std::unordered_map<int64_t, void *>;

  Pointer add(Pointer a, Pointer b, const Pointwise_attributes &p) {
    nodes.push_back({a, b, std::make_shared<Tensor_attributes>(), p.mode, false});
    return nodes.back().result;
  }
  Pointer add(Pointer a, const Reduction_attributes &r) {
    atomics |= !r.deterministic;
    nodes.push_back({a, nullptr, std::make_shared<Tensor_attributes>(), PointwiseMode_t::ADD, true});
    return nodes.back().result;
  }
  bool empty() const { return nodes.empty(); }
  bool usesAtomics() const { return atomics; }

  /// All of a node's elements in f32, in the order of a dense image with its channels last; vectors by channel. `sums`:
  /// what the convolution computes of `made`.
  void run(Pack &pack, const Pointer &made, const std::vector<double> &sums) const {
    std::unordered_map<const Tensor_attributes *, std::vector<float>> known;
    const size_t channels = static_cast<size_t>(made->dim[1]);
    auto of = [&](const Pointer &t) -> const std::vector<float> & {
      std::vector<float> &values = known[t.get()];
      if (values.empty())
        for (int64_t i = 0; i < t->elements(); ++i)
          values.push_back(static_cast<float>(t->value(pack.at(t->uid), i)));
      return values;
    };
    auto store = [&](const Pointer &t) {
      const std::vector<float> &values = known[t.get()];
      for (size_t i = 0; t->uid != 0 && i < values.size(); ++i)
        t->put(pack.at(t->uid), static_cast<int64_t>(i), values[i]);
    };
    known[made.get()].assign(sums.begin(), sums.end());
    store(made);
    for (const Node &node : nodes) {
      const std::vector<float> a = of(node.a), b = node.sum ? std::vector<float>() : of(node.b);
      std::vector<float> &to = known[node.result.get()];
      to.assign(node.sum ? channels : a.size(), 0);
      for (size_t i = 0; i < a.size(); ++i)
        if (node.sum)
          to[i % channels] += a[i];
        else
          to[i] = computed(node.mode, a[i], b[b.size() == channels ? i % channels : i]);
      store(node.result);
    }
  }

private:
  struct Node {
    Pointer a, b, result; ///< b: null of a sum
    PointwiseMode_t mode;
    bool sum;
  };
  static float computed(PointwiseMode_t mode, float a, float b) {
    return mode == PointwiseMode_t::ADD   ? a + b
           : mode == PointwiseMode_t::SUB ? a - b
           : mode == PointwiseMode_t::MUL ? a * b
                                          : (b > 0 ? a : 0);
  }

  std::vector<Node> nodes;
  bool atomics = false;
};

} // namespace graph
} // namespace cudnn_frontend
