// SPDX-License-Identifier: Apache-2.0
// Products of linear layers and what is made of products: attention, and recurrent layers.
#include "runtime/Recurrence.h"
#include "runtime/host/AttentionEngine.h"
#include "runtime/host/MatmulEngine.h"
#include "tools/CalibrationBench.h"

using namespace sluice;

namespace {

/// a [rows,inner] times b [inner,columns], either of them stored the other way round.
struct Product {
  int64_t rows, inner, columns;
  bool turnedA, turnedB;
};

void measureProduct(Bench &bench, const Product &p) {
  const Shape a = p.turnedA ? Shape{p.inner, p.rows} : Shape{p.rows, p.inner},
              b = p.turnedB ? Shape{p.columns, p.inner} : Shape{p.inner, p.columns}, c{p.rows, p.columns};
  // A weight's gradient, as updates read it, is of floats.
  const DataType result = p.turnedA ? DataType::F32 : bench.type;
  MatmulOptions options = MatmulOptions().withTransposeA(p.turnedA).withTransposeB(p.turnedB);
  options.withFactors(bench.type).withResult(result);
  const std::string fastest = matmulCandidates({a, b, c, options}).front().name;
  options.algorithm.name = fastest.c_str();
  const auto product = std::make_shared<Matmul>("calibrate", a, b, c, options);
  buildPrimitives();
  const size_t bytes = byteWidth(bench.type) * static_cast<size_t>(a.elements() + b.elements()) +
                       byteWidth(result) * static_cast<size_t>(c.elements()) + product->workspaceBytes();
  bench.sample(p.turnedA ? "product_turned" : "product",
               planner::productSize(double(p.rows), double(p.inner), double(p.columns)),
               2.0 * double(p.rows * p.inner * p.columns), bytes, [&bench, product, a, b, c, result](Stream &stream) {
                 product->run(stream, bench.placeOwn(a), bench.placeOwn(b), none,
                              bench.place(c, Layout::RowMajor, result), bench.space(product->workspaceBytes()));
               });
}

// A linear layer: rows are samples or tokens
struct Linear {
  int64_t rows, in, out;
};
constexpr Linear linears[] = {
    {64, 64, 10},      {8, 1280, 1000},   {16, 2048, 1000}, {16, 4096, 4096},  {16, 8192, 4096},   {8, 64, 16},
    {16, 480, 120},    {32, 256, 1024},   {256, 512, 512},  {512, 768, 3072},  {1024, 1024, 1024}, {2048, 384, 1536},
    {2048, 384, 1152}, {2048, 512, 2048}, {3136, 192, 768}, {4096, 256, 1024}, {6272, 192, 768},   {25088, 96, 384}};

/// The layer, the gradient of what it reads and that of its weights.
void measureLinear(Bench &bench, const Linear &l) {
  measureProduct(bench, {l.rows, l.in, l.out, false, true});
  measureProduct(bench, {l.rows, l.out, l.in, false, false});
  measureProduct(bench, {l.out, l.rows, l.in, true, false});
}

/// Of floats only.
void measureRecurrence(Bench &bench, int64_t steps, int64_t batch, int64_t width) {
  const Shape gates{steps, batch, 4 * width}, weight{4 * width, width}, state{batch, width}, all{steps, batch, width},
      saved{steps, batch, 5 * width};
  const auto layer = std::make_shared<Recurrence>("calibrate", RecurrentCell::Lstm, gates, false);
  const std::vector<double> size = planner::productSize(double(batch), double(width), double(4 * width));
  const double operations = double(gates.elements() * (2 * width + 10));
  const size_t bytes = layer->workspaceBytes() + 4 * static_cast<size_t>(2 * gates.elements() + all.elements() +
                                                                         saved.elements() + weight.elements());
  bench.sample("recurrence", size, operations, bytes,
               [&bench, layer, gates, weight, state, all, saved](Stream &stream) {
                 const Tensor x = bench.place(gates), w = bench.place(weight), first = bench.place(state),
                              cell = bench.place(state);
                 layer->forward(stream, x, w, first, cell, bench.place(all), bench.place(saved), bench.place(state),
                                bench.space(layer->workspaceBytes()));
               });
  bench.sample("recurrence_backward", size, operations, bytes,
               [&bench, layer, gates, weight, state, all, saved](Stream &stream) {
                 const Tensor dy = bench.place(all), w = bench.place(weight), first = bench.place(state);
                 layer->backward(stream, dy, w, first, bench.place(all), bench.place(saved), bench.place(state), none,
                                 bench.place(gates), bench.place(state), bench.place(state),
                                 bench.space(layer->workspaceBytes()));
               });
}

/// Queries, keys and values as one projection leaves them, which most models have: [batch, row, which, head, depth].
struct Heads {
  int64_t batch, heads, rows, depth;

  Shape each() const { return {batch, heads, rows, depth}; }
  Shape packed() const { return {batch, rows, 3, heads, depth}; }
  Shape view(int64_t which) const {
    return {which * heads * depth, rows * 3 * heads * depth, depth, 3 * heads * depth};
  }
  Shape result() const { return {0, rows * heads * depth, depth, heads * depth}; }
};

void measurePass(Bench &bench, const Heads &h, AttentionPass pass, bool causal) {
  const Shape shape = h.each(), sums{h.batch, h.heads, h.rows};
  AttentionOptions options =
      AttentionOptions().withType(bench.type).withCausal(causal).withQView(h.view(0)).withKView(h.view(1));
  options.withVView(h.view(2)).withYView(h.result());
  const AttentionGeometry geometry("calibrate", shape, shape, shape, {}, {}, options.views());
  const std::string fastest = attentionCandidates(pass, geometry, bench.type).front().name;
  const auto attention = std::make_shared<Attention>("calibrate", pass, shape, shape, shape, 0.125f,
                                                     options.withAlgorithm({fastest.c_str()}));
  const bool backward = pass == AttentionPass::Backward;
  const double products = (backward ? 5 : 2) / (causal ? 2.0 : 1.0);
  const size_t bytes =
      byteWidth(bench.type) * static_cast<size_t>((backward ? 8 : 4) * shape.elements()) + attention->workspaceBytes();
  bench.sample(std::string(backward ? "attention_backward" : "attention_forward") + (causal ? "_causal" : ""),
               planner::attentionSize(double(h.rows), double(h.rows), double(h.depth)),
               2.0 * products * double(h.batch * h.heads * h.rows * h.rows * h.depth), bytes,
               [&bench, attention, shape, sums, h, backward](Stream &stream) {
                 const auto place = [&](const Shape &of) { return bench.placeOwn(of); };
                 const Tensor all = place(h.packed()), y = place(shape), logs = bench.place(sums),
                              space = bench.space(attention->workspaceBytes());
                 if (!backward)
                   return attention->forward(stream, all, all, all, none, none, y, logs, space);
                 const Tensor gradient = place(h.packed());
                 attention->backward(stream, place(shape), all, all, all, none, none, y, logs, gradient, gradient,
                                     gradient, space);
               });
}

} // namespace

void sluice::measureProducts(Bench &bench) {
  for (const Linear &linear : linears)
    measureLinear(bench, linear);
  if (bench.type != DataType::F32)
    return;
  measureRecurrence(bench, 32, 32, 256);
  measureRecurrence(bench, 32, 16, 64);
}

void sluice::measureAttention(Bench &bench) {
  for (const Heads &heads : {Heads{8, 8, 64, 32}, {4, 6, 197, 64}, {4, 6, 256, 64}, {1, 4, 1024, 64}})
    for (AttentionPass pass : {AttentionPass::Forward, AttentionPass::Backward})
      for (bool causal : {false, true})
        measurePass(bench, heads, pass, causal);
}
